// δ of the inner units of a tree, computed from the dual variables of the classes below them.
#include "feature_set.h"
#include "tree_traversal.h"

namespace ramify {

namespace {

void add_features(const Rows &X, const Class &c, FeatureSet &features) {
  for (size_t j = 0; j < c.n_pairs; ++j) {
    const auto row = static_cast<size_t>(c.documents[j]);
    for (size_t p = 0; p < X.length(row); ++p) features.add(static_cast<size_t>(X.columns_of(row)[p]));
  }
}

}  // namespace

void list_tree_features(const Rows &X, const TreePartition &tree, const Pairs &pairs, const uint8_t *is_listed,
                        VectorList &result) {
  std::vector<FeatureSet> levels(1, FeatureSet(X.n_columns));
  std::vector<size_t> path;
  const std::vector<uint8_t> is_added = tree.is_added();
  std::map<size_t, FeatureSet> gathered;  // of the units that joins add: complete only in the end
  const auto gather = [&](size_t unit, const FeatureSet &features) {
    if (is_listed[unit]) gathered.try_emplace(unit, X.n_columns).first->second.add_all(features);
  };
  const auto list = [&](size_t unit, FeatureSet &features) {
    features.drain([&](size_t f) { result.features.push_back(static_cast<int32_t>(f)); });
    result.end_vector(unit);
  };
  const auto leave = [&] {
    const size_t unit = path.back();
    FeatureSet &own = levels[path.size()];
    path.pop_back();
    levels[path.size()].add_all(own);
    for (const int32_t *added = tree.joins.begin(unit); added != tree.joins.end(unit); ++added)
      gather(static_cast<size_t>(*added), own);
    if (is_added[unit]) gather(unit, own);
    if (is_listed[unit] && !is_added[unit]) return list(unit, own);
    own.clear();
  };
  for (size_t unit = 0; unit < tree.n_units; ++unit) {
    if (!tree.is_visited[unit]) continue;
    while (!path.empty() && static_cast<int64_t>(path.back()) != tree.parent[unit]) leave();
    if (tree.class_of[unit] < 0) {
      path.push_back(unit);
      if (levels.size() <= path.size()) levels.emplace_back(X.n_columns);
      continue;
    }
    add_features(X, pairs.of(static_cast<size_t>(tree.class_of[unit]), nullptr), levels[path.size()]);
  }
  while (!path.empty()) leave();
  for (auto &[unit, features] : gathered) list(unit, features);
}

void assemble_tree_deltas_in_place(const Rows &X, const TreePartition &tree, const SparseVectors &deltas, const Pairs &pairs,
                                   VectorList &result) {
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
