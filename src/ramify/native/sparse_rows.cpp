// Parts of sparse rows, their transpose, and products with dense matrices.
#include "sparse_rows.h"

#include <algorithm>
#include <numeric>

#include "dispatch.h"

namespace ramify {

PatternRows take_rows(const Pattern &rows, const int32_t *selected, size_t n_selected) {
  PatternRows taken;
  taken.offsets.reserve(n_selected + 1);
  for (size_t k = 0; k < n_selected; ++k) {
    const auto r = static_cast<size_t>(selected[k]);
    taken.columns.insert(taken.columns.end(), rows.begin(r), rows.end(r));
    taken.end_row();
  }
  return taken;
}

PatternRows take_columns(const Pattern &rows, const int32_t *selected, size_t n_selected, const int32_t *columns,
                         size_t n_columns) {
  PatternRows taken;
  taken.offsets.reserve(n_selected + 1);
  for (size_t k = 0; k < n_selected; ++k) {
    const auto r = static_cast<size_t>(selected[k]);
    for (const int32_t *next = rows.begin(r); next != rows.end(r); ++next) {
      const int32_t *found = std::lower_bound(columns, columns + n_columns, *next);
      if (found != columns + n_columns && *found == *next) taken.columns.push_back(static_cast<int32_t>(found - columns));
    }
    taken.end_row();
  }
  return taken;
}

std::vector<int32_t> compact_columns_in_place(int32_t *columns, size_t n_entries, size_t n_columns) {
  std::vector<int32_t> number(n_columns, 0), found;
  for (size_t i = 0; i < n_entries; ++i) number[static_cast<size_t>(columns[i])] = 1;
  for (size_t c = 0; c < n_columns; ++c) {
    if (!number[c]) continue;
    number[c] = static_cast<int32_t>(found.size());
    found.push_back(static_cast<int32_t>(c));
  }
  for (size_t i = 0; i < n_entries; ++i) columns[i] = number[static_cast<size_t>(columns[i])];
  return found;
}

PatternRows transpose_rows(const Pattern &rows) {
  PatternRows transposed;
  transposed.offsets.assign(rows.n_columns + 1, 0);
  transposed.columns.resize(rows.n_entries());
  for (int64_t p = rows.offsets[0]; p < rows.offsets[rows.n_rows]; ++p)
    ++transposed.offsets[static_cast<size_t>(rows.columns[p]) + 1];
  std::partial_sum(transposed.offsets.begin(), transposed.offsets.end(), transposed.offsets.begin());
  std::vector<int64_t> next(transposed.offsets.begin(), transposed.offsets.end() - 1);
  for (size_t r = 0; r < rows.n_rows; ++r)
    for (const int32_t *column = rows.begin(r); column != rows.end(r); ++column)
      transposed.columns[static_cast<size_t>(next[static_cast<size_t>(*column)]++)] = static_cast<int32_t>(r);
  return transposed;
}

RAMIFY_WIDE_CLONES
void multiply_rows_in_place(const DoubleRows &rows, const double *dense, size_t n_columns, double *products) {
  for (size_t r = 0; r < rows.n_rows; ++r) {
    double *to = products + r * n_columns;
    std::fill(to, to + n_columns, 0.0);
    for (int64_t k = rows.offsets[r]; k < rows.offsets[r + 1]; ++k) {
      const double *from = dense + static_cast<size_t>(rows.columns[k]) * n_columns;
      const double x = rows.values[k];
      for (size_t c = 0; c < n_columns; ++c) to[c] += x * from[c];
    }
  }
}

}  // namespace ramify
