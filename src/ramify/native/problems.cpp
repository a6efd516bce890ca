// Parts of sparse rows: the documents of one node, and the terms that occur in them.
#include <numeric>

#include "boosting.h"

namespace ramify {

LabelRows take_rows(const int64_t *offsets, const int32_t *items, const int32_t *rows, size_t n_rows, const int32_t *kept,
                    size_t n_kept) {
  LabelRows taken;
  taken.offsets.reserve(n_rows + 1);
  for (size_t r = 0; r < n_rows; ++r) {
    const int32_t *first = items + offsets[rows[r]], *last = items + offsets[rows[r] + 1];
    if (!kept) {
      taken.nodes.insert(taken.nodes.end(), first, last);
    } else {
      for (; first != last; ++first) {
        const int32_t *found = std::lower_bound(kept, kept + n_kept, *first);
        if (found != kept + n_kept && *found == *first) taken.nodes.push_back(static_cast<int32_t>(found - kept));
      }
    }
    taken.offsets.push_back(static_cast<int64_t>(taken.nodes.size()));
  }
  return taken;
}

std::vector<int32_t> compact_in_place(int32_t *items, size_t n_items, size_t n_columns) {
  std::vector<int32_t> number(n_columns, 0), columns;
  for (size_t i = 0; i < n_items; ++i) number[static_cast<size_t>(items[i])] = 1;
  for (size_t c = 0; c < n_columns; ++c) {
    if (!number[c]) continue;
    number[c] = static_cast<int32_t>(columns.size());
    columns.push_back(static_cast<int32_t>(c));
  }
  for (size_t i = 0; i < n_items; ++i) items[i] = number[static_cast<size_t>(items[i])];
  return columns;
}

LabelRows turn_rows(const int64_t *offsets, const int32_t *items, size_t n_rows, size_t n_columns) {
  LabelRows turned;
  turned.offsets.assign(n_columns + 1, 0);
  turned.nodes.resize(static_cast<size_t>(offsets[n_rows]));
  for (int64_t p = 0; p < offsets[n_rows]; ++p) ++turned.offsets[static_cast<size_t>(items[p]) + 1];
  std::partial_sum(turned.offsets.begin(), turned.offsets.end(), turned.offsets.begin());
  std::vector<int64_t> next(turned.offsets.begin(), turned.offsets.end() - 1);
  for (size_t r = 0; r < n_rows; ++r)
    for (int64_t p = offsets[r]; p < offsets[r + 1]; ++p)
      turned.nodes[static_cast<size_t>(next[static_cast<size_t>(items[p])]++)] = static_cast<int32_t>(r);
  return turned;
}

}  // namespace ramify
