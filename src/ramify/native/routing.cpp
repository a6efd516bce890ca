// Exact scores of a few classes for each document, sharing what lies on their paths.
#include "kernels.h"

namespace ramify {

namespace {

// The product of two sparse vectors with rising features; the shorter looks its features up in the longer.
double sparse_dot(const int32_t *f, const float *x, size_t n, const int32_t *g, const float *v, size_t m) {
  double sum = 0;
  const int32_t *here = g, *end = g + m;
  for (size_t k = 0; k < n && here < end; ++k) {
    // doubling steps first: the next feature is often near
    size_t step = 1;
    while (here + step < end && here[step] < f[k]) here += step, step *= 2;
    here = std::lower_bound(here, std::min(here + step + 1, end), f[k]);
    if (here < end && *here == f[k]) sum += static_cast<double>(x[k]) * static_cast<double>(v[here - g]);
  }
  return sum;
}

}  // namespace

void score_candidates(const Rows &X, size_t first, size_t last, const Vectors &deltas, const double *bias,
                      size_t n_units, const int64_t *path_offsets, const int32_t *paths, const int32_t *candidates,
                      size_t n_candidates, float *scores) {
  std::vector<double> found(n_units);
  std::vector<size_t> seen(n_units, SIZE_MAX);  // the row for which a unit's product is known
  for (size_t r = first; r < last; ++r)
    for (size_t k = 0; k < n_candidates; ++k) {
      const int32_t c = candidates[r * n_candidates + k];
      if (c < 0) continue;
      double sum = 0;
      for (int64_t p = path_offsets[c]; p < path_offsets[c + 1]; ++p) {
        const auto unit = static_cast<size_t>(paths[p]);
        if (seen[unit] != r) {
          const int64_t start = deltas.start[unit];
          found[unit] = bias[unit] + sparse_dot(X.features_of(r), X.values_of(r), X.length(r), deltas.features + start,
                                                deltas.values + start, static_cast<size_t>(deltas.end[unit] - start));
          seen[unit] = r;
        }
        sum += found[unit];
      }
      scores[r * n_candidates + k] = static_cast<float>(sum);
    }
}

}  // namespace ramify
