// Scores of documents by mixtures of word estimates.
#include <cstring>
#include <tuple>

#include "dispatch.h"
#include "mixtures.h"

namespace ramify {

// Without branches, so that many go side by side.
RAMIFY_WIDE_CLONES
void take_logs(double *x, size_t n) {
  for (size_t k = 0; k < n; ++k) {
    uint64_t bits;
    std::memcpy(&bits, x + k, sizeof bits);
    // x = m 2^e with m from sqrt(1/2) to sqrt(2)
    const uint64_t shifted = bits - 0x3fe6a09e667f3bcdULL;
    const uint64_t exponent = (shifted >> 52) + (shifted >> 63 ? 0xfffffffffffff000ULL : 0);  // arithmetic shift
    bits -= exponent << 52;
    double m;
    std::memcpy(&m, &bits, sizeof m);
    // exponents are small integers: added to 1.5 * 2^52 they stand in the low bits of a double
    uint64_t lifted = 0x4338000000000000ULL + exponent;
    double e;
    std::memcpy(&e, &lifted, sizeof e);
    e -= 6755399441055744.0;
    const double s = (m - 1) / (m + 1), t = s * s;  // ln m = 2 artanh s
    double sum = 2.0 / 19;
    for (int power = 17; power > 0; power -= 2) sum = sum * t + 2.0 / power;
    x[k] = e * 0.693147180559945309417 + s * sum;
  }
}

namespace {

// The probability of a word along a unit's path, given its counts at all units.
double mix(const Pattern &paths, const double *factors, int32_t unit, const double *count) {
  const double *factor = factors + paths.offsets[unit] + unit;
  const int64_t first = paths.offsets[unit], last = paths.offsets[unit + 1];
  double sum = factor[last - first], below = 0;
  for (int64_t p = first; p < last; ++p, ++factor) {
    const double own = count[paths.columns[p]];
    sum += *factor * (own - below);
    below = own;
  }
  return sum;
}

constexpr size_t kDocumentsPerBlock = 1024;  // documents that share the logarithms of a word

struct Occurrence {
  int32_t word;
  uint32_t row;
  float count;
};

}  // namespace

void score_mixtures_in_place(const WordCounts &counts, const Pattern &paths, const double *factors, const int32_t *units,
                             size_t n_units, const double *priors, const Rows &X, double *scores) {
  const DoubleRows &by_word = counts.by_word;
  std::vector<int32_t> on_paths;  // all units on the paths
  for (size_t k = 0; k < n_units; ++k)
    on_paths.insert(on_paths.end(), paths.begin(static_cast<size_t>(units[k])), paths.end(static_cast<size_t>(units[k])));
  std::sort(on_paths.begin(), on_paths.end());
  on_paths.erase(std::unique(on_paths.begin(), on_paths.end()), on_paths.end());
  std::vector<Occurrence> occurrences;
  std::vector<double> count(by_word.n_columns, 0.0), logs(n_units);
  for (size_t start = 0; start < X.n_rows; start += kDocumentsPerBlock) {
    const size_t end = std::min(X.n_rows, start + kDocumentsPerBlock);
    occurrences.clear();
    for (size_t r = start; r < end; ++r) {
      std::copy(priors, priors + n_units, scores + r * n_units);
      for (int64_t p = X.offsets[r]; p < X.offsets[r + 1]; ++p)
        if (X.values[p] != 0) occurrences.push_back({X.columns[p], static_cast<uint32_t>(r), X.values[p]});
    }
    std::sort(occurrences.begin(), occurrences.end(), [](const Occurrence &a, const Occurrence &b) {
      return std::tie(a.word, a.row) < std::tie(b.word, b.row);
    });
    for (size_t t = 0; t < occurrences.size();) {
      const int32_t word = occurrences[t].word;
      const int64_t first = by_word.offsets[word], last = by_word.offsets[word + 1];
      const bool is_long = last - first > 8 * static_cast<int64_t>(on_paths.size());  // a search for each unit is quicker
      if (is_long)
        for (const int32_t unit : on_paths)
          count[static_cast<size_t>(unit)] = value_at(by_word, by_word.values, static_cast<size_t>(word), unit);
      else
        for (int64_t p = first; p < last; ++p) count[static_cast<size_t>(by_word.columns[p])] = by_word.values[p];
      for (size_t k = 0; k < n_units; ++k) logs[k] = mix(paths, factors, units[k], count.data());
      if (is_long)
        for (const int32_t unit : on_paths) count[static_cast<size_t>(unit)] = 0;
      else
        for (int64_t p = first; p < last; ++p) count[static_cast<size_t>(by_word.columns[p])] = 0;
      take_logs(logs.data(), n_units);
      for (; t < occurrences.size() && occurrences[t].word == word; ++t) {
        double *row = scores + static_cast<size_t>(occurrences[t].row) * n_units;
        const double times = static_cast<double>(occurrences[t].count);
        for (size_t k = 0; k < n_units; ++k) row[k] += times * logs[k];
      }
    }
  }
}

}  // namespace ramify
