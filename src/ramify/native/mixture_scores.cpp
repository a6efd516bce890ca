// Scores of documents by mixtures of word estimates.
#include <cstring>
#include <tuple>

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
    // exponents are small whole numbers: added to 1.5 * 2^52 they stand in the low bits of a double
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

// What the estimates along a unit's path say of a word, given its counts at all units.
double mix(const Paths &paths, const double *factors, int32_t unit, const double *count) {
  const double *factor = factors + paths.offsets[unit] + unit;
  const int64_t first = paths.offsets[unit], last = paths.offsets[unit + 1];
  double sum = factor[last - first], below = 0;
  for (int64_t p = first; p < last; ++p, ++factor) {
    const double here = count[paths.units[p]];
    sum += *factor * (here - below);
    below = here;
  }
  return sum;
}

constexpr size_t AT_ONCE = 1024;  // documents that share what is found out about a word

}  // namespace

void score_mixtures_in_place(const WordCounts &counts, const Paths &paths, const double *factors, const int32_t *units,
                             size_t n_units, const double *priors, const int64_t *offsets, const int32_t *words,
                             const float *values, size_t n_rows, size_t n_all_units, double *scores) {
  struct Place {
    int32_t word;
    uint32_t row;
    float times;
  };
  std::vector<int32_t> needed;  // all units on the paths
  for (size_t k = 0; k < n_units; ++k)
    needed.insert(needed.end(), paths.units + paths.offsets[units[k]], paths.units + paths.offsets[units[k] + 1]);
  std::sort(needed.begin(), needed.end());
  needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
  std::vector<Place> places;
  std::vector<double> count(n_all_units, 0.0), logs(n_units);
  for (size_t start = 0; start < n_rows; start += AT_ONCE) {
    const size_t end = std::min(n_rows, start + AT_ONCE);
    places.clear();
    for (size_t r = start; r < end; ++r) {
      std::copy(priors, priors + n_units, scores + r * n_units);
      for (int64_t p = offsets[r]; p < offsets[r + 1]; ++p)
        if (values[p] != 0) places.push_back({words[p], static_cast<uint32_t>(r), values[p]});
    }
    std::sort(places.begin(), places.end(),
              [](const Place &a, const Place &b) { return std::tie(a.word, a.row) < std::tie(b.word, b.row); });
    for (size_t t = 0; t < places.size();) {
      const int32_t word = places[t].word;
      const int64_t first = counts.offsets[word], last = counts.offsets[word + 1];
      const bool is_long = last - first > 8 * static_cast<int64_t>(needed.size());  // a look at each unit is quicker
      if (is_long)
        for (const int32_t unit : needed)
          count[unit] = value_of(counts.offsets, counts.units, counts.values, static_cast<size_t>(word), unit);
      else
        for (int64_t p = first; p < last; ++p) count[counts.units[p]] = counts.values[p];
      for (size_t k = 0; k < n_units; ++k) logs[k] = mix(paths, factors, units[k], count.data());
      if (is_long)
        for (const int32_t unit : needed) count[unit] = 0;
      else
        for (int64_t p = first; p < last; ++p) count[counts.units[p]] = 0;
      take_logs(logs.data(), n_units);
      for (; t < places.size() && places[t].word == word; ++t) {
        double *row = scores + static_cast<size_t>(places[t].row) * n_units;
        const double times = places[t].times;
        for (size_t k = 0; k < n_units; ++k) row[k] += times * logs[k];
      }
    }
  }
}

}  // namespace ramify
