// Scores of sparse documents against all classes of a linear model.
#include "scoring.h"

#include <algorithm>

#include "dispatch.h"

namespace ramify {

// One feature's weights over all classes lie side by side, so the inner loop runs along memory.
RAMIFY_WIDE_CLONES
static void add_scaled(double *scores, const float *weights, double factor, size_t n_classes) {
  for (size_t c = 0; c < n_classes; ++c) scores[c] += factor * static_cast<double>(weights[c]);
}

void score_rows_in_place(const Rows &X, const float *weights, const double *bias, size_t n_classes, double *scores) {
  for (size_t r = 0; r < X.n_rows; ++r) {
    double *row = scores + r * n_classes;
    for (size_t c = 0; c < n_classes; ++c) row[c] = bias[c];
    for (int64_t k = X.offsets[r]; k < X.offsets[r + 1]; ++k)
      add_scaled(row, weights + static_cast<size_t>(X.columns[k]) * n_classes, X.values[k], n_classes);
  }
}

void score_units_in_place(const Rows &X, const Rows &weights, const int32_t *parent, const double *bias, size_t n_units,
                          double *scores) {
  for (size_t r = 0; r < X.n_rows; ++r) {
    double *row = scores + r * n_units;
    std::copy(bias, bias + n_units, row);
    for (int64_t k = X.offsets[r]; k < X.offsets[r + 1]; ++k) {
      const auto x = static_cast<double>(X.values[k]);
      const auto f = static_cast<size_t>(X.columns[k]);
      for (int64_t p = weights.offsets[f]; p < weights.offsets[f + 1]; ++p)
        row[weights.columns[p]] += x * static_cast<double>(weights.values[p]);
    }
    for (size_t unit = 0; unit < n_units; ++unit)
      if (parent[unit] >= 0) row[unit] += row[parent[unit]];
  }
}

}  // namespace ramify
