// The hot loops of Ramify. Kernels take plain arrays, hold no state, and trust what they are given:
// checks belong to the Python functions that call them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

// One build serves machines with and without wide vectors; the loader picks the widest clone that runs.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__)  // it needs ifuncs
#define RAMIFY_WIDE_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define RAMIFY_WIDE_CLONES
#endif

namespace ramify {

// A growing set of label rows in compressed form: row r holds nodes[offsets[r] .. offsets[r + 1]).
struct LabelRows {
  std::vector<int64_t> offsets{0};
  std::vector<int32_t> nodes;
};

// Adds every ancestor of every node of every row; nodes of a row come out sorted and once each.
LabelRows close_upward(const int64_t *offsets, const int32_t *nodes, size_t n_rows, const int64_t *parent_offsets,
                       const int32_t *parent_nodes, size_t n_nodes);

// Keeps the nodes of each row that have no child in the row; rows must be closed upward.
LabelRows keep_most_specific(const int64_t *offsets, const int32_t *nodes, size_t n_rows,
                             const int64_t *parent_offsets, const int32_t *parent_nodes, size_t n_nodes);

// Keeps the nodes of each row that have no parent in the row; rows need not be closed.
LabelRows keep_most_general(const int64_t *offsets, const int32_t *nodes, size_t n_rows, const int64_t *parent_offsets,
                            const int32_t *parent_nodes, size_t n_nodes);

// scores[r, c] = bias[c] + sum over the non-zeros (f, x) of row r of x * weights[f, c], summed in double precision.
void score_rows_in_place(const int64_t *offsets, const int32_t *features, const float *values, size_t n_rows,
                         const float *weights, const double *bias, size_t n_classes, double *scores);

}  // namespace ramify
