// Scores of sparse documents against all classes of a linear model.
#include "kernels.h"

namespace ramify {

// One feature's weights over all classes lie side by side, so the inner loop runs along memory.
RAMIFY_WIDE_CLONES
static void add_scaled(double *scores, const float *weights, double factor, size_t n_classes) {
  for (size_t c = 0; c < n_classes; ++c) scores[c] += factor * static_cast<double>(weights[c]);
}

void score_rows_in_place(const int64_t *offsets, const int32_t *features, const float *values, size_t n_rows,
                         const float *weights, const double *bias, size_t n_classes, double *scores) {
  for (size_t r = 0; r < n_rows; ++r) {
    double *row = scores + r * n_classes;
    for (size_t c = 0; c < n_classes; ++c) row[c] = bias[c];
    for (int64_t k = offsets[r]; k < offsets[r + 1]; ++k)
      add_scaled(row, weights + static_cast<size_t>(features[k]) * n_classes, values[k], n_classes);
  }
}

void score_units_in_place(const int64_t *offsets, const int32_t *features, const float *values, size_t n_rows,
                          const int64_t *by_feature, const int32_t *units, const float *weights, const int32_t *parent,
                          const double *bias, size_t n_units, double *scores) {
  for (size_t r = 0; r < n_rows; ++r) {
    double *row = scores + r * n_units;
    std::copy(bias, bias + n_units, row);
    for (int64_t k = offsets[r]; k < offsets[r + 1]; ++k) {
      const auto x = static_cast<double>(values[k]);
      for (int64_t p = by_feature[features[k]]; p < by_feature[features[k] + 1]; ++p) row[units[p]] += x * weights[p];
    }
    for (size_t unit = 0; unit < n_units; ++unit)
      if (parent[unit] >= 0) row[unit] += row[parent[unit]];
  }
}

}  // namespace ramify
