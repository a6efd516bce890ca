// Large margins over joint answers: every document scores answers made of several units, and its own must win by a margin.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ramify {

// min over W of ½ tr(Wᵀ M W) + Σ_i cost_i max over answers a of [margin(i, a) + φ_a·W x_i − φ_own·W x_i]
//
// Documents are compressed rows. The answers that compete for a document depend on its label: for label l they stand from
// answer_offsets[l] on, its own first, with margin 0. φ of an answer: the units from unit_offsets on, with their signs.
struct JointProblem {
  const int64_t *offsets;
  const int32_t *features;
  const float *values;
  const double *squared_norms;
  const int32_t *labels;
  const int64_t *answer_offsets;
  const int32_t *answers;
  const double *margins;
  const int64_t *unit_offsets;
  const int32_t *units;
  const double *signs;
  size_t n_units;
};

// How answers lie to each other. inverse: M⁻¹, units × units, null for the identity; then products: φ_a·φ_b, answers × answers.
struct AnswerMetric {
  const double *products;
  const double *inverse;
  size_t n_answers;
};

// Ascends the dual, one listed document after the other. A document shares out its cost over its answers (alphas, from
// alpha_offsets on); a step moves some from the answer that deserves it least to the one that does most, as far as is best.
// weights: features × units, kept at M⁻¹ Σ_i Σ_a alpha (φ_own − φ_a) x_i. furthest: by listed document, how far apart those
// two answers were before the first step.
void ascend_answers_in_place(const JointProblem &problem, const AnswerMetric &metric, const int64_t *documents,
                             size_t n_documents, size_t most_steps, double closest, const int64_t *alpha_offsets,
                             double *alphas, double *weights, double *furthest);

// losses: by document, what weights leave of the margin at the worst answer; 0 where its own wins by all margins.
// worst: by document, the place of that answer among the answers of its label; of equals the first.
void measure_answers_in_place(const JointProblem &problem, size_t n_documents, const double *weights, double *losses,
                              int32_t *worst);

}  // namespace ramify
