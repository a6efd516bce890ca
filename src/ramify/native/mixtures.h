// Mixtures of word estimates along the path from a unit to the root: fitting their weights, and scoring with them.
#pragma once
#include <algorithm>

#include "sparse_rows.h"

namespace ramify {

// How often each word occurs in the documents of each unit (words × units, units rising). totals: over all words, by unit.
struct WordCounts {
  DoubleRows by_word;
  const double *totals;
};

// Documents × words with counts, a weight for each, and the units that it belongs to (documents × units) and how many times.
struct LabelledDocuments {
  Rows words;
  const double *weights;
  Pattern units;
  const int32_t *times;
};

// leave_one_out: the documents are among the counts, so each is subtracted from them in turn. by_document: each document counts
// as much as any other of its weight, and not each word. When to stop: no weights can make the words likelier by more than the
// tolerance, in nats per word, or after max_steps. After ten steps of expectation and maximization, or as many as read em_words,
// at most half of max_steps, come Newton's, which end at the same likelihood.
struct MixtureLimits {
  bool leave_one_out, by_document;
  double tolerance;
  size_t max_steps;
  double em_words;
};

// For each group of units the weights of the estimates along their paths (paths: units × units, from each to the root, equally
// long in a group), and of the uniform one, that maximize the likelihood of the words of their documents (units × documents). An
// estimate leaves out what the unit below it counted, and with leave_one_out the document in question. expected: words
// attributed to each estimate earlier, which count too. weights, expected: group by group, one for each estimate. steps: of each
// group; max_steps + 1 where that many did not reach the tolerance.
void fit_mixtures_in_place(const WordCounts &counts, const Pattern &paths, const LabelledDocuments &documents,
                           const Pattern &unit_documents, const Pattern &groups, const MixtureLimits &limits,
                           const double *expected, double *weights, int32_t *steps);

// scores[r, k] = priors[k] + sum over the words of row r of count * ln(probability of the word along the path of units[k]).
// factors: weight / total of every estimate, placed as the weights are.
void score_mixtures_in_place(const WordCounts &counts, const Pattern &paths, const double *factors, const int32_t *units,
                             size_t n_units, const double *priors, const Rows &X, double *scores);

// The value of a column in a sorted sparse row; 0 where it is not there.
template <typename T>
inline double value_at(const Pattern &rows, const T *values, size_t row, int32_t column) {
  const int32_t *found = std::lower_bound(rows.begin(row), rows.end(row), column);
  return found != rows.end(row) && *found == column ? static_cast<double>(values[found - rows.columns]) : 0.0;
}

// The natural logarithm of positive numbers, in place, to some 1e-14.
void take_logs(double *x, size_t n);

}  // namespace ramify
