// Boosting of stumps on the presence of terms, many classes at once.
#pragma once
#include "kernels.h"

namespace ramify {

enum class Variant { real = 0, abstaining = 1, discrete = 2 };

// Documents as terms, terms as documents, both rising, and the classes of each document.
struct BoostProblem {
  const int64_t *offsets;
  const int32_t *terms;
  const int64_t *by_term;
  const int32_t *documents;
  const int64_t *label_offsets;
  const int32_t *labels;
  size_t n_documents, n_terms, n_classes;
};

// Some of many rows. kept: the items that are taken, rising, each with its place among them for a number; null for all as they
// are.
LabelRows take_rows(const int64_t *offsets, const int32_t *items, const int32_t *rows, size_t n_rows, const int32_t *kept,
                    size_t n_kept);

// Numbers the items that occur, in their order; gives these items.
std::vector<int32_t> compact_in_place(int32_t *items, size_t n_items, size_t n_columns);

// For every item below n_columns the rows that have it.
LabelRows turn_rows(const int64_t *offsets, const int32_t *items, size_t n_rows, size_t n_columns);

// What every round adds: its pivot, votes where that is absent and present (rounds × classes), the criterion by which it was
// chosen, and the sum of the weights before they were made to add up to one again.
struct BoostRounds {
  int32_t *pivots;
  double *absent, *present, *z, *normalizers;
};

// Runs rounds of AdaBoost.MH from weights (documents × classes, adding up to one) and leaves in them those after the last
// round. Gives the number of rounds, fewer where nothing is left to learn.
size_t boost_in_place(const BoostProblem &problem, Variant variant, double epsilon, size_t n_rounds, double *weights,
                      const BoostRounds &rounds);

// Committees that have become sums: per committee its pivots (columns, rising), and per class a bias and, pivot by pivot, what
// its presence adds. top: committees that every document meets. below: committees that a document meets once it passes a class.
struct Committees {
  const int64_t *pivot_offsets;
  const int32_t *pivots;
  const int64_t *class_offsets;
  const double *bias;
  const int64_t *sum_offsets;
  const double *sums;
  const int32_t *top;
  const int64_t *below_offsets;
  const int32_t *below;
  size_t n_committees, n_top, n_classes, n_columns;
};

// scores[r, c] of every class of every committee that row r meets; NaN for the others. A class is passed above the threshold.
void score_committees_in_place(const Committees &committees, const int64_t *offsets, const int32_t *columns, size_t n_rows,
                               double threshold, float *scores);

// The nodes that every row passes: those listed for each class with a score above 0, and those that are passed always.
LabelRows pass_committees(const Committees &committees, const int64_t *offsets, const int32_t *columns, size_t n_rows,
                          const int64_t *node_offsets, const int32_t *nodes, const int32_t *always, size_t n_always);

}  // namespace ramify
