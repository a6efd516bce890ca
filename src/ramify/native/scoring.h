// Scores of sparse documents against all classes of a linear model.
#pragma once
#include "sparse_rows.h"

namespace ramify {

// scores[r, c] = bias[c] + sum over the non-zeros (f, x) of row r of x * weights[f, c], summed in double precision.
void score_rows_in_place(const Rows &X, const float *weights, const double *bias, size_t n_classes, double *scores);

// The same for sparse weights (features × units) that are differences from the parent unit: a unit gets the sum over its path.
// Parents come first.
void score_units_in_place(const Rows &X, const Rows &weights, const int32_t *parent, const double *bias, size_t n_units,
                          double *scores);

}  // namespace ramify
