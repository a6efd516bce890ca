// Softmax regression with a distribution over its weights: an upper bound on the expected log of the denominator.
#pragma once
#include <cstddef>

namespace ramify {

// Scores z (documents × classes) with variances v:
//
//   E ln Σ_k e^z_k ≤ β + Σ_k [ (t_k + ξ_k)/2 + ln(1 + e^−ξ_k) ],   t_k = z_k − β,   ξ_k² = t_k² + v_k
//
// Newton's method moves β of every document to where the bound is least, from where it stands. bounds: the least, by document.
// By document and class: slopes, the derivatives by z, which add up to 1 in a document; twice_lambda, tanh(ξ/2) / 2ξ;
// curvatures, the second derivatives by t.
struct SoftmaxBound {
  double *betas, *bounds, *slopes, *twice_lambda, *curvatures;
};

void minimize_softmax_bound_in_place(const double *scores, const double *variances, size_t n_documents, size_t n_classes,
                                     const SoftmaxBound &bound);

}  // namespace ramify
