// Bindings of compressed sparse rows, of the kernels that take them apart, and of label sets.
#include "checks.h"
#include "closure.h"

namespace {

using ramify::DoubleRows;
using ramify::Pattern;
using ramify::Rows;

Pattern make_pattern(const In<int64_t> &offsets, const In<int32_t> &columns, size_t n_columns) {
  check_offsets("offsets", offsets.data(), offsets.size(), columns.size());
  const int64_t first = offsets.data()[0], last = offsets.data()[offsets.size() - 1];
  check_indices("columns", columns.data() + first, static_cast<size_t>(last - first), 0, static_cast<int64_t>(n_columns));
  return {offsets.data(), columns.data(), offsets.size() - 1, n_columns};
}

template <typename T>
ramify::SparseRows<T> make_rows(const In<int64_t> &offsets, const In<int32_t> &columns, const In<T> &values,
                                size_t n_columns) {
  check_size("values", values.size(), columns.size(), "one for each column index");
  return {make_pattern(offsets, columns, n_columns), values.data()};
}

nb::tuple take_rows(const Held<Pattern> &rows, const In<int32_t> &selected) {
  check_indices("selected", selected, rows.n_rows);
  return to_tuple(without_gil([&] { return ramify::take_rows(rows, selected.data(), selected.size()); }));
}

nb::tuple take_columns(const Held<Pattern> &rows, const In<int32_t> &selected, const In<int32_t> &columns) {
  check_indices("selected", selected, rows.n_rows);
  check_indices("columns", columns, rows.n_columns);
  return to_tuple(without_gil([&] {
    return ramify::take_columns(rows, selected.data(), selected.size(), columns.data(), columns.size());
  }));
}

nb::ndarray<nb::numpy, int32_t, nb::ndim<1>> compact_columns_in_place(const Out<int32_t> &columns, size_t n_columns) {
  check_indices("columns", columns.data(), columns.size(), 0, static_cast<int64_t>(n_columns));
  return to_numpy(without_gil([&] { return ramify::compact_columns_in_place(columns.data(), columns.size(), n_columns); }));
}

nb::tuple transpose_rows(const Held<Pattern> &rows) {
  return to_tuple(without_gil([&] { return ramify::transpose_rows(rows); }));
}

void multiply_rows_in_place(const Held<DoubleRows> &rows, const InMatrix<double> &dense, const OutMatrix<double> &products) {
  check_shape("dense", dense, rows.n_columns, dense.shape(1), "one row for each column of the rows");
  check_shape("products", products, rows.n_rows, dense.shape(1), "rows × columns of dense");
  without_gil([&] { ramify::multiply_rows_in_place(rows, dense.data(), dense.shape(1), products.data()); });
}

template <ramify::PatternRows (*kernel)(const Pattern &, const Pattern &)>
nb::tuple on_label_sets(const Held<Pattern> &rows, const Held<Pattern> &parents) {
  check_size("parents", parents.n_rows, rows.n_columns, "one row for each node");
  check_size("parents", parents.n_columns, rows.n_columns, "one column for each node");
  return to_tuple(without_gil([&] {
    ramify::PatternRows found = kernel(rows, parents);
    found.columns.shrink_to_fit();
    return found;
  }));
}

}  // namespace

void bind_sparse_rows(nb::module_ &m) {
  def_struct(m, "Pattern", "Compressed sparse rows without values: row r has columns[offsets[r]:offsets[r + 1]].",
             &make_pattern, "offsets", "columns", "n_columns");
  def_struct(m, "Rows", "Compressed sparse rows of float32.", &make_rows<float>, "offsets", "columns", "values", "n_columns");
  def_struct(m, "DoubleRows", "Compressed sparse rows of float64.", &make_rows<double>, "offsets", "columns", "values",
             "n_columns");
  def_kernel(m, "take_rows", &take_rows, "rows", "selected");
  def_kernel(m, "take_columns", &take_columns, "rows", "selected", "columns");
  def_kernel(m, "compact_columns_in_place", &compact_columns_in_place, "columns", "n_columns");
  def_kernel(m, "transpose_rows", &transpose_rows, "rows");
  def_kernel(m, "multiply_rows_in_place", &multiply_rows_in_place, "rows", "dense", "products");
  def_kernel(m, "close_upward", &on_label_sets<ramify::close_upward>, "rows", "parents");
  def_kernel(m, "keep_most_specific", &on_label_sets<ramify::keep_most_specific>, "rows", "parents");
  def_kernel(m, "keep_most_general", &on_label_sets<ramify::keep_most_general>, "rows", "parents");
}
