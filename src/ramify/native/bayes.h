// Softmax regression with a distribution over its weights: the expected likelihood from below, and products with documents.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ramify {

// Scores z of documents × classes that are uncertain by the variances v (spreads), and a bound on what their softmax's
// denominator is expected to be:
//
//   E ln Σ_k e^z_k ≤ β + Σ_k [ (t_k + ξ_k)/2 + ln(1 + e^−ξ_k) ],   t_k = z_k − β,   ξ_k² = t_k² + v_k
//
// β is moved to where that is least, from where it stands. bounds: the least, by document. By document and class, what it
// is made of: slopes, its derivatives by z, which add up to 1 in a document; twice_lambda, tanh(ξ/2) / 2ξ; curvatures, the
// second derivative by t.
void settle_documents_in_place(const double *scores, const double *spreads, size_t n_documents, size_t n_classes, double *betas,
                               double *bounds, double *slopes, double *twice_lambda, double *curvatures);

// products[r, c] = Σ over the non-zeros (f, x) of row r of x * dense[f, c].
void multiply_rows_in_place(const int64_t *offsets, const int32_t *features, const double *values, size_t n_rows,
                            const double *dense, size_t n_columns, double *products);

}  // namespace ramify
