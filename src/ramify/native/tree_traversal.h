// A depth-first traversal of one partition of a tree, with one dense vector of weights for each level.
#pragma once
#include <map>

#include "linear.h"

namespace ramify {

// A join is a level like a unit. What it adds is on no level above it, and no level below it adds that again: so a class has δ of
// each of its ancestors once, and δ of a unit elsewhere stands still while a level has it. The weights of a level are those of
// the features that δ of its unit has, which are all that the documents below it have; δ of a join only says which these are.
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
      weights.emplace_back(X.n_columns, 0.0f);
      changes.emplace_back(X.n_columns, 0.0f);
    }
    const SparseVector own = deltas.of(unit);
    const float *above = local_weights();
    path.push_back(unit);
    path_length.push_back(path_length.back());
    float *w = local_weights();
    at_features(own, [&](size_t, size_t f) { w[f] = above[f]; });
    if (!tree.is_join(unit)) return add_delta(unit, own);
    for (const int32_t *added = tree.joins.begin(unit); added != tree.joins.end(unit); ++added)
      add_delta(static_cast<size_t>(*added), own);
  }

  // The changes below a unit go one level up and into its δ; those below a join into δ of the units that it adds.
  void leave() {
    const size_t unit = path.back(), d = level();
    const SparseVector own = deltas.of(unit);
    path.pop_back();
    path_length.pop_back();
    float *change = changes[d].data(), *above = changes[d - 1].data(), *w = local_weights();
    if (!tree.is_join(unit)) change_delta(unit, own, change);
    for (const int32_t *added = tree.joins.begin(unit); added != tree.joins.end(unit); ++added)
      change_delta(static_cast<size_t>(*added), own, change);
    const float length = path_length.back();
    at_features(own, [&](size_t, size_t f) {
      above[f] += change[f];
      w[f] += length * change[f];
      change[f] = 0;
    });
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
  bool has_all(const SparseVector &vector) const { return vector.size == X.n_columns; }

  // Calls `work` on the places and features of a vector; one with all features is read without its list of them.
  template <class Work>
  void at_features(const SparseVector &vector, Work work) const {
    if (has_all(vector))
      for (size_t f = 0; f < vector.size; ++f) work(f, f);
    else
      for (size_t p = 0; p < vector.size; ++p) work(p, static_cast<size_t>(vector.features[p]));
  }

  // Adds δ of a unit to the weights of this level, at the features of `here`. A unit of several partitions counts so many times
  // in each, and so do the changes that this one made.
  void add_delta(size_t unit, const SparseVector &here) {
    float *w = local_weights();
    const float n = tree.n_partitions[unit];
    path_length.back() += n;
    const SparseVector delta = deltas.of(unit);
    if (has_all(delta)) at_features(here, [&](size_t, size_t f) { w[f] += delta.values[f]; });
    else delta.add_to(w);
    const auto found = own_changes.find(unit);
    if (found == own_changes.end()) return;
    const float *own = found->second.data();
    at_features(here, [&](size_t, size_t f) { w[f] += n * own[f]; });
  }

  void change_delta(size_t unit, const SparseVector &here, const float *change) {
    const SparseVector delta = deltas.of(unit);
    if (tree.n_partitions[unit] > 1) {
      if (!is_added[unit]) return result.append_nonzero(unit, change, X.n_columns);
      float *own = own_changes.try_emplace(unit, X.n_columns, 0.0f).first->second.data();
      at_features(here, [&](size_t, size_t f) { own[f] += change[f]; });
    } else if (tree.n_partitions[unit] == 1 && has_all(delta)) {
      at_features(here, [&](size_t, size_t f) { delta.values[f] += change[f]; });
    } else if (tree.n_partitions[unit] == 1) {
      at_features(delta, [&](size_t p, size_t f) { delta.values[p] += change[f]; });
    }
  }
};

}  // namespace ramify
