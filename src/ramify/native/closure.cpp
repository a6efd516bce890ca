// Label sets and their ancestors.
#include "closure.h"

#include <algorithm>

namespace ramify {

PatternRows close_upward(const Pattern &rows, const Pattern &parents) {
  PatternRows closed;
  closed.offsets.reserve(rows.n_rows + 1);
  closed.columns.reserve(2 * rows.n_entries());
  std::vector<int64_t> last_row(parents.n_rows, -1);  // the last row that a node was added to
  for (size_t r = 0; r < rows.n_rows; ++r) {
    const int64_t row = static_cast<int64_t>(r);
    const size_t start = closed.columns.size();
    const auto add = [&](int32_t node) {
      if (last_row[static_cast<size_t>(node)] == row) return;
      last_row[static_cast<size_t>(node)] = row;
      closed.columns.push_back(node);
    };
    std::for_each(rows.begin(r), rows.end(r), add);
    // the row is its own queue: everything up to `next` has had its parents added
    for (size_t next = start; next < closed.columns.size(); ++next) {
      const auto node = static_cast<size_t>(closed.columns[next]);
      std::for_each(parents.begin(node), parents.end(node), add);
    }
    std::sort(closed.columns.begin() + static_cast<std::ptrdiff_t>(start), closed.columns.end());
    closed.end_row();
  }
  return closed;
}

PatternRows keep_most_specific(const Pattern &rows, const Pattern &parents) {
  PatternRows specific;
  specific.offsets.reserve(rows.n_rows + 1);
  std::vector<int64_t> last_row_as_parent(parents.n_rows, -1);
  for (size_t r = 0; r < rows.n_rows; ++r) {
    const int64_t row = static_cast<int64_t>(r);
    for (const int32_t *node = rows.begin(r); node != rows.end(r); ++node)
      for (const int32_t *parent = parents.begin(static_cast<size_t>(*node)); parent != parents.end(static_cast<size_t>(*node)); ++parent)
        last_row_as_parent[static_cast<size_t>(*parent)] = row;
    for (const int32_t *node = rows.begin(r); node != rows.end(r); ++node)
      if (last_row_as_parent[static_cast<size_t>(*node)] != row) specific.columns.push_back(*node);
    specific.end_row();
  }
  return specific;
}

PatternRows keep_most_general(const Pattern &rows, const Pattern &parents) {
  PatternRows general;
  general.offsets.reserve(rows.n_rows + 1);
  std::vector<int64_t> last_row(parents.n_rows, -1);
  for (size_t r = 0; r < rows.n_rows; ++r) {
    const int64_t row = static_cast<int64_t>(r);
    for (const int32_t *node = rows.begin(r); node != rows.end(r); ++node) last_row[static_cast<size_t>(*node)] = row;
    for (const int32_t *node = rows.begin(r); node != rows.end(r); ++node) {
      const auto v = static_cast<size_t>(*node);
      const bool below_another = std::any_of(parents.begin(v), parents.end(v), [&](int32_t parent) {
        return last_row[static_cast<size_t>(parent)] == row;
      });
      if (!below_another) general.columns.push_back(*node);
    }
    general.end_row();
  }
  return general;
}

}  // namespace ramify
