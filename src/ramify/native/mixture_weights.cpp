// Fits the weights of mixtures of word estimates along the path from a unit to the root.
#include <cmath>
#include <numeric>

#include "mixtures.h"

namespace ramify {
namespace {

constexpr double kMinEmSteps = 10;  // steps of expectation and maximization before Newton's
constexpr double kRounding = 1e-9;  // of weighted counts: a remainder below it is rounding

// The relative frequency of a word, after some data were left out.
double frequency(double count, double count_out, double total, double total_out) {
  return total - total_out > kRounding * total ? std::max(0.0, count - count_out) / (total - total_out) : 0.0;
}

// A word of a unit's documents: its count, the unit's own estimate, and where the estimates of the units above stand.
struct Token {
  double times, own;
  int32_t slot;
};

struct Evidence {
  std::vector<Token> tokens;
  std::vector<double> above;  // slots × units above
  size_t n_above = 0;
};

// Collects the evidence for one unit after the other.
class EvidenceCollector {
 public:
  EvidenceCollector(const WordCounts &counts, const LabelledDocuments &documents, const MixtureLimits &limits)
      : by_word_(counts.by_word), totals_(counts.totals), documents_(documents), leave_one_out_(limits.leave_one_out),
        by_document_(limits.by_document), slot_of_(counts.by_word.n_rows, -1) {}

  // Of the documents of some units, whose paths are equally long.
  const Evidence &of(const int32_t *units, size_t n_units, const Pattern &paths, const Pattern &unit_documents) {
    found_.tokens.clear(), found_.above.clear();
    found_.n_above = paths.length(static_cast<size_t>(units[0])) - 1;
    for (size_t k = 0; k < n_units; ++k) {
      const auto unit = static_cast<size_t>(units[k]);
      for (const int32_t *document = unit_documents.begin(unit); document != unit_documents.end(unit); ++document)
        add(paths.begin(unit), paths.length(unit), static_cast<size_t>(*document));
      for (const int32_t word : words_) slot_of_[word] = -1;
      words_.clear();
    }
    return found_;
  }

 private:
  void add(const int32_t *path, size_t length, size_t document) {
    const Rows &words = documents_.words;
    const int64_t first = words.offsets[document], last = words.offsets[document + 1];
    double all = 0;
    for (int64_t p = first; p < last; ++p) all += words.values[p];
    all *= documents_.weights[document];
    // how often the document counts at each unit of the path: the same everywhere, unless it is multi-label
    times_.resize(length);
    for (size_t i = 0; i < length; ++i)
      times_[i] = value_at(documents_.units, documents_.times, document, path[i]);
    const bool is_private = leave_one_out_ && std::any_of(times_.begin(), times_.end(), [&](double m) { return m != times_[0]; });
    const double out = leave_one_out_ ? times_[0] : 0.0;
    const double each = by_document_ ? times_[0] * documents_.weights[document] / all : times_[0];
    for (int64_t p = first; p < last; ++p) {
      const int32_t word = words.columns[p];
      const double x = words.values[p] * documents_.weights[document];
      if (x == 0) continue;
      int32_t slot = slot_of_[word];
      if (slot < 0 || is_private) {
        slot = describe(path, length, word, is_private ? x : 0.0, is_private ? all : 0.0);
        if (!is_private) slot_of_[word] = slot, words_.push_back(word);
      }
      const double count = value_at(by_word_, by_word_.values, static_cast<size_t>(word), path[0]);
      found_.tokens.push_back({each * x, frequency(count, out * x, totals_[path[0]], out * all), slot});
    }
  }

  // The estimates of the units above, each without the data of the unit below it, and without a document.
  int32_t describe(const int32_t *path, size_t length, int32_t word, double x, double all) {
    const auto w = static_cast<size_t>(word);
    const auto slot = static_cast<int32_t>(length > 1 ? found_.above.size() / (length - 1) : 0);
    double below = value_at(by_word_, by_word_.values, w, path[0]);
    for (size_t i = 1; i < length; ++i) {
      const double own = value_at(by_word_, by_word_.values, w, path[i]), out = times_[i] - times_[i - 1];
      const double total = totals_[path[i]] - totals_[path[i - 1]];
      const bool is_empty = total <= kRounding * totals_[path[i]];
      found_.above.push_back(is_empty ? 0.0 : frequency(own - below, out * x, total, out * all));
      below = own;
    }
    return slot;
  }

  const DoubleRows &by_word_;
  const double *totals_;
  const LabelledDocuments &documents_;
  const bool leave_one_out_, by_document_;
  std::vector<int32_t> slot_of_, words_;
  std::vector<double> times_;
  Evidence found_;
};

// The likelihood of a unit's words as a function of the weights of the estimates on its path: mean ln Σ_i weight_i θ_i over
// words, and over earlier words that are attributed to one estimate or another.
class Likelihood {
 public:
  Likelihood(const Evidence &evidence, double uniform, const double *earlier)
      : evidence_(evidence), uniform_(uniform), earlier_(earlier), n_(evidence.n_above + 2), row_(n_), gradient(n_), curvature(n_ * n_) {
    for (const Token &token : evidence.tokens) words_ += token.times;
    for (size_t i = 0; i < n_; ++i) words_ += earlier[i];
  }

  size_t size() const { return n_; }

  // The gradient, which is also what a step of expectation and maximization multiplies the weights with.
  void differentiate(const double *weights) {
    std::fill(gradient.begin(), gradient.end(), 0.0);
    for (const Token &token : evidence_.tokens) {
      const double each = token.times / mix(token, weights);
      for (size_t i = 0; i < n_; ++i) gradient[i] += each * row_[i];
    }
    for (size_t i = 0; i < n_; ++i) gradient[i] = (gradient[i] + (earlier_[i] > 0 ? earlier_[i] / weights[i] : 0.0)) / words_;
  }

  // The negative second derivatives.
  void differentiate_twice(const double *weights) {
    std::fill(curvature.begin(), curvature.end(), 0.0);
    for (const Token &token : evidence_.tokens) {
      const double sum = mix(token, weights), each = token.times / (sum * sum * words_);
      for (size_t i = 0; i < n_; ++i)
        for (size_t j = 0; j <= i; ++j) curvature[i * n_ + j] += each * row_[i] * row_[j];
    }
    for (size_t i = 0; i < n_; ++i) {
      if (earlier_[i] > 0) curvature[i * n_ + i] += earlier_[i] / (weights[i] * weights[i] * words_);
      for (size_t j = 0; j < i; ++j) curvature[j * n_ + i] = curvature[i * n_ + j];
    }
  }

  double at(const double *weights) {
    constexpr size_t kBlock = 256;
    double logs[kBlock], sum = 0;
    const size_t n_tokens = evidence_.tokens.size();
    for (size_t first = 0; first < n_tokens; first += kBlock) {
      const size_t n = std::min(kBlock, n_tokens - first);
      for (size_t k = 0; k < n; ++k) {
        logs[k] = mix(evidence_.tokens[first + k], weights);
        if (!(logs[k] > 0)) return -HUGE_VAL;  // a word that these weights make impossible
      }
      take_logs(logs, n);
      for (size_t k = 0; k < n; ++k) sum += evidence_.tokens[first + k].times * logs[k];
    }
    for (size_t i = 0; i < n_; ++i)
      if (earlier_[i] > 0) sum += earlier_[i] * std::log(weights[i]);
    return sum / words_;
  }

 private:
  // The probability of a word under the weights; the estimates stand in row_.
  double mix(const Token &token, const double *weights) {
    const double *above = evidence_.above.data() + static_cast<size_t>(token.slot) * (n_ - 2);
    row_[0] = token.own, row_[n_ - 1] = uniform_;
    double sum = weights[0] * token.own + weights[n_ - 1] * uniform_;
    for (size_t i = 1; i + 1 < n_; ++i) sum += weights[i] * (row_[i] = above[i - 1]);
    return sum;
  }

  const Evidence &evidence_;
  const double uniform_, *earlier_;
  const size_t n_;
  double words_ = 0;
  std::vector<double> row_;

 public:
  std::vector<double> gradient, curvature;
};

// The weights of 0 and more that maximize a quadratic model of the likelihood, less the sum of the weights.
class QuadraticModel {
 public:
  explicit QuadraticModel(size_t n) : weights(n), n_(n), is_free_(n), matrix_(n * n), right_(n) {}

  void maximize(const Likelihood &likelihood, const double *from) {
    const double *H = likelihood.curvature.data();
    for (size_t i = 0; i < n_; ++i) is_free_[i] = H[i * n_ + i] > 0 && (from[i] > 0 || likelihood.gradient[i] > 1);
    for (size_t attempt = 0; attempt < 4 * n_; ++attempt) {
      solve(likelihood, from);
      size_t worst = n_;
      for (size_t i = 0; i < n_; ++i)  // those that would fall below 0 are held there
        if (is_free_[i] && weights[i] < 0) is_free_[i] = false, weights[i] = 0, worst = i;
      if (worst < n_) continue;
      double most = 1e-12;
      for (size_t i = 0; i < n_; ++i) {  // the one that gains most is released
        const double slope = likelihood.gradient[i] - 1 - pull(H + i * n_, from);
        if (!is_free_[i] && H[i * n_ + i] > 0 && slope > most) most = slope, worst = i;
      }
      if (worst == n_) return;
      is_free_[worst] = true;
    }
    for (double &weight : weights) weight = std::max(weight, 0.0);
  }

  std::vector<double> weights;

 private:
  double pull(const double *row, const double *from) const {
    double sum = 0;
    for (size_t j = 0; j < n_; ++j) sum += row[j] * (weights[j] - from[j]);
    return sum;
  }

  // The free weights that make the slopes vanish, the others being 0, by elimination.
  void solve(const Likelihood &likelihood, const double *from) {
    std::copy(likelihood.curvature.begin(), likelihood.curvature.end(), matrix_.begin());
    for (size_t i = 0; i < n_; ++i) {
      right_[i] = 0;
      if (!is_free_[i]) continue;
      right_[i] = likelihood.gradient[i] - 1;
      for (size_t j = 0; j < n_; ++j) right_[i] += likelihood.curvature[i * n_ + j] * from[j];
      matrix_[i * n_ + i] *= 1 + 1e-13;  // two estimates may say the same
    }
    for (size_t i = 0; i < n_; ++i) {
      if (!is_free_[i]) continue;
      for (size_t k = i + 1; k < n_; ++k) {
        if (!is_free_[k]) continue;
        const double factor = matrix_[k * n_ + i] / matrix_[i * n_ + i];
        for (size_t j = i; j < n_; ++j) matrix_[k * n_ + j] -= factor * matrix_[i * n_ + j];
        right_[k] -= factor * right_[i];
      }
    }
    for (size_t i = n_; i-- > 0;) {
      weights[i] = right_[i];
      if (!is_free_[i]) continue;
      for (size_t j = i + 1; j < n_; ++j)
        if (is_free_[j]) weights[i] -= matrix_[i * n_ + j] * weights[j];
      weights[i] /= matrix_[i * n_ + i];
    }
  }

  const size_t n_;
  std::vector<char> is_free_;
  std::vector<double> matrix_, right_;
};

enum class NewtonStep { accepted, too_long, converged };

// One step of Newton's, shortened until the likelihood rises.
NewtonStep try_newton_step(Likelihood &likelihood, QuadraticModel &model, double *weights, std::vector<double> &tried) {
  const size_t n = likelihood.size();
  likelihood.differentiate_twice(weights);
  model.maximize(likelihood, weights);
  const std::vector<double> &aim = model.weights;
  double rise = 0, farthest = 0;
  for (size_t i = 0; i < n; ++i) {
    rise += (likelihood.gradient[i] - 1) * (aim[i] - weights[i]);
    farthest = std::max(farthest, std::abs(aim[i] - weights[i]));
  }
  if (!(rise > 0) || farthest < 1e-14) return NewtonStep::converged;
  const double before = likelihood.at(weights) - 1;  // the weights add up to 1
  const double rounding = 1e-12 * std::abs(before);
  tried.resize(n);
  for (double part = 1; part > 1e-6; part /= 2) {
    double sum = 0;
    for (size_t i = 0; i < n; ++i) sum += tried[i] = weights[i] + part * (aim[i] - weights[i]);
    if (likelihood.at(tried.data()) - sum >= before + 0.01 * part * rise - rounding) {
      for (size_t i = 0; i < n; ++i) weights[i] = tried[i] / sum;
      return NewtonStep::accepted;
    }
  }
  return NewtonStep::too_long;
}

// Steps of expectation and maximization, a few of them or all; after these, Newton's. Gives their number, and max_steps + 1
// where more were needed.
int32_t maximize(Likelihood &likelihood, double tolerance, size_t max_steps, size_t max_em_steps, double *weights) {
  QuadraticModel model(likelihood.size());
  std::vector<double> tried;
  size_t step = 0;
  for (;; ++step) {
    likelihood.differentiate(weights);
    if (*std::max_element(likelihood.gradient.begin(), likelihood.gradient.end()) - 1 <= tolerance) break;
    if (step == max_steps) return static_cast<int32_t>(max_steps + 1);
    const NewtonStep found = step < max_em_steps ? NewtonStep::too_long : try_newton_step(likelihood, model, weights, tried);
    if (found == NewtonStep::converged) break;
    if (found == NewtonStep::too_long)
      for (size_t i = 0; i < likelihood.size(); ++i) weights[i] *= likelihood.gradient[i];
  }
  return static_cast<int32_t>(step);
}

// Equal weights; where there are no words to train on, only for estimates that have data.
void start_weights(const double *totals, const int32_t *path, size_t length, bool has_words, double *weights) {
  double below = 0, sum = 1;
  weights[length] = 1;
  for (size_t i = 0; i < length; ++i) {
    const double total = totals[path[i]];
    weights[i] = has_words || total - below > kRounding * total ? 1 : 0;
    sum += weights[i];
    below = total;
  }
  for (size_t i = 0; i <= length; ++i) weights[i] /= sum;
}

}  // namespace

void fit_mixtures_in_place(const WordCounts &counts, const Pattern &paths, const LabelledDocuments &documents,
                           const Pattern &unit_documents, const Pattern &groups, const MixtureLimits &limits,
                           const double *expected, double *weights, int32_t *steps) {
  EvidenceCollector collector(counts, documents, limits);
  const double uniform = 1.0 / static_cast<double>(counts.by_word.n_rows);
  for (size_t k = 0; k < groups.n_rows; ++k) {
    const auto first = static_cast<size_t>(*groups.begin(k));
    const size_t length = paths.length(first);
    const Evidence &evidence = collector.of(groups.begin(k), groups.length(k), paths, unit_documents);
    const double sum = std::accumulate(expected, expected + length + 1, 0.0);
    start_weights(counts.totals, paths.begin(first), length, !evidence.tokens.empty(), weights);
    steps[k] = 0;
    if (!evidence.tokens.empty()) {
      Likelihood likelihood(evidence, uniform, expected);
      double em_steps = std::max(kMinEmSteps, limits.em_words / static_cast<double>(evidence.tokens.size()));
      if (std::isfinite(em_steps)) em_steps = std::min(em_steps, 0.5 * static_cast<double>(limits.max_steps));
      steps[k] = maximize(likelihood, limits.tolerance, limits.max_steps, static_cast<size_t>(std::min(em_steps, 1e9)), weights);
    } else if (sum > 0) {
      for (size_t i = 0; i <= length; ++i) weights[i] = expected[i] / sum;
    }
    expected += length + 1, weights += length + 1;
  }
}

}  // namespace ramify
