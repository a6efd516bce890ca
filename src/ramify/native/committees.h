// Scores by committees of stumps, from the root down.
#pragma once
#include "sparse_rows.h"

namespace ramify {

// Committees folded into sums. pivots: committees × columns, rising. class_offsets: where the classes of each committee start.
// bias: one for each class. sums, from sum_offsets of a committee on: pivot by pivot, what its presence adds to each class.
// roots: committees that score every document. below: classes × committees, those that score a document which passes a class.
struct Committees {
  Pattern pivots;
  const int64_t *class_offsets;
  const double *bias;
  const int64_t *sum_offsets;
  const double *sums;
  const int32_t *roots;
  size_t n_roots;
  Pattern below;

  size_t n_committees() const { return pivots.n_rows; }
  size_t n_classes() const { return below.n_rows; }
};

// scores[r, c] of every class of every committee that row r reaches; NaN for the others. A class passes above the threshold.
void score_committees_in_place(const Committees &committees, const Pattern &X, double threshold, float *scores);

// The nodes of every row: those listed for each class with a score above 0 (classes × nodes), and those that always pass.
PatternRows predict_committees(const Committees &committees, const Pattern &X, const Pattern &nodes, const int32_t *always,
                               size_t n_always);

}  // namespace ramify
