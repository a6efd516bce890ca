// Mixtures of word estimates along the path from a unit to the top: learning their weights.
#include <cmath>
#include <numeric>

#include "mixtures.h"

namespace ramify {
namespace {

constexpr double FEWEST_PLAIN = 10;  // steps of expectation and maximization before Newton's
constexpr double NOTHING = 1e-9;  // what is left of weighted counts, relative to them, when all was taken out

// What some data say of a word, after something was taken out of them.
double share(double count, double count_out, double total, double total_out) {
  return total - total_out > NOTHING * total ? std::max(0.0, count - count_out) / (total - total_out) : 0.0;
}

// The words of a unit's documents: how often, what the unit itself says of the word, and what the units above it say.
struct Token {
  double times, own;
  int32_t slot;  // of what is above
};

struct Evidence {
  std::vector<Token> tokens;
  std::vector<double> above;  // slots × units above
  size_t n_above = 0;
};

// Collects the evidence for one unit after the other.
class Witness {
 public:
  Witness(const WordCounts &counts, const TaggedRows &rows, bool leave_one_out)
      : counts_(counts), rows_(rows), leave_one_out_(leave_one_out), slot_of_(counts.n_words, -1) {}

  const Evidence &of(const int32_t *path, size_t length, const int32_t *documents, size_t n_documents) {
    found_.tokens.clear(), found_.above.clear(), words_.clear();
    found_.n_above = length - 1;
    for (size_t k = 0; k < n_documents; ++k) add(path, length, static_cast<size_t>(documents[k]));
    for (const int32_t word : words_) slot_of_[word] = -1;
    return found_;
  }

 private:
  void add(const int32_t *path, size_t length, size_t document) {
    const int64_t first = rows_.offsets[document], last = rows_.offsets[document + 1];
    double all = 0;
    for (int64_t p = first; p < last; ++p) all += rows_.values[p];
    all *= rows_.weights[document];
    // how often the document counts at each unit of the path: the same everywhere, unless it has several labels
    often_.resize(length);
    for (size_t i = 0; i < length; ++i)
      often_[i] = value_of(rows_.tag_offsets, rows_.tags, rows_.tag_times, document, path[i]);
    const bool is_private = leave_one_out_ && std::any_of(often_.begin(), often_.end(), [&](double m) { return m != often_[0]; });
    const double out = leave_one_out_ ? often_[0] : 0.0;
    for (int64_t p = first; p < last; ++p) {
      const int32_t word = rows_.words[p];
      const double x = rows_.values[p] * rows_.weights[document];
      if (x == 0) continue;
      int32_t slot = slot_of_[word];
      if (slot < 0 || is_private) {
        slot = describe(path, length, word, is_private ? x : 0.0, is_private ? all : 0.0);
        if (!is_private) slot_of_[word] = slot, words_.push_back(word);
      }
      const double count = value_of(counts_.offsets, counts_.units, counts_.values, static_cast<size_t>(word), path[0]);
      found_.tokens.push_back({often_[0] * x, share(count, out * x, counts_.totals[path[0]], out * all), slot});
    }
  }

  // What the units above say of a word, each without the data of the unit below it, and without a document.
  int32_t describe(const int32_t *path, size_t length, int32_t word, double x, double all) {
    const auto w = static_cast<size_t>(word);
    const auto slot = static_cast<int32_t>(length > 1 ? found_.above.size() / (length - 1) : 0);
    double below = value_of(counts_.offsets, counts_.units, counts_.values, w, path[0]);
    for (size_t i = 1; i < length; ++i) {
      const double here = value_of(counts_.offsets, counts_.units, counts_.values, w, path[i]), out = often_[i] - often_[i - 1];
      const double total = counts_.totals[path[i]] - counts_.totals[path[i - 1]];
      const bool is_empty = total <= NOTHING * counts_.totals[path[i]];
      found_.above.push_back(is_empty ? 0.0 : share(here - below, out * x, total, out * all));
      below = here;
    }
    return slot;
  }

  const WordCounts &counts_;
  const TaggedRows &rows_;
  const bool leave_one_out_;
  std::vector<int32_t> slot_of_, words_;
  std::vector<double> often_;
  Evidence found_;
};

// The likelihood of a unit's words as a function of the weights of the estimates on its path: mean ln Σ_i weight_i θ_i over
// words, and over earlier words that are known to come from one estimate or another.
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
    constexpr size_t AT_ONCE = 256;
    double logs[AT_ONCE], sum = 0;
    const size_t n_tokens = evidence_.tokens.size();
    for (size_t first = 0; first < n_tokens; first += AT_ONCE) {
      const size_t n = std::min(AT_ONCE, n_tokens - first);
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
  // What the weights make of a word; what each estimate says stands in row_.
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

// Where the likelihood, less the sum of the weights, is foreseen to be highest among weights of 0 and more.
class Outlook {
 public:
  explicit Outlook(size_t n) : weights(n), n_(n), is_free_(n), matrix_(n * n), right_(n) {}

  void foresee(const Likelihood &likelihood, const double *from) {
    const double *H = likelihood.curvature.data();
    for (size_t i = 0; i < n_; ++i) is_free_[i] = H[i * n_ + i] > 0 && (from[i] > 0 || likelihood.gradient[i] > 1);
    for (size_t attempt = 0; attempt < 4 * n_; ++attempt) {
      solve(likelihood, from);
      size_t worst = n_;
      for (size_t i = 0; i < n_; ++i)  // those that would fall below 0 are held there
        if (is_free_[i] && weights[i] < 0) is_free_[i] = false, weights[i] = 0, worst = i;
      if (worst < n_) continue;
      double most = 1e-12;
      for (size_t i = 0; i < n_; ++i) {  // one that would gain from being let go is let go
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

enum class Leap { taken, too_long, nothing_to_gain };

// One step of Newton's, shortened until the likelihood rises.
Leap leap(Likelihood &likelihood, Outlook &outlook, double *weights, std::vector<double> &tried) {
  const size_t n = likelihood.size();
  likelihood.differentiate_twice(weights);
  outlook.foresee(likelihood, weights);
  const std::vector<double> &aim = outlook.weights;
  double rise = 0, farthest = 0;
  for (size_t i = 0; i < n; ++i) {
    rise += (likelihood.gradient[i] - 1) * (aim[i] - weights[i]);
    farthest = std::max(farthest, std::abs(aim[i] - weights[i]));
  }
  if (!(rise > 0) || farthest < 1e-14) return Leap::nothing_to_gain;
  const double before = likelihood.at(weights) - 1;  // the weights add up to 1
  const double rounding = 1e-12 * std::abs(before);
  tried.resize(n);
  for (double part = 1; part > 1e-6; part /= 2) {
    double sum = 0;
    for (size_t i = 0; i < n; ++i) sum += tried[i] = weights[i] + part * (aim[i] - weights[i]);
    if (likelihood.at(tried.data()) - sum >= before + 0.01 * part * rise - rounding) {
      for (size_t i = 0; i < n; ++i) weights[i] = tried[i] / sum;
      return Leap::taken;
    }
  }
  return Leap::too_long;
}

// Steps of expectation and maximization, a few of them or all; after these, Newton's. Gives how many were taken.
int32_t climb(Likelihood &likelihood, double tolerance, size_t most_steps, size_t most_plain, double *weights) {
  Outlook outlook(likelihood.size());
  std::vector<double> tried;
  size_t step = 0;
  for (; step < most_steps; ++step) {
    likelihood.differentiate(weights);
    if (*std::max_element(likelihood.gradient.begin(), likelihood.gradient.end()) - 1 <= tolerance) break;
    const Leap found = step < most_plain ? Leap::too_long : leap(likelihood, outlook, weights, tried);
    if (found == Leap::nothing_to_gain) break;
    if (found == Leap::too_long)
      for (size_t i = 0; i < likelihood.size(); ++i) weights[i] *= likelihood.gradient[i];
  }
  return static_cast<int32_t>(step);
}

// Equal weights; where there are no words to learn from, only for estimates that have data.
void start_weights(const WordCounts &counts, const int32_t *path, size_t length, bool has_words, double *weights) {
  double below = 0, sum = 1;
  weights[length] = 1;
  for (size_t i = 0; i < length; ++i) {
    const double total = counts.totals[path[i]];
    weights[i] = has_words || total - below > NOTHING * total ? 1 : 0;
    sum += weights[i];
    below = total;
  }
  for (size_t i = 0; i <= length; ++i) weights[i] /= sum;
}

}  // namespace

void fit_mixtures_in_place(const WordCounts &counts, const Paths &paths, const TaggedRows &rows, const Listed &documents,
                           const int32_t *units, size_t n_units, bool leave_one_out, double tolerance, size_t most_steps,
                           double plain_words, const double *expected, double *weights, int32_t *steps) {
  Witness witness(counts, rows, leave_one_out);
  const double uniform = 1.0 / static_cast<double>(counts.n_words);
  for (size_t k = 0; k < n_units; ++k) {
    const int32_t unit = units[k];
    const int32_t *path = paths.units + paths.offsets[unit];
    const auto length = static_cast<size_t>(paths.offsets[unit + 1] - paths.offsets[unit]);
    const int64_t place = paths.offsets[unit] + unit;  // the uniform estimate is one more than the path has
    const Evidence &evidence = witness.of(path, length, documents.items + documents.offsets[unit],
                                          static_cast<size_t>(documents.offsets[unit + 1] - documents.offsets[unit]));
    double *mine = weights + place;
    const double *earlier = expected + place, known = std::accumulate(earlier, earlier + length + 1, 0.0);
    start_weights(counts, path, length, !evidence.tokens.empty(), mine);
    steps[k] = 0;
    if (!evidence.tokens.empty()) {
      Likelihood likelihood(evidence, uniform, earlier);
      const double plain = std::max(FEWEST_PLAIN, plain_words / static_cast<double>(evidence.tokens.size()));
      steps[k] = climb(likelihood, tolerance, most_steps, static_cast<size_t>(std::min(plain, 1e9)), mine);
    } else if (known > 0) {
      for (size_t i = 0; i <= length; ++i) mine[i] = earlier[i] / known;
    }
  }
}

}  // namespace ramify
