// Boosting of stumps on the presence of terms, many classes at once.
#pragma once
#include "sparse_rows.h"

namespace ramify {

enum class BoostVariant { real, abstaining, discrete };

// terms: documents × terms, rising. documents: terms × documents, rising. labels: documents × classes, rising.
struct BoostProblem {
  Pattern terms, documents, labels;

  size_t n_documents() const { return terms.n_rows; }
  size_t n_terms() const { return terms.n_columns; }
  size_t n_classes() const { return labels.n_columns; }
};

// The result of every round: its pivot, votes where that is absent and present (rounds × classes), the criterion by which it
// was chosen, and the sum of the weights before they were normalized.
struct BoostRounds {
  int32_t *pivots;
  double *absent, *present, *z, *normalizers;
  size_t n_rounds, n_classes;
};

// Runs rounds of AdaBoost.MH from weights (documents × classes, adding up to one) and leaves in them those after the last
// round. Gives the number of rounds, fewer where no stump lowers the weights.
size_t boost_in_place(const BoostProblem &problem, BoostVariant variant, double epsilon, double *weights,
                      const BoostRounds &rounds);

}  // namespace ramify
