// A depth-first traversal of one partition of a tree, with one dense vector of weights for each level.
#pragma once
#include <map>

#include "linear.h"

namespace ramify {

// A join is a level like a unit. What it adds is on no level above it, and no level below it adds that again: so a class has δ of
// each of its ancestors once, and δ of a unit elsewhere stands still while a level has it.
struct Traversal {
  const Rows &X;
  const TreePartition &tree;
  const SparseVectors &deltas;
  VectorList &result;
  std::vector<Large<float>> weights, changes;  // by level: weights; changes of u below it since the traversal came
  std::vector<size_t> path;                    // the unit at each level above 0, which is the zero above all roots
  std::vector<float> path_length{0};           // by level: the sum of n_partitions over the units in its weights
  std::vector<uint8_t> is_added;               // by unit: whether a join adds it
  std::map<size_t, Large<float>> own_changes;  // those of this partition, of shared units that joins add

  Traversal(const Rows &X, const TreePartition &tree, const SparseVectors &deltas, VectorList &result)
      : X(X), tree(tree), deltas(deltas), result(result), is_added(tree.is_added()) {
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
    if (!tree.is_join(unit)) return add_delta(unit);
    for (const int32_t *added = tree.joins.begin(unit); added != tree.joins.end(unit); ++added) {
      path_length.back() += tree.n_partitions[*added];
      add_delta(static_cast<size_t>(*added));
    }
  }

  // The changes below a unit go one level up and into its δ; those below a join into δ of the units that it adds.
  void leave() {
    const size_t unit = path.back(), d = level();
    path.pop_back();
    path_length.pop_back();
    float *change = changes[d].data(), *above = changes[d - 1].data(), *w = local_weights();
    const SparseVector delta = tree.is_join(unit) ? change_added(unit, change) : deltas.of(unit);
    const bool is_own = !tree.is_join(unit) && tree.n_partitions[unit] == 1;
    if (tree.n_partitions[unit] > 1) change_shared(unit, change);
    for (size_t p = 0; p < delta.size; ++p) {
      const auto f = static_cast<size_t>(delta.features[p]);
      above[f] += change[f];
      w[f] += path_length.back() * change[f];
      if (is_own) delta.values[p] += change[f];
      change[f] = 0;
    }
  }

  // Leaves units until the next one's parent is reached.
  void leave_to_parent_of(size_t unit) {
    while (!path.empty() && static_cast<int64_t>(path.back()) != tree.parent[unit]) leave();
  }

  void leave_all() {
    while (!path.empty()) leave();
    for (const auto &[unit, change] : own_changes) result.append_nonzero(unit, change.data(), X.n_columns);
    own_changes.clear();
  }

 private:
  // A unit of several partitions counts so many times in each, and so do the changes that this one made.
  void add_delta(size_t unit) {
    float *w = local_weights();
    deltas.of(unit).add_to(w);
    const auto own = own_changes.find(unit);
    if (own == own_changes.end()) return;
    for (size_t f = 0; f < X.n_columns; ++f) w[f] += tree.n_partitions[unit] * own->second[f];
  }

  void change_shared(size_t unit, const float *change) {
    if (!is_added[unit]) return result.append_nonzero(unit, change, X.n_columns);
    Large<float> &own = own_changes.try_emplace(unit, X.n_columns, 0.0f).first->second;
    for (size_t f = 0; f < X.n_columns; ++f) own[f] += change[f];
  }

  // Gives the shortest of the added vectors: all of them have the features below the join.
  SparseVector change_added(size_t join, const float *change) {
    SparseVector shortest{};
    for (const int32_t *added = tree.joins.begin(join); added != tree.joins.end(join); ++added) {
      const auto unit = static_cast<size_t>(*added);
      const SparseVector delta = deltas.of(unit);
      if (!shortest || delta.size < shortest.size) shortest = delta;
      if (tree.n_partitions[unit] > 1) change_shared(unit, change);
      else
        for (size_t p = 0; p < delta.size; ++p) delta.values[p] += change[delta.features[p]];
    }
    return shortest;
  }
};

}  // namespace ramify
