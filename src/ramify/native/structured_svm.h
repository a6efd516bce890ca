// Structured large-margin models: a document scores outputs made of several units, and its own must win by a margin.
#pragma once
#include "sparse_rows.h"

namespace ramify {

// min over W of ½ tr(Wᵀ M W) + Σ_i cost_i max over outputs a of [margin(i, a) + φ_a·W x_i − φ_own·W x_i]
//
// outputs: labels × outputs, those that compete for a document with the label; its own comes first, with margin 0. margins: one
// for each entry of outputs. phi: outputs × units.
struct StructuredProblem {
  Rows X;
  const double *squared_norms;
  const int32_t *labels;
  Pattern outputs;
  const double *margins;
  DoubleRows phi;
};

// inverse: M⁻¹, units × units, null for the identity; then products: φ_a·φ_b, outputs × outputs.
struct OutputMetric {
  const double *products;
  const double *inverse;
  size_t n_outputs;
};

// Dual variables: a document divides its cost among its outputs, from offsets on. weights: features × units, maintained as
// M⁻¹ Σ_i Σ_a alpha (φ_own − φ_a) x_i.
struct StructuredDual {
  const int64_t *offsets;
  double *alphas;
  double *weights;
};

// Dual ascent, one listed document after the other. A step moves cost from the lowest output that has any to the highest, as
// far as is best; a document ends when the two are within the tolerance, or after max_steps. violations: by listed document,
// how far apart these outputs were before the first step.
void update_structured_duals_in_place(const StructuredProblem &problem, const OutputMetric &metric, const int64_t *documents,
                                      size_t n_documents, size_t max_steps, double tolerance, const StructuredDual &dual,
                                      double *violations);

// losses: by document, how far the worst output exceeds the margin; 0 where its own wins by all margins.
// worst: by document, the place of that output among the outputs of its label; the first of equal ones.
void compute_structured_losses_in_place(const StructuredProblem &problem, const double *weights, double *losses,
                                        int32_t *worst);

}  // namespace ramify
