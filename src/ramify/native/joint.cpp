// Dual ascent for large margins over joint answers.
#include "joint.h"

#include <algorithm>
#include <vector>

#include "kernels.h"

namespace ramify {

RAMIFY_WIDE_CLONES
static void add_scaled(double *to, const double *from, double factor, size_t n) {
  for (size_t u = 0; u < n; ++u) to[u] += factor * from[u];
}

namespace {

// One document at a time: what its answers score.
class Visit {
 public:
  explicit Visit(const JointProblem &problem) : problem_(problem), scores_(problem.n_units) {}

  // The height of every answer: its score and its margin.
  void open(int64_t document, const double *weights) {
    document_ = document;
    const int64_t first = problem_.answer_offsets[problem_.labels[document]];
    answers_ = problem_.answers + first;
    heights_.resize(static_cast<size_t>(problem_.answer_offsets[problem_.labels[document] + 1] - first));
    std::fill(scores_.begin(), scores_.end(), 0.0);
    for (int64_t k = problem_.offsets[document]; k < problem_.offsets[document + 1]; ++k)
      add_scaled(scores_.data(), weights + static_cast<size_t>(problem_.features[k]) * problem_.n_units,
                 problem_.values[k], problem_.n_units);
    for (size_t a = 0; a < heights_.size(); ++a)
      heights_[a] = problem_.margins[first + static_cast<int64_t>(a)] + sum_over(a, scores_);
  }

  size_t highest() const {
    return static_cast<size_t>(std::max_element(heights_.begin(), heights_.end()) - heights_.begin());
  }

  double loss() const { return heights_[highest()] - heights_[0]; }

 protected:
  // φ of an answer times a number for every unit.
  double sum_over(size_t a, const std::vector<double> &of_units) const {
    double sum = 0;
    for (int64_t p = problem_.unit_offsets[answers_[a]]; p < problem_.unit_offsets[answers_[a] + 1]; ++p)
      sum += problem_.signs[p] * of_units[static_cast<size_t>(problem_.units[p])];
    return sum;
  }

  const JointProblem &problem_;
  int64_t document_ = 0;
  const int32_t *answers_ = nullptr;
  std::vector<double> scores_, heights_;
};

// And the steps between its answers: these happen among the answers alone, and the weights follow once, in the end.
class Steps : public Visit {
 public:
  Steps(const JointProblem &problem, const AnswerMetric &metric)
      : Visit(problem), metric_(metric), change_(problem.n_units), spread_(problem.n_units) {}

  // Steps until the answers that share the cost are equally high; how far apart they were at first.
  double settle(double *alphas, size_t most_steps, double closest, double *weights) {
    moved_.assign(heights_.size(), 0.0);
    best_ = highest();
    worst_ = lowest_shared(alphas);
    const double at_first = heights_[best_] - heights_[worst_];
    bool moved = false;
    for (size_t step = 0; step < most_steps && heights_[best_] - heights_[worst_] > closest; ++step) {
      if (!move(alphas)) break;
      moved = true;
    }
    if (moved) write(weights);
    return at_first;
  }

 private:
  size_t lowest_shared(const double *alphas) const {
    size_t lowest = best_;
    for (size_t a = 0; a < heights_.size(); ++a)
      if (alphas[a] > 0 && heights_[a] < heights_[lowest]) lowest = a;
    return lowest;
  }

  // Moves some of the cost from the lowest answer that has any to the highest, as far as is best.
  bool move(double *alphas) {
    direct();
    const double squared = problem_.squared_norms[document_];
    const double curvature = squared * (direction_[best_] - direction_[worst_]);
    const double apart = heights_[best_] - heights_[worst_], most = alphas[worst_];
    const double taken = curvature * most <= apart ? most : apart / curvature;
    if (!(taken > 0)) return false;
    alphas[best_] += taken;
    alphas[worst_] = taken == most ? 0 : most - taken;
    moved_[best_] += taken;
    moved_[worst_] -= taken;
    reckon(alphas, taken * squared);
    return true;
  }

  // φ_a·M⁻¹(φ_best − φ_worst) of every answer a.
  void direct() {
    direction_.resize(heights_.size());
    if (metric_.products) {
      const double *of_best = products(best_), *of_worst = products(worst_);
      for (size_t a = 0; a < heights_.size(); ++a) direction_[a] = of_best[answers_[a]] - of_worst[answers_[a]];
      return;
    }
    std::fill(spread_.begin(), spread_.end(), 0.0);
    spread_answer(best_, 1);
    spread_answer(worst_, -1);
    for (size_t a = 0; a < heights_.size(); ++a) direction_[a] = sum_over(a, spread_);
  }

  const double *products(size_t a) const {
    return metric_.products + static_cast<size_t>(answers_[a]) * metric_.n_answers;
  }

  void spread_answer(size_t a, double factor) {
    for (int64_t p = problem_.unit_offsets[answers_[a]]; p < problem_.unit_offsets[answers_[a] + 1]; ++p)
      add_scaled(spread_.data(), metric_.inverse + static_cast<size_t>(problem_.units[p]) * problem_.n_units,
                 factor * problem_.signs[p], problem_.n_units);
  }

  // The heights after a step, and which are the highest and the lowest with a share now.
  void reckon(const double *alphas, double factor) {
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
    for (size_t a = 0; a < heights_.size(); ++a) {
      if (moved_[a] == 0) continue;
      for (int64_t p = problem_.unit_offsets[answers_[a]]; p < problem_.unit_offsets[answers_[a] + 1]; ++p)
        change_[static_cast<size_t>(problem_.units[p])] -= moved_[a] * problem_.signs[p];
    }
    spread();
    changed_.clear();
    for (size_t u = 0; u < problem_.n_units; ++u)
      if (change_[u] != 0) changed_.push_back(u);
    const bool is_sparse = changed_.size() * 8 < problem_.n_units;
    for (int64_t k = problem_.offsets[document_]; k < problem_.offsets[document_ + 1]; ++k) {
      double *of_feature = weights + static_cast<size_t>(problem_.features[k]) * problem_.n_units;
      const double x = problem_.values[k];
      if (!is_sparse)
        add_scaled(of_feature, change_.data(), x, problem_.n_units);
      else
        for (const size_t u : changed_) of_feature[u] += x * change_[u];
    }
    for (const size_t u : changed_) change_[u] = 0;
  }

  void spread() {
    if (!metric_.inverse) return;
    std::fill(spread_.begin(), spread_.end(), 0.0);
    for (size_t u = 0; u < problem_.n_units; ++u)
      if (change_[u] != 0) add_scaled(spread_.data(), metric_.inverse + u * problem_.n_units, change_[u], problem_.n_units);
    change_.swap(spread_);
  }

  const AnswerMetric &metric_;
  size_t best_ = 0, worst_ = 0;
  std::vector<double> moved_, direction_, change_, spread_;
  std::vector<size_t> changed_;
};

}  // namespace

void ascend_answers_in_place(const JointProblem &problem, const AnswerMetric &metric, const int64_t *documents,
                             size_t n_documents, size_t most_steps, double closest, const int64_t *alpha_offsets,
                             double *alphas, double *weights, double *furthest) {
  Steps steps(problem, metric);
  for (size_t d = 0; d < n_documents; ++d) {
    steps.open(documents[d], weights);
    furthest[d] = steps.settle(alphas + alpha_offsets[documents[d]], most_steps, closest, weights);
  }
}

void measure_answers_in_place(const JointProblem &problem, size_t n_documents, const double *weights, double *losses,
                              int32_t *worst) {
  Visit visit(problem);
  for (size_t d = 0; d < n_documents; ++d) {
    visit.open(static_cast<int64_t>(d), weights);
    losses[d] = visit.loss();
    worst[d] = static_cast<int32_t>(visit.highest());
  }
}

}  // namespace ramify
