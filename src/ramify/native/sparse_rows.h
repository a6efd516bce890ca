// Compressed sparse rows, and kernels that take them apart.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ramify {

// Row r has the columns at offsets[r] .. offsets[r + 1].
struct Pattern {
  const int64_t *offsets;
  const int32_t *columns;
  size_t n_rows, n_columns;

  size_t length(size_t r) const { return static_cast<size_t>(offsets[r + 1] - offsets[r]); }
  const int32_t *begin(size_t r) const { return columns + offsets[r]; }
  const int32_t *end(size_t r) const { return columns + offsets[r + 1]; }
  size_t n_entries() const { return static_cast<size_t>(offsets[n_rows] - offsets[0]); }
};

// The same with a value for every entry.
template <typename T>
struct SparseRows : Pattern {
  const T *values;

  const int32_t *columns_of(size_t r) const { return begin(r); }
  const T *values_of(size_t r) const { return values + offsets[r]; }
};

using Rows = SparseRows<float>;
using DoubleRows = SparseRows<double>;

// A pattern that grows row by row.
struct PatternRows {
  std::vector<int64_t> offsets{0};
  std::vector<int32_t> columns;

  void end_row() { offsets.push_back(static_cast<int64_t>(columns.size())); }
};

// Some of many rows.
PatternRows take_rows(const Pattern &rows, const int32_t *selected, size_t n_selected);

// The same with some of the columns, rising; each gets its place among them for a number.
PatternRows take_columns(const Pattern &rows, const int32_t *selected, size_t n_selected, const int32_t *columns,
                         size_t n_columns);

// Numbers the columns that occur anew, in their order; gives these columns.
std::vector<int32_t> compact_columns_in_place(int32_t *columns, size_t n_entries, size_t n_columns);

// For every column the rows that have it.
PatternRows transpose_rows(const Pattern &rows);

// products[r, c] = Σ over the non-zeros (f, x) of row r of x * dense[f, c].
void multiply_rows_in_place(const DoubleRows &rows, const double *dense, size_t n_columns, double *products);

}  // namespace ramify
