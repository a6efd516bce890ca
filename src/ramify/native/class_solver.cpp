// Dual coordinate ascent on single classes, each regularized towards the weights of its parent, which are fixed; towards zero
// where it has none.
//
// With p of the parent and u = Σ α y x, w = p + u: primal ½‖u‖² + Σ U L(z), dual Σ U h(α / U) − Σ α y p·x − ½‖u‖², z = y w·x.
#include <cmath>

#include "feature_set.h"
#include "linear.h"

namespace ramify {

namespace {

constexpr float kSlack = 0.25f;  // of the largest violation of a pass: how far beyond its bound an inactive pair must lie
constexpr size_t kMany = 64;  // pairs of a new class from which on it does not start with all of them
constexpr size_t kNegativeStride = 4, kFirstPasses = 3;  // it then starts with one in four of its negatives
constexpr double kInnerGap = 0.1;  // of the gap: what inner passes aim for before all pairs are evaluated again

struct Evaluation {
  Sums sums;
  double squared_norm;  // of u
};

// The weights of one class after the other. A class whose documents have few of the features touches only these: the others
// are neither summed nor reset for the next class, so that a class costs what its own documents cost.
class WeightBuffer {
 public:
  Large<float> weights;

  explicit WeightBuffer(size_t n_features) : weights(n_features), marks_(n_features) {}

  // Starts from the parent's weights, or from zero; is_new: whether they differ from those of the class before.
  void begin(const Rows &X, const Class &c, const float *parent, bool is_new) {
    if (!is_clean_ || is_new || parent != parent_) fill(parent);
    parent_ = parent;
    size_t entries = 0;
    for (size_t j = 0; j < c.n_pairs; ++j) entries += X.length(static_cast<size_t>(c.documents[j]));
    is_clean_ = entries < weights.size() / kFew;
    touched_.clear();
    if (!is_clean_) return;
    for (size_t j = 0; j < c.n_pairs; ++j) {
      const auto row = static_cast<size_t>(c.documents[j]);
      for (size_t p = 0; p < X.length(row); ++p) marks_.add(static_cast<size_t>(X.columns_of(row)[p]));
    }
    marks_.drain([&](size_t f) { touched_.push_back(static_cast<int32_t>(f)); });
  }

  void end() {
    for (int32_t f : touched_) weights[static_cast<size_t>(f)] = parent_ ? parent_[f] : 0.0f;
  }

  // Features in rising order, all but those where the weights equal the parent's.
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
  const float *parent_ = nullptr;
  bool is_clean_ = false;  // whether the weights equal the parent's outside of what is touched

  void fill(const float *parent) {
    if (parent) weights.assign(parent, parent + weights.size());
    else std::fill(weights.begin(), weights.end(), 0.0f);
  }
};

// Every pair once, without a step: exact sums for the weights as they are.
template <class Loss>
Evaluation evaluate(const Documents &X, const Class &c, const WeightBuffer &buffer, const float *parent,
                    std::vector<float> &margins) {
  Evaluation found{};
  const float *w = buffer.weights.data();
  for (size_t j = 0; j < c.n_pairs; ++j) {
    if (j + 1 < c.n_pairs) prefetch_row(X, static_cast<size_t>(c.documents[j + 1]));
    const float z = c.sign(j) * dot(X, static_cast<size_t>(c.documents[j]), w);
    margins[j] = z;
    if (c.upper(j) > 0) found.sums.add<Loss>(c.alphas[j], z, c.upper(j));
  }
  buffer.for_each([&](size_t f) {
    const double u = w[f] - (parent ? parent[f] : 0.0f);
    found.squared_norm += u * u;
  });
  return found;
}

// Weights can be scaled only where there is no parent.
Certificate certify(const Evaluation &found, bool may_scale) {
  Certificate best;
  best.dual = found.sums.entropy - found.sums.quadratic + 0.5 * found.squared_norm;
  for (int k = 0; k < (may_scale ? kNumScales : 1); ++k) {
    const double scale = kScales[k], primal = 0.5 * scale * scale * found.squared_norm + found.sums.loss[k];
    if (k == 0 || primal < best.primal) best.primal = primal, best.scale = scale;
  }
  return best;
}

double estimate_gap(const Sums &sums, bool may_scale, double squared_norm) {
  double gap = sums.loss[0] - sums.entropy + sums.quadratic;
  for (int k = 1; may_scale && k < kNumScales; ++k)
    gap = std::min(gap, sums.loss[k] - sums.entropy + sums.quadratic +
                            0.5 * (kScales[k] * kScales[k] - 1) * squared_norm);
  return gap;
}

// The active set: all pairs but those that stay at a bound.
template <class Loss>
void activate(const Class &c, const std::vector<float> &margins, ActiveOrder &active) {
  active.size = 0;
  for (size_t j = 0; j < c.n_pairs; ++j)
    if (c.upper(j) > 0 && !Loss::is_at_bound(c.alphas[j], margins[j], c.upper(j), 0.0f))
      active.order[active.size++] = static_cast<uint32_t>(j);
}

// A few passes over the positives of a class and some of its negatives: after these most negatives stay at a bound.
template <class Loss>
size_t start_class(const Documents &X, Class &c, ActiveOrder &active, Random &random, float *w) {
  active.size = 0;
  for (size_t j = 0; j < c.n_pairs; ++j)
    if (j < c.n_positive || j % kNegativeStride == 0) active.order[active.size++] = static_cast<uint32_t>(j);
  for (size_t pass = 0; pass < kFirstPasses; ++pass) run_pass<Loss>(X, c, 1.0f, INFINITY, active, random, w, nullptr);
  return kFirstPasses;
}

template <class Loss>
Certificate solve_class(const Documents &X, Class &c, const float *parent, const SolverLimits &limits, uint64_t seed,
                        WeightBuffer &buffer, std::vector<float> &margins) {
  Large<float> &w = buffer.weights;
  const size_t max_passes = limits.max_passes;
  add_pairs(X, c, w.data());
  const bool may_scale = Loss::has_corner && !parent;
  margins.resize(c.n_pairs);
  ActiveOrder active(c.n_pairs);
  Random random(seed);
  Certificate found;
  const bool is_new = std::all_of(c.alphas, c.alphas + c.n_pairs, [](float alpha) { return alpha == 0; });
  const bool starts_small = is_new && c.n_pairs > kMany && max_passes > kFirstPasses;
  size_t passes = starts_small ? start_class<Loss>(X, c, active, random, w.data()) : 0;
  while (true) {
    const Evaluation evaluation = evaluate<Loss>(X, c, buffer, parent, margins);
    found = certify(evaluation, may_scale);
    const double gap = found.primal - found.dual, enough = limits.tolerance * found.primal;
    if (gap <= enough || passes >= max_passes) break;
    activate<Loss>(c, margins, active);
    double estimate = INFINITY;
    float slack = INFINITY;
    while (estimate > std::max(2 * enough, kInnerGap * gap) && active.size > 0 && passes < max_passes) {
      Sums sums;  // taken while weights move, so they only say when to evaluate
      slack = kSlack * run_pass<Loss>(X, c, 1.0f, slack, active, random, w.data(), &sums);
      estimate = estimate_gap(sums, may_scale, std::max(evaluation.squared_norm, sums.quadratic));
      ++passes;
    }
  }
  found.passes = static_cast<double>(passes);
  return found;
}

}  // namespace

void solve_classes_in_place(const Documents &X, LossKind loss, const Pairs &pairs, const float *document_weights,
                            const Ancestors &ancestors, const int32_t *classes, size_t n_classes, const SolverLimits &limits,
                            Certificate *certificates) {
  WeightBuffer buffer(X.n_columns);
  std::vector<float> margins;
  ParentWeights parent_weights(X.n_columns);
  for (size_t next = 0; next < n_classes; ++next) {
    const auto k = static_cast<size_t>(classes[next]);
    Class c = pairs.of(k, document_weights);
    const float *parent = parent_weights.of(ancestors, k);
    buffer.begin(X, c, parent, parent_weights.is_new());
    certificates[k] = with_loss(loss, [&](auto kind) {
      return solve_class<decltype(kind)>(X, c, parent, limits, limits.seed + k, buffer, margins);
    });
    buffer.end();
  }
}

}  // namespace ramify
