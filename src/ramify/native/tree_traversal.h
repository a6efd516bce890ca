// A depth-first traversal of one partition of a tree, with one dense vector of weights for each level.
#pragma once
#include "linear.h"

namespace ramify {

struct Traversal {
  const Rows &X;
  const TreePartition &tree;
  const SparseVectors &deltas;
  VectorList &result;
  std::vector<Large<float>> weights, changes;  // by level: weights; changes of u below it since the traversal came
  std::vector<size_t> path;                    // the unit at each level above 0, which is the zero above all roots
  std::vector<float> path_length{0};           // by level: the sum of n_partitions over the path

  Traversal(const Rows &X, const TreePartition &tree, const SparseVectors &deltas, VectorList &result)
      : X(X), tree(tree), deltas(deltas), result(result) {
    weights.emplace_back(X.n_columns, 0.0f);
    changes.emplace_back(X.n_columns, 0.0f);
  }

  size_t level() const { return path.size(); }
  float *local_weights() { return weights[level()].data(); }
  float *local_changes() { return changes[level()].data(); }

  void enter(size_t unit) {
    if (weights.size() <= level() + 1) {
      weights.emplace_back();
      changes.emplace_back(X.n_columns, 0.0f);
    }
    weights[level() + 1] = weights[level()];
    path.push_back(unit);
    path_length.push_back(path_length.back() + tree.n_partitions[unit]);
    deltas.of(unit).add_to(local_weights());
  }

  // The changes below a unit go one level up and into its δ; those of a unit of several partitions into the result.
  void leave() {
    const size_t unit = path.back(), d = level();
    path.pop_back();
    path_length.pop_back();
    float *change = changes[d].data(), *above = changes[d - 1].data(), *w = local_weights();
    const bool is_shared = tree.n_partitions[unit] > 1;
    if (is_shared) result.append_nonzero(unit, change, X.n_columns);
    const SparseVector delta = deltas.of(unit);
    for (size_t p = 0; p < delta.size; ++p) {
      const auto f = static_cast<size_t>(delta.features[p]);
      above[f] += change[f];
      w[f] += path_length.back() * change[f];
      if (!is_shared && tree.n_partitions[unit] > 0) delta.values[p] += change[f];
      change[f] = 0;
    }
  }

  // Leaves units until the next one's parent is reached.
  void leave_to_parent_of(size_t unit) {
    while (!path.empty() && static_cast<int64_t>(path.back()) != tree.parent[unit]) leave();
  }

  void leave_all() {
    while (!path.empty()) leave();
  }
};

}  // namespace ramify
