// Dual ascent for structured large-margin models.
#include "structured_svm.h"

#include <algorithm>
#include <vector>

#include "dispatch.h"

namespace ramify {

RAMIFY_WIDE_CLONES
static void add_scaled(double *to, const double *from, double factor, size_t n) {
  for (size_t u = 0; u < n; ++u) to[u] += factor * from[u];
}

namespace {

// The scores of the outputs of one document at a time.
class OutputScores {
 public:
  explicit OutputScores(const StructuredProblem &problem) : problem_(problem), n_units_(problem.phi.n_columns), scores_(n_units_) {}

  // The height of every output: its score plus its margin.
  void open(int64_t document, const double *weights) {
    document_ = document;
    const auto label = static_cast<size_t>(problem_.labels[document]);
    const int64_t first = problem_.outputs.offsets[label];
    outputs_ = problem_.outputs.begin(label);
    heights_.resize(problem_.outputs.length(label));
    std::fill(scores_.begin(), scores_.end(), 0.0);
    const Rows &X = problem_.X;
    for (int64_t k = X.offsets[document]; k < X.offsets[document + 1]; ++k)
      add_scaled(scores_.data(), weights + static_cast<size_t>(X.columns[k]) * n_units_, X.values[k], n_units_);
    for (size_t a = 0; a < heights_.size(); ++a)
      heights_[a] = problem_.margins[first + static_cast<int64_t>(a)] + sum_over(a, scores_);
  }

  size_t highest() const {
    return static_cast<size_t>(std::max_element(heights_.begin(), heights_.end()) - heights_.begin());
  }

  double loss() const { return heights_[highest()] - heights_[0]; }

 protected:
  // φ of an output times a number for every unit.
  double sum_over(size_t a, const std::vector<double> &of_units) const {
    double sum = 0;
    const DoubleRows &phi = problem_.phi;
    for (int64_t p = phi.offsets[outputs_[a]]; p < phi.offsets[outputs_[a] + 1]; ++p)
      sum += phi.values[p] * of_units[static_cast<size_t>(phi.columns[p])];
    return sum;
  }

  const StructuredProblem &problem_;
  const size_t n_units_;
  int64_t document_ = 0;
  const int32_t *outputs_ = nullptr;
  std::vector<double> scores_, heights_;
};

// Steps between the outputs of a document: these change the heights alone, and the weights follow once, in the end.
class DualSteps : public OutputScores {
 public:
  DualSteps(const StructuredProblem &problem, const OutputMetric &metric)
      : OutputScores(problem), metric_(metric), change_(n_units_), transformed_(n_units_) {}

  // Steps until all outputs with a part of the cost are equally high; gives how far apart they were at first.
  double solve(double *alphas, size_t max_steps, double tolerance, double *weights) {
    moved_.assign(heights_.size(), 0.0);
    best_ = highest();
    worst_ = lowest_active(alphas);
    const double at_first = heights_[best_] - heights_[worst_];
    bool moved = false;
    for (size_t step = 0; step < max_steps && heights_[best_] - heights_[worst_] > tolerance; ++step) {
      if (!move(alphas)) break;
      moved = true;
    }
    if (moved) write(weights);
    return at_first;
  }

 private:
  size_t lowest_active(const double *alphas) const {
    size_t lowest = best_;
    for (size_t a = 0; a < heights_.size(); ++a)
      if (alphas[a] > 0 && heights_[a] < heights_[lowest]) lowest = a;
    return lowest;
  }

  // Moves some of the cost from the lowest output that has any to the highest, as far as is best.
  bool move(double *alphas) {
    find_direction();
    const double squared = problem_.squared_norms[document_];
    const double curvature = squared * (direction_[best_] - direction_[worst_]);
    const double apart = heights_[best_] - heights_[worst_], most = alphas[worst_];
    const double taken = curvature * most <= apart ? most : apart / curvature;
    if (!(taken > 0)) return false;
    alphas[best_] += taken;
    alphas[worst_] = taken == most ? 0 : most - taken;
    moved_[best_] += taken;
    moved_[worst_] -= taken;
    update_heights(alphas, taken * squared);
    return true;
  }

  // φ_a·M⁻¹(φ_best − φ_worst) of every output a.
  void find_direction() {
    direction_.resize(heights_.size());
    if (metric_.products) {
      const double *of_best = products(best_), *of_worst = products(worst_);
      for (size_t a = 0; a < heights_.size(); ++a) direction_[a] = of_best[outputs_[a]] - of_worst[outputs_[a]];
      return;
    }
    std::fill(transformed_.begin(), transformed_.end(), 0.0);
    add_transformed(best_, 1);
    add_transformed(worst_, -1);
    for (size_t a = 0; a < heights_.size(); ++a) direction_[a] = sum_over(a, transformed_);
  }

  const double *products(size_t a) const {
    return metric_.products + static_cast<size_t>(outputs_[a]) * metric_.n_outputs;
  }

  void add_transformed(size_t a, double factor) {
    const DoubleRows &phi = problem_.phi;
    for (int64_t p = phi.offsets[outputs_[a]]; p < phi.offsets[outputs_[a] + 1]; ++p)
      add_scaled(transformed_.data(), metric_.inverse + static_cast<size_t>(phi.columns[p]) * n_units_, factor * phi.values[p],
                 n_units_);
  }

  // The heights after a step, and which output is the highest, and which the lowest with a part of the cost.
  void update_heights(const double *alphas, double factor) {
    size_t best = 0, worst = heights_.size();
    for (size_t a = 0; a < heights_.size(); ++a) {
      heights_[a] -= factor * direction_[a];
      if (heights_[a] > heights_[best]) best = a;
      if (alphas[a] > 0 && (worst == heights_.size() || heights_[a] < heights_[worst])) worst = a;
    }
    best_ = best;
    worst_ = worst == heights_.size() ? best : worst;
  }

  void write(double *weights) {
    const DoubleRows &phi = problem_.phi;
    for (size_t a = 0; a < heights_.size(); ++a) {
      if (moved_[a] == 0) continue;
      for (int64_t p = phi.offsets[outputs_[a]]; p < phi.offsets[outputs_[a] + 1]; ++p)
        change_[static_cast<size_t>(phi.columns[p])] -= moved_[a] * phi.values[p];
    }
    transform();
    changed_.clear();
    for (size_t u = 0; u < n_units_; ++u)
      if (change_[u] != 0) changed_.push_back(u);
    const bool is_sparse = changed_.size() * 8 < n_units_;
    const Rows &X = problem_.X;
    for (int64_t k = X.offsets[document_]; k < X.offsets[document_ + 1]; ++k) {
      double *of_feature = weights + static_cast<size_t>(X.columns[k]) * n_units_;
      const double x = X.values[k];
      if (!is_sparse)
        add_scaled(of_feature, change_.data(), x, n_units_);
      else
        for (const size_t u : changed_) of_feature[u] += x * change_[u];
    }
    for (const size_t u : changed_) change_[u] = 0;
  }

  void transform() {
    if (!metric_.inverse) return;
    std::fill(transformed_.begin(), transformed_.end(), 0.0);
    for (size_t u = 0; u < n_units_; ++u)
      if (change_[u] != 0) add_scaled(transformed_.data(), metric_.inverse + u * n_units_, change_[u], n_units_);
    change_.swap(transformed_);
  }

  const OutputMetric &metric_;
  size_t best_ = 0, worst_ = 0;
  std::vector<double> moved_, direction_, change_, transformed_;
  std::vector<size_t> changed_;
};

}  // namespace

void update_structured_duals_in_place(const StructuredProblem &problem, const OutputMetric &metric, const int64_t *documents,
                                      size_t n_documents, size_t max_steps, double tolerance, const StructuredDual &dual,
                                      double *violations) {
  DualSteps steps(problem, metric);
  for (size_t d = 0; d < n_documents; ++d) {
    steps.open(documents[d], dual.weights);
    violations[d] = steps.solve(dual.alphas + dual.offsets[documents[d]], max_steps, tolerance, dual.weights);
  }
}

void compute_structured_losses_in_place(const StructuredProblem &problem, const double *weights, double *losses,
                                        int32_t *worst) {
  OutputScores outputs(problem);
  for (size_t d = 0; d < problem.X.n_rows; ++d) {
    outputs.open(static_cast<int64_t>(d), weights);
    losses[d] = outputs.loss();
    worst[d] = static_cast<int32_t>(outputs.highest());
  }
}

}  // namespace ramify
