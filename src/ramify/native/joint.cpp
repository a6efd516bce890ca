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

// One document at a time: what its units and answers score, and the steps between its answers.
class Visit {
 public:
  explicit Visit(const JointProblem &problem)
      : problem_(problem), scores_(problem.n_units), change_(problem.n_units), direction_(problem.n_units) {}

  // Scores of the units, and of every answer with its margin.
  void open(int64_t document, const double *weights) {
    document_ = document;
    first_ = problem_.answer_offsets[problem_.labels[document]];
    n_ = static_cast<size_t>(problem_.answer_offsets[problem_.labels[document] + 1] - first_);
    std::fill(scores_.begin(), scores_.end(), 0.0);
    for (int64_t k = problem_.offsets[document]; k < problem_.offsets[document + 1]; ++k)
      add_scaled(scores_.data(), row(weights, k), problem_.values[k], problem_.n_units);
    deserved_.resize(n_);
    reckon();
  }

  size_t worst() const {
    return static_cast<size_t>(std::max_element(deserved_.begin(), deserved_.end()) - deserved_.begin());
  }

  double loss() const { return deserved_[worst()] - deserved_[0]; }

  // Steps until the answers that share the cost deserve it equally; how far apart they were at first.
  double settle(double *alphas, size_t most_steps, double closest, double *weights) {
    double at_first = 0;
    bool moved = false;
    for (size_t step = 0; step < most_steps; ++step) {
      const size_t best = worst();
      const size_t worst = argmin_of_shared(alphas, best);
      const double apart = deserved_[best] - deserved_[worst];
      if (step == 0) at_first = apart;
      if (!(apart > closest)) break;
      moved |= move(alphas, worst, best, apart);
      reckon();
    }
    if (moved) write(weights);
    return at_first;
  }

 private:
  template <typename W>
  W *row(W *weights, int64_t k) const {
    return weights + static_cast<size_t>(problem_.features[k]) * problem_.n_units;
  }

  void reckon() {
    for (size_t a = 0; a < n_; ++a) {
      const int32_t answer = problem_.answers[first_ + static_cast<int64_t>(a)];
      double sum = problem_.margins[first_ + static_cast<int64_t>(a)];
      for (int64_t p = problem_.unit_offsets[answer]; p < problem_.unit_offsets[answer + 1]; ++p)
        sum += problem_.signs[p] * scores_[static_cast<size_t>(problem_.units[p])];
      deserved_[a] = sum;
    }
  }

  size_t argmin_of_shared(const double *alphas, size_t best) const {
    size_t worst = best;
    for (size_t a = 0; a < n_; ++a)
      if (alphas[a] > 0 && deserved_[a] < deserved_[worst]) worst = a;
    return worst;
  }

  bool move(double *alphas, size_t from, size_t to, double apart) {
    direct(from, to);
    const double squared = problem_.squared_norms[document_];
    const double curvature = squared * squared_length();
    const double most = alphas[from];
    const double taken = curvature * most <= apart ? most : apart / curvature;
    if (!(taken > 0)) return false;
    alphas[to] += taken;
    alphas[from] = taken == most ? 0 : alphas[from] - taken;
    for (const int32_t unit : touched_) {
      const auto u = static_cast<size_t>(unit);
      if (!problem_.inverse) {
        change_[u] -= taken * direction_[u];
        scores_[u] -= taken * squared * direction_[u];
      } else {
        const double *metric = problem_.inverse + u * problem_.n_units;
        add_scaled(change_.data(), metric, -taken * direction_[u], problem_.n_units);
        add_scaled(scores_.data(), metric, -taken * squared * direction_[u], problem_.n_units);
      }
    }
    return true;
  }

  // φ of one answer minus that of another, and the units where it is not zero.
  void direct(size_t from, size_t to) {
    for (const int32_t unit : touched_) direction_[static_cast<size_t>(unit)] = 0;
    touched_.clear();
    add_answer(to, 1);
    add_answer(from, -1);
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    const auto is_zero = [this](int32_t unit) { return direction_[static_cast<size_t>(unit)] == 0; };
    touched_.erase(std::remove_if(touched_.begin(), touched_.end(), is_zero), touched_.end());
  }

  void add_answer(size_t a, double factor) {
    const int32_t answer = problem_.answers[first_ + static_cast<int64_t>(a)];
    for (int64_t p = problem_.unit_offsets[answer]; p < problem_.unit_offsets[answer + 1]; ++p) {
      touched_.push_back(problem_.units[p]);
      direction_[static_cast<size_t>(problem_.units[p])] += factor * problem_.signs[p];
    }
  }

  double squared_length() const {
    double sum = 0;
    for (const int32_t unit : touched_) {
      const auto u = static_cast<size_t>(unit);
      if (!problem_.inverse) {
        sum += direction_[u] * direction_[u];
        continue;
      }
      for (const int32_t other : touched_)
        sum += direction_[u] * direction_[static_cast<size_t>(other)] *
               problem_.inverse[u * problem_.n_units + static_cast<size_t>(other)];
    }
    return sum;
  }

  void write(double *weights) {
    changed_.clear();
    for (size_t u = 0; u < problem_.n_units; ++u)
      if (change_[u] != 0) changed_.push_back(u);
    const bool is_sparse = changed_.size() * 8 < problem_.n_units;
    for (int64_t k = problem_.offsets[document_]; k < problem_.offsets[document_ + 1]; ++k) {
      double *of_feature = row(weights, k);
      const double x = problem_.values[k];
      if (!is_sparse)
        add_scaled(of_feature, change_.data(), x, problem_.n_units);
      else
        for (const size_t u : changed_) of_feature[u] += x * change_[u];
    }
    for (const size_t u : changed_) change_[u] = 0;
  }

  const JointProblem &problem_;
  int64_t document_ = 0, first_ = 0;
  size_t n_ = 0;
  std::vector<double> scores_, change_, direction_, deserved_;
  std::vector<int32_t> touched_;
  std::vector<size_t> changed_;
};

}  // namespace

void ascend_answers_in_place(const JointProblem &problem, const int64_t *documents, size_t n_documents, size_t most_steps,
                             double closest, const int64_t *alpha_offsets, double *alphas, double *weights,
                             double *furthest) {
  Visit visit(problem);
  for (size_t d = 0; d < n_documents; ++d) {
    visit.open(documents[d], weights);
    furthest[d] = visit.settle(alphas + alpha_offsets[documents[d]], most_steps, closest, weights);
  }
}

void measure_answers_in_place(const JointProblem &problem, size_t n_documents, const double *weights, double *losses,
                              int32_t *worst) {
  Visit visit(problem);
  for (size_t d = 0; d < n_documents; ++d) {
    visit.open(static_cast<int64_t>(d), weights);
    losses[d] = visit.loss();
    worst[d] = static_cast<int32_t>(visit.worst());
  }
}

}  // namespace ramify
