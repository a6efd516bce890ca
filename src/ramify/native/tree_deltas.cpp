// δ of the inner units of a tree, computed from the dual variables of the classes below them.
#include "tree_traversal.h"

namespace ramify {

namespace {

// Features and sums of the documents below the unit of one level.
struct LevelSum {
  Large<float> sum;
  std::vector<uint8_t> has;
  explicit LevelSum(size_t n_features) : sum(n_features, 0.0f), has(n_features, 0) {}
};

}  // namespace

void assemble_tree_deltas(const Rows &X, const TreePartition &tree, const Pairs &pairs, VectorList &result) {
  std::vector<LevelSum> levels(1, LevelSum(X.n_columns));
  std::vector<size_t> path;
  std::vector<int32_t> listed(X.n_columns + 1);
  const auto leave = [&] {
    LevelSum &own = levels[path.size()], &above = levels[path.size() - 1];
    const bool is_shared = tree.n_partitions[path.back()] > 1;
    size_t n = 0;
    for (size_t f = 0; f < X.n_columns; ++f) {
      listed[n] = static_cast<int32_t>(f);
      n += own.has[f] || is_shared;
    }
    for (size_t p = 0; p < n; ++p) {
      const auto f = static_cast<size_t>(listed[p]);
      above.sum[f] += own.sum[f];
      above.has[f] |= own.has[f];
      own.has[f] = 0;
    }
    result.move_listed(listed.data(), n, own.sum.data());
    result.end_vector(path.back());
    path.pop_back();
  };
  for (size_t unit = 0; unit < tree.n_units; ++unit) {
    if (!tree.is_visited[unit]) continue;
    while (!path.empty() && static_cast<int64_t>(path.back()) != tree.parent[unit]) leave();
    if (tree.class_of[unit] < 0) {
      path.push_back(unit);
      if (levels.size() <= path.size()) levels.emplace_back(X.n_columns);
      continue;
    }
    const Class c = pairs.of(static_cast<size_t>(tree.class_of[unit]), nullptr);
    add_pairs(X, c, levels[path.size()].sum.data());
    mark_features(X, c, levels[path.size()].has);
  }
  while (!path.empty()) leave();
}

void reassemble_tree_deltas_in_place(const Rows &X, const TreePartition &tree, const SparseVectors &deltas,
                                     const Pairs &pairs, VectorList &result) {
  Traversal traversal(X, tree, deltas, result);
  for (size_t unit = 0; unit < tree.n_units; ++unit) {
    if (!tree.is_visited[unit]) continue;
    traversal.leave_to_parent_of(unit);
    if (tree.class_of[unit] < 0)
      traversal.enter(unit);
    else
      add_pairs(X, pairs.of(static_cast<size_t>(tree.class_of[unit]), nullptr), traversal.local_changes());
  }
  traversal.leave_all();
}

}  // namespace ramify
