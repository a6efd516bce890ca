// Scores by committees of stumps, met from the top down.
#include <cmath>
#include <limits>

#include "boosting.h"

namespace ramify {
namespace {

RAMIFY_WIDE_CLONES void add_in_place(const double *more, size_t n, double *sums) {
  for (size_t j = 0; j < n; ++j) sums[j] += more[j];
}

// The scores of one committee's classes: the bias, and what each pivot adds that the row has.
void judge(const Committees &all, size_t committee, const int32_t *columns, size_t n_columns, double *scores) {
  const int64_t first = all.class_offsets[committee];
  const auto m = static_cast<size_t>(all.class_offsets[committee + 1] - first);
  std::copy(all.bias + first, all.bias + first + m, scores);
  const int32_t *pivots = all.pivots + all.pivot_offsets[committee], *end = all.pivots + all.pivot_offsets[committee + 1];
  const double *sums = all.sums + all.sum_offsets[committee];
  if (static_cast<size_t>(end - pivots) == all.n_columns) {  // every column is a pivot
    for (size_t p = 0; p < n_columns; ++p) add_in_place(sums + static_cast<size_t>(columns[p]) * m, m, scores);
    return;
  }
  const int32_t *from = pivots;  // columns rise, and so do pivots
  for (size_t p = 0; p < n_columns && from != end; ++p) {
    from = std::lower_bound(from, end, columns[p]);
    if (from != end && *from == columns[p]) add_in_place(sums + static_cast<size_t>(from - pivots) * m, m, scores);
  }
}

}  // namespace

void score_committees_in_place(const Committees &all, const int64_t *offsets, const int32_t *columns, size_t n_rows,
                               double threshold, float *scores) {
  std::vector<double> local(all.n_classes);
  std::vector<int32_t> waiting;
  std::fill(scores, scores + n_rows * all.n_classes, std::numeric_limits<float>::quiet_NaN());
  for (size_t r = 0; r < n_rows; ++r) {
    const int32_t *row = columns + offsets[r];
    const auto n = static_cast<size_t>(offsets[r + 1] - offsets[r]);
    float *given = scores + r * all.n_classes;
    waiting.assign(all.top, all.top + all.n_top);
    while (!waiting.empty()) {
      const auto committee = static_cast<size_t>(waiting.back());
      waiting.pop_back();
      judge(all, committee, row, n, local.data());
      for (int64_t c = all.class_offsets[committee]; c < all.class_offsets[committee + 1]; ++c) {
        const double score = local[static_cast<size_t>(c - all.class_offsets[committee])];
        given[c] = static_cast<float>(score);
        if (score > threshold)
          waiting.insert(waiting.end(), all.below + all.below_offsets[c], all.below + all.below_offsets[c + 1]);
      }
    }
  }
}

}  // namespace ramify
