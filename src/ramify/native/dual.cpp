// Coordinate ascent on the dual of single classes, each drawn to the weights above it: to zero when classes are independent,
// to the weights of its parent, held fixed, when they are leaves of a tree.
//
// With p above and u = Σ α y x, w = p + u: primal ½‖u‖² + Σ U L(z), dual Σ U h(α / U) − Σ α y p·x − ½‖u‖², z = y w·x.
#include "kernels.h"

namespace ramify {

namespace {

constexpr float kSlack = 0.25f;  // of the largest violation of a pass: how far beyond its bound an idle pair must lie
constexpr size_t kMany = 64;                     // pairs of a new class from which on it does not begin with all of them
constexpr size_t kOthers = 4, kFirstPasses = 3;  // it then begins with one in four of the documents of others
constexpr double kShare = 0.1;    // of the gap: what passes over the active pairs aim for before all pairs are looked at again

struct Known {
  Sums sums;
  double squared_norm;  // of u
};

// Features in rising order, each once, however often it is added.
class FeatureSet {
 public:
  explicit FeatureSet(size_t n_features) : bits_(n_features / 64 + 1, 0) {}
  void add(size_t f) { bits_[f / 64] |= uint64_t{1} << (f % 64); }

  // Work on every feature, which then is no longer in the set.
  template <class Work>
  void drain(Work work) {
    for (size_t word = 0; word < bits_.size(); ++word)
      for (uint64_t &left = bits_[word]; left; left &= left - 1)
        work(word * 64 + static_cast<size_t>(__builtin_ctzll(left)));
  }

 private:
  std::vector<uint64_t> bits_;
};

// The weights of one class after the other. A class whose documents have few of the features touches only these: the others
// are neither added up nor made anew for the next class, so that a class costs what its own documents cost.
class Slate {
 public:
  Large<float> weights;

  explicit Slate(size_t n_features) : weights(n_features), marks_(n_features) {}

  // Start from what lies above, or from zero; is_new: whether that is something else than for the class before.
  void begin(const Rows &X, const Class &c, const float *above, bool is_new) {
    if (!is_clean_ || is_new || above != above_) fill(above);
    above_ = above;
    size_t entries = 0;
    for (size_t j = 0; j < c.n_pairs; ++j) entries += X.length(static_cast<size_t>(c.documents[j]));
    is_clean_ = entries < weights.size() / kFew;
    touched_.clear();
    if (!is_clean_) return;
    for (size_t j = 0; j < c.n_pairs; ++j) {
      const auto row = static_cast<size_t>(c.documents[j]);
      for (size_t p = 0; p < X.length(row); ++p) marks_.add(static_cast<size_t>(X.features_of(row)[p]));
    }
    marks_.drain([&](size_t f) { touched_.push_back(static_cast<int32_t>(f)); });
  }

  void end() {
    for (int32_t f : touched_) weights[static_cast<size_t>(f)] = above_ ? above_[f] : 0.0f;
  }

  // Features in rising order, all but those where the weights are what lies above.
  template <class Work>
  void for_each(Work work) const {
    if (is_clean_)
      for (int32_t f : touched_) work(static_cast<size_t>(f));
    else
      for (size_t f = 0; f < weights.size(); ++f) work(f);
  }

 private:
  static constexpr size_t kFew = 4;
  FeatureSet marks_;
  std::vector<int32_t> touched_;
  const float *above_ = nullptr;
  bool is_clean_ = false;  // whether the weights are what lies above, but for what is touched

  void fill(const float *above) {
    if (above) weights.assign(above, above + weights.size());
    else std::fill(weights.begin(), weights.end(), 0.0f);
  }
};

// Every pair once, without a step: exact sums for the weights as they are.
template <class Loss>
Known look(const Rows &X, const Class &c, const Slate &slate, const float *above, std::vector<float> &margins) {
  Known known{};
  const float *w = slate.weights.data();
  for (size_t j = 0; j < c.n_pairs; ++j) {
    if (j + 1 < c.n_pairs) prefetch_row(X, static_cast<size_t>(c.documents[j + 1]));
    const float z = c.sign(j) * dot(X, static_cast<size_t>(c.documents[j]), w);
    margins[j] = z;
    if (c.upper(j) > 0) known.sums.add<Loss>(c.alphas[j], z, c.upper(j));
  }
  slate.for_each([&](size_t f) {
    const double u = w[f] - (above ? above[f] : 0.0f);
    known.squared_norm += u * u;
  });
  return known;
}

// Weights can be stretched only where nothing lies above them.
Certificate certify(const Known &known, bool may_stretch) {
  Certificate best;
  best.dual = known.sums.entropy - known.sums.quadratic + 0.5 * known.squared_norm;
  for (int k = 0; k < (may_stretch ? kStretches : 1); ++k) {
    const double stretch = kStretch[k], primal = 0.5 * stretch * stretch * known.squared_norm + known.sums.loss[k];
    if (k == 0 || primal < best.primal) best.primal = primal, best.stretch = stretch;
  }
  return best;
}

double estimate_gap(const Sums &sums, bool may_stretch, double squared_norm) {
  double gap = sums.loss[0] - sums.entropy + sums.quadratic;
  for (int k = 1; may_stretch && k < kStretches; ++k)
    gap = std::min(gap, sums.loss[k] - sums.entropy + sums.quadratic +
                            0.5 * (kStretch[k] * kStretch[k] - 1) * squared_norm);
  return gap;
}

// Pairs that are worth a visit: those that do not lie idle at a bound.
template <class Loss>
void wake(const Class &c, const std::vector<float> &margins, Active &active) {
  active.size = 0;
  for (size_t j = 0; j < c.n_pairs; ++j)
    if (c.upper(j) > 0 && !Loss::is_idle(c.alphas[j], margins[j], c.upper(j), 0.0f))
      active.order[active.size++] = static_cast<uint32_t>(j);
}

// A few passes over the own documents of a class and some of the others: enough for most others to be idle from then on.
template <class Loss>
size_t begin_class(const Rows &X, Class &c, Active &active, Random &random, float *w) {
  active.size = 0;
  for (size_t j = 0; j < c.n_pairs; ++j)
    if (j < c.n_positive || j % kOthers == 0) active.order[active.size++] = static_cast<uint32_t>(j);
  for (size_t pass = 0; pass < kFirstPasses; ++pass) ascend<Loss>(X, c, 1.0f, INFINITY, active, random, w, nullptr);
  return kFirstPasses;
}

template <class Loss>
Certificate solve_class(const Rows &X, Class &c, const float *above, double tolerance, size_t max_passes, uint64_t seed,
                        Slate &slate, std::vector<float> &margins) {
  Large<float> &w = slate.weights;
  add_pairs(X, c, w.data());
  const bool may_stretch = Loss::has_corner && !above;
  margins.resize(c.n_pairs);
  Active active(c.n_pairs);
  Random random(seed);
  Certificate found;
  const bool is_new = std::all_of(c.alphas, c.alphas + c.n_pairs, [](float alpha) { return alpha == 0; });
  size_t passes = is_new && c.n_pairs > kMany && max_passes > kFirstPasses ? begin_class<Loss>(X, c, active, random, w.data()) : 0;
  while (true) {
    const Known known = look<Loss>(X, c, slate, above, margins);
    found = certify(known, may_stretch);
    const double gap = found.primal - found.dual, enough = tolerance * found.primal;
    if (gap <= enough || passes >= max_passes) break;
    wake<Loss>(c, margins, active);
    double seen = INFINITY;
    float slack = INFINITY;
    while (seen > std::max(2 * enough, kShare * gap) && active.size > 0 && passes < max_passes) {
      Sums sums;  // taken while weights move, so they only say when to look closely
      slack = kSlack * ascend<Loss>(X, c, 1.0f, slack, active, random, w.data(), &sums);
      seen = estimate_gap(sums, may_stretch, std::max(known.squared_norm, sums.quadratic));
      ++passes;
    }
  }
  found.passes = static_cast<double>(passes);
  return found;
}

}  // namespace

void solve_classes_in_place(const Rows &X, LossKind loss, const Pairs &pairs, const float *document_weights,
                            const Above &above, const int32_t *classes, size_t n_classes, double tolerance,
                            size_t max_passes, uint64_t seed, Certificate *certificates) {
  Slate slate(X.n_features);
  std::vector<float> margins;
  PathWeights path(X.n_features);
  for (size_t next = 0; next < n_classes; ++next) {
    const auto k = static_cast<size_t>(classes[next]);
    Class c = pairs.of(k, document_weights);
    const float *p = path.of(above, k);
    slate.begin(X, c, p, path.is_new());
    certificates[k] = with_loss(loss, [&](auto kind) {
      return solve_class<decltype(kind)>(X, c, p, tolerance, max_passes, seed + k, slate, margins);
    });
    slate.end();
  }
}

// Where a place is that of no feature as it came, which is so for the bias, -1.
static std::vector<int32_t> invert(const int32_t *place, size_t n_places, size_t n_features) {
  std::vector<int32_t> came(n_features, -1);
  for (size_t f = 0; f < n_places; ++f) came[static_cast<size_t>(place[f])] = static_cast<int32_t>(f);
  return came;
}

void gather_classes(const Rows &X, const Pairs &pairs, const double *stretch, const int32_t *place, size_t n_places,
                    float least, size_t first, size_t last, double *bias, WalkResult &result) {
  Large<float> u(X.n_features, 0.0f);
  FeatureSet touched(X.n_features), ordered(n_places);
  const std::vector<int32_t> came = invert(place, n_places, X.n_features);
  for (size_t k = first; k < last; ++k) {
    const Class c = pairs.of(k, nullptr);
    add_pairs(X, c, u.data());
    for (size_t j = 0; j < c.n_pairs; ++j) {
      if (c.alphas[j] == 0) continue;
      const auto row = static_cast<size_t>(c.documents[j]);
      for (size_t p = 0; p < X.length(row); ++p) touched.add(static_cast<size_t>(X.features_of(row)[p]));
    }
    const auto factor = static_cast<float>(stretch[k]);
    bias[k] = stretch[k] * static_cast<double>(u[0]);
    float largest = 0;
    touched.drain([&](size_t f) {
      if (came[f] < 0) return void(u[f] = 0);
      largest = std::max(largest, std::fabs(factor * u[f]));
      ordered.add(static_cast<size_t>(came[f]));
    });
    ordered.drain([&](size_t f) {
      float &weight = u[static_cast<size_t>(place[f])];
      if (weight != 0 && std::fabs(factor * weight) >= least * largest) {
        result.features.push_back(static_cast<int32_t>(f));
        result.values.push_back(factor * weight);
      }
      weight = 0;
    });
    result.units.push_back(static_cast<int64_t>(k));
    result.ends.push_back(static_cast<int64_t>(result.features.size()));
    if ((k - first) % 16 == 0) result.expect(k - first + 1, last - first);
  }
}

void arrange_vectors(const Vectors &vectors, const int32_t *units, size_t n_units, size_t n_features, const int32_t *place,
                     size_t n_places, double *bias, WalkResult &result) {
  Large<float> dense(n_features, 0.0f), ordered(n_places);
  for (size_t next = 0; next < n_units; ++next) {
    const auto unit = static_cast<size_t>(units[next]);
    vectors.add_to(unit, dense.data());
    for (size_t f = 0; f < n_places; ++f) ordered[f] = dense[static_cast<size_t>(place[f])];
    result.keep(unit, ordered.data(), n_places);
    bias[unit] = static_cast<double>(dense[0]);
    std::fill(dense.begin(), dense.end(), 0.0f);
  }
}

}  // namespace ramify
