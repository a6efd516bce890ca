// Decisions over a forest: smoothed scores, label sets, reallocated probabilities. parent: -1 for roots; parents come first.
#pragma once
#include "sparse_rows.h"

namespace ramify {

// Scores over a forest that are to be made consistent. penalties: of every node, for lying above all its children; infinite
// where it must not. weights: 0 where a score does not count. levels: how many values scores are rounded to; 0 for all.
struct IsotonicProblem {
  size_t n_nodes;
  const int32_t *parent;
  const double *weights, *penalties;
  size_t levels;
};

// Per document the y with the least sum of weight * |score - y| and penalty * (y - largest y of the children), where no child
// is above its parent. NaN scores do not count; a tree without any score stays NaN.
template <typename T>
void smooth_trees_in_place(const IsotonicProblem &problem, const T *scores, size_t n_documents, T *smoothed);

// Per document the label set with the least expected H-loss, given the probability of each node if its parent is true.
// Where by_sign, a node is taken from 1/2 on, whatever it costs. NaN counts as 0.
template <typename T>
PatternRows minimize_h_loss(const T *probabilities, size_t n_documents, const int32_t *parent, const double *costs,
                            const uint8_t *by_sign, size_t n_nodes);

// Sets one node of each row of P (documents × nodes) to its target, as far as possible; the nodes beside and below it are
// scaled so that sums hold. reserve: of the probability beside the path to the node, the least that stays there.
// raise_ancestors: whether nodes above may rise.
void reallocate_probability_in_place(double *P, size_t n_rows, const int32_t *parent, size_t n_nodes, const int32_t *nodes,
                                     const double *targets, double reserve, bool raise_ancestors);

}  // namespace ramify
