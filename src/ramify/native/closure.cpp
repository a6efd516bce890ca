// Label sets and their ancestors.
#include <algorithm>

#include "kernels.h"

namespace ramify {

LabelRows close_upward(const int64_t *offsets, const int32_t *nodes, size_t n_rows, const int64_t *parent_offsets,
                       const int32_t *parent_nodes, size_t n_nodes) {
  LabelRows closed;
  closed.offsets.reserve(n_rows + 1);
  closed.nodes.reserve(2 * static_cast<size_t>(offsets[n_rows]));
  std::vector<int64_t> last_row(n_nodes, -1);  // the last row that a node was added to
  for (size_t r = 0; r < n_rows; ++r) {
    const int64_t row = static_cast<int64_t>(r);
    const size_t start = closed.nodes.size();
    const auto add = [&](int32_t node) {
      if (last_row[node] == row) return;
      last_row[node] = row;
      closed.nodes.push_back(node);
    };
    for (int64_t k = offsets[r]; k < offsets[r + 1]; ++k) add(nodes[k]);
    // the row is its own queue: everything up to `next` has had its parents added
    for (size_t next = start; next < closed.nodes.size(); ++next) {
      const int32_t node = closed.nodes[next];
      for (int64_t p = parent_offsets[node]; p < parent_offsets[node + 1]; ++p) add(parent_nodes[p]);
    }
    std::sort(closed.nodes.begin() + start, closed.nodes.end());
    closed.offsets.push_back(static_cast<int64_t>(closed.nodes.size()));
  }
  return closed;
}

LabelRows keep_most_specific(const int64_t *offsets, const int32_t *nodes, size_t n_rows,
                             const int64_t *parent_offsets, const int32_t *parent_nodes, size_t n_nodes) {
  LabelRows kept;
  kept.offsets.reserve(n_rows + 1);
  std::vector<int64_t> last_row_as_parent(n_nodes, -1);
  for (size_t r = 0; r < n_rows; ++r) {
    const int64_t row = static_cast<int64_t>(r);
    for (int64_t k = offsets[r]; k < offsets[r + 1]; ++k)
      for (int64_t p = parent_offsets[nodes[k]]; p < parent_offsets[nodes[k] + 1]; ++p)
        last_row_as_parent[parent_nodes[p]] = row;
    for (int64_t k = offsets[r]; k < offsets[r + 1]; ++k)
      if (last_row_as_parent[nodes[k]] != row) kept.nodes.push_back(nodes[k]);
    kept.offsets.push_back(static_cast<int64_t>(kept.nodes.size()));
  }
  return kept;
}

LabelRows keep_most_general(const int64_t *offsets, const int32_t *nodes, size_t n_rows, const int64_t *parent_offsets,
                            const int32_t *parent_nodes, size_t n_nodes) {
  LabelRows kept;
  kept.offsets.reserve(n_rows + 1);
  std::vector<int64_t> last_row(n_nodes, -1);
  for (size_t r = 0; r < n_rows; ++r) {
    const int64_t row = static_cast<int64_t>(r);
    for (int64_t k = offsets[r]; k < offsets[r + 1]; ++k) last_row[nodes[k]] = row;
    for (int64_t k = offsets[r]; k < offsets[r + 1]; ++k) {
      const int32_t node = nodes[k];
      const bool below_another = std::any_of(parent_nodes + parent_offsets[node], parent_nodes + parent_offsets[node + 1],
                                             [&](int32_t parent) { return last_row[parent] == row; });
      if (!below_another) kept.nodes.push_back(node);
    }
    kept.offsets.push_back(static_cast<int64_t>(kept.nodes.size()));
  }
  return kept;
}

}  // namespace ramify
