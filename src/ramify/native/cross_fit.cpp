// Scores of documents by classifiers that were not trained on them, for several folds and costs at once.
//
// A lane has a fold and a factor of the costs: the problem of class_solver.cpp without the documents of the fold, at that cost. It
// starts from the dual variables of a solution on all documents, those of the fold taken out, and dual ascent goes on from there.
// The weights of a feature stand side by side, one for each lane, so that a document's features are fetched once for all lanes.
// Pairs without a dual variable and far beyond the margin are left out: no fold would use them.
#include <cmath>
#include <cstring>

#include "dispatch.h"
#include "feature_set.h"
#include "linear.h"

namespace ramify {

namespace {

constexpr float kFar = 0.5f;  // beyond the margin: pairs that no fold is going to use
typedef float Lanes __attribute__((vector_size(4 * kLanes)));

// Products of a row with the weights of all lanes.
RAMIFY_WIDE_CLONES
void dot_lanes(const int32_t *f, const float *x, size_t n, const float *w, float *products) {
  Lanes a = {0}, b = {0};
  size_t k = 0;
  for (; k + 1 < n; k += 2) {
    a += x[k] * *reinterpret_cast<const Lanes *>(w + static_cast<size_t>(f[k]) * kLanes);
    b += x[k + 1] * *reinterpret_cast<const Lanes *>(w + static_cast<size_t>(f[k + 1]) * kLanes);
  }
  if (k < n) a += x[k] * *reinterpret_cast<const Lanes *>(w + static_cast<size_t>(f[k]) * kLanes);
  a += b;
  std::memcpy(products, &a, sizeof a);
}

RAMIFY_WIDE_CLONES
void add_to_lanes(const int32_t *f, const float *x, size_t n, const float *factors, float *w) {
  Lanes factor;
  std::memcpy(&factor, factors, sizeof factor);
  for (size_t k = 0; k < n; ++k) *reinterpret_cast<Lanes *>(w + static_cast<size_t>(f[k]) * kLanes) += x[k] * factor;
}

// One class, its weights and dual variables in every lane.
template <class Loss>
class LaneClass {
 public:
  // whole: the weights of the solution, 0 before and after. Writes the scores of pairs that are far beyond the margin.
  LaneClass(const Documents &X, const Class &c, const FoldLanes &how, float *w, float *whole, float *scores)
      : X_(X), c_(c), how_(how), w_(w), alphas_(c.n_pairs * kLanes), active_(c.n_pairs) {
    add_pairs(X, c, whole);
    std::fill(scores, scores + c.n_pairs * how.n_scores, NAN);
    active_.size = 0;
    for (size_t j = 0; j < c.n_pairs; ++j) {
      if (j + 1 < c.n_pairs) prefetch_row(X, row(j + 1));
      if (c.alphas[j] == 0) {
        const float score = dot(X, row(j), whole);
        if (c.sign(j) * score > 1 + kFar) {
          for (size_t k = 0, n = 0; k < kLanes; ++k)
            if (is_held_out(j, k)) scores[j * how.n_scores + n++] = score;
          continue;
        }
      }
      active_.order[active_.size++] = static_cast<uint32_t>(j);
      if (c.alphas[j] == 0) continue;
      float factors[kLanes];
      for (size_t k = 0; k < kLanes; ++k) {
        alphas_[j * kLanes + k] = is_held_out(j, k) ? 0.0f : Loss::rescaled(c.alphas[j], how.costs[k]);
        factors[k] = alphas_[j * kLanes + k] * c.sign(j);
      }
      add_to_lanes(X.columns_of(row(j)), X.values_of(row(j)), X.length(row(j)), factors, w);
    }
    near_.assign(active_.order.begin(), active_.order.begin() + static_cast<std::ptrdiff_t>(active_.size));
  }

  // Sets the weights of the features of the class to 0.
  void clear(float *whole, FeatureSet &marks) {
    for (uint32_t j : near_) {
      const int32_t *f = X_.columns_of(row(j));
      for (size_t p = 0, n = X_.length(row(j)); p < n; ++p) marks.add(static_cast<size_t>(f[p]));
    }
    marks.drain([&](size_t f) {
      whole[f] = 0;
      std::memset(w_ + f * kLanes, 0, kLanes * sizeof(float));
    });
  }

  // Passes over the pairs that are not at a bound in all lanes, until the sum of the duality gaps of the lanes is small enough.
  void solve(const SolverLimits &limits, uint64_t seed) {
    Random random(seed);
    for (size_t pass = 0; pass < limits.max_passes; ++pass) {
      active_.shuffle(random);
      gap_ = primal_ = 0;
      size_t n_active = 0;
      for (size_t k = 0; k < active_.size; ++k) {
        const uint32_t j = active_.order[k];
        if (k + 1 < active_.size) prefetch_row(X_, row(active_.order[k + 1]));
        if (update(j)) active_.order[n_active++] = j;
      }
      active_.size = n_active;
      if (gap_ <= limits.tolerance * primal_) break;
    }
  }

  // Scores of the documents that are held out, by the lanes that leave them out.
  void score(const Rows &held_out, float *scores) const {
    float products[kLanes];
    for (uint32_t j : near_) {
      if (place(j) < 0) continue;
      const auto r = static_cast<size_t>(place(j));
      dot_lanes(held_out.columns_of(r), held_out.values_of(r), held_out.length(r), w_, products);
      for (size_t k = 0, n = 0; k < kLanes; ++k)
        if (is_held_out(j, k)) scores[j * how_.n_scores + n++] = products[k];
    }
  }

 private:
  const Documents &X_;
  const Class &c_;
  const FoldLanes &how_;
  float *w_;
  std::vector<float> alphas_;  // pairs × lanes
  ActiveOrder active_;
  std::vector<uint32_t> near_;  // the pairs that are not far from the margin
  double gap_ = 0, primal_ = 0;

  size_t row(size_t j) const { return static_cast<size_t>(c_.documents[j]); }
  int32_t place(size_t j) const { return how_.place_of[row(j)]; }
  bool is_held_out(size_t j, size_t lane) const { return place(j) >= 0 && how_.fold_of[place(j)] == how_.folds[lane]; }

  // One step for a pair in every lane that trains on it; false where it stays at a bound in all of them.
  bool update(size_t j) {
    const float y = c_.sign(j), full = c_.upper(j), norm = X_.squared_norms[row(j)];
    if (full <= 0 || norm <= 0) return false;
    float z[kLanes], changes[kLanes], *alphas = alphas_.data() + j * kLanes;
    dot_lanes(X_.columns_of(row(j)), X_.values_of(row(j)), X_.length(row(j)), w_, z);
    bool is_moved = false, is_free = false;
    for (size_t k = 0; k < kLanes; ++k) {
      changes[k] = 0;
      if (is_held_out(j, k)) continue;
      const float margin = y * z[k], upper = full * how_.costs[k], better = Loss::best(alphas[k], margin, upper, norm);
      if (alphas[k] > 0 || margin < 1 || !Loss::has_bound) {
        const double loss = upper * Loss::loss(margin), quadratic = static_cast<double>(alphas[k]) * margin;
        gap_ += loss - Loss::entropy(alphas[k], upper) + quadratic;
        primal_ += loss + 0.5 * quadratic;
      }
      changes[k] = (better - alphas[k]) * y;
      is_moved |= better != alphas[k];
      is_free |= !Loss::is_at_bound(better, margin, upper, 0.0f);
      alphas[k] = better;
    }
    if (is_moved) add_to_lanes(X_.columns_of(row(j)), X_.values_of(row(j)), X_.length(row(j)), changes, w_);
    return is_moved || is_free;
  }
};

}  // namespace

void cross_fit_classes_in_place(const Documents &X, const Rows &held_out, LossKind loss, const Pairs &pairs,
                                const float *document_weights, const FoldLanes &how, const int32_t *classes, size_t n_classes,
                                const SolverLimits &limits, float *scores) {
  Large<float> w(X.n_columns * kLanes, 0.0f), whole(X.n_columns, 0.0f);
  FeatureSet marks(X.n_columns);
  for (size_t next = 0; next < n_classes; ++next) {
    const auto k = static_cast<size_t>(classes[next]);
    const Class c = pairs.of(k, document_weights);
    with_loss(loss, [&](auto kind) {
      float *mine = scores + static_cast<size_t>(pairs.offsets[k]) * how.n_scores;
      LaneClass<decltype(kind)> lanes(X, c, how, w.data(), whole.data(), mine);
      lanes.solve(limits, limits.seed + k);
      lanes.score(held_out, mine);
      lanes.clear(whole.data(), marks);
    });
  }
}

}  // namespace ramify
