// Exact scores of a few classes for each document; the products of units on several paths are computed once.
#include "linear.h"

namespace ramify {

namespace {

// The product of two sparse vectors with rising features; those of the first are searched in the second.
double sparse_dot(const int32_t *f, const float *x, size_t n, const int32_t *g, const float *v, size_t m) {
  double sum = 0;
  const int32_t *at = g, *end = g + m;
  for (size_t k = 0; k < n && at < end; ++k) {
    // doubling steps first: the next feature is often close
    size_t step = 1;
    while (at + step < end && at[step] < f[k]) at += step, step *= 2;
    at = std::lower_bound(at, std::min(at + step + 1, end), f[k]);
    if (at < end && *at == f[k]) sum += static_cast<double>(x[k]) * static_cast<double>(v[at - g]);
  }
  return sum;
}

}  // namespace

void score_candidates_in_place(const Rows &X, const Rows &deltas, const double *bias, const Pattern &paths,
                               const int32_t *candidates, size_t n_candidates, float *scores) {
  std::vector<double> product(deltas.n_rows);
  std::vector<size_t> last_row(deltas.n_rows, SIZE_MAX);  // the row for which a unit's product is computed
  for (size_t r = 0; r < X.n_rows; ++r)
    for (size_t k = 0; k < n_candidates; ++k) {
      const int32_t c = candidates[r * n_candidates + k];
      if (c < 0) continue;
      double sum = 0;
      for (int64_t p = paths.offsets[c]; p < paths.offsets[c + 1]; ++p) {
        const auto unit = static_cast<size_t>(paths.columns[p]);
        if (last_row[unit] != r) {
          product[unit] = bias[unit] + sparse_dot(X.columns_of(r), X.values_of(r), X.length(r), deltas.columns_of(unit),
                                                  deltas.values_of(unit), deltas.length(unit));
          last_row[unit] = r;
        }
        sum += product[unit];
      }
      scores[r * n_candidates + k] = static_cast<float>(sum);
    }
}

}  // namespace ramify
