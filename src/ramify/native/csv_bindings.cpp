// Cells of CSV as Python strings.
#include <nanobind/nanobind.h>

#include <string>
#include <string_view>
#include <vector>

#include "arrays.h"
#include "checks.h"
#include "csv_rows.h"

namespace {

// Equal short cells of a column share one string, as the cells of a few classes do.
class SharedStrings {
 public:
  nb::object *find(const ramify::CsvCell &cell) {
    if (cell.length > kLongest || cell.has_quotes) return nullptr;
    Slot &slot = slots_[std::hash<std::string_view>{}({cell.begin, cell.length}) % kSlots];
    if (slot.string.is_valid() && slot.text == std::string_view(cell.begin, cell.length)) return &slot.string;
    slot.text = {cell.begin, cell.length};
    slot.string = nb::object();
    return &slot.string;
  }

 private:
  static constexpr size_t kLongest = 64, kSlots = 1024;
  struct Slot {
    std::string_view text;
    nb::object string;
  };
  std::vector<Slot> slots_{kSlots};
};

// Whether a cell may be blank: it is empty, or begins with a space or with something else than ASCII.
bool may_be_blank(const ramify::CsvCell &cell) {
  return cell.length == 0 || static_cast<uint8_t>(*cell.begin) <= ' ' || static_cast<uint8_t>(*cell.begin) >= 128;
}

PyObject *decode(const ramify::CsvCell &cell, std::string &buffer) {
  if (!cell.has_quotes) return PyUnicode_DecodeUTF8(cell.begin, static_cast<Py_ssize_t>(cell.length), "strict");
  buffer.clear();
  for (size_t k = 0; k < cell.length; ++k) {
    buffer.push_back(cell.begin[k]);
    k += cell.begin[k] == '"';  // of two quotes, the second is left out
  }
  return PyUnicode_DecodeUTF8(buffer.data(), static_cast<Py_ssize_t>(buffer.size()), "strict");
}

// Append the wanted cells of a row to the lists; false if one cell of the row is no UTF-8.
bool append_row(const ramify::CsvCell *cells, size_t n_columns, bool checks_all, const std::vector<int32_t> &place_of,
                std::vector<nb::list> &lists, std::vector<SharedStrings> &shared, std::string &buffer, bool &has_blank) {
  std::vector<nb::object> made(lists.size());
  for (size_t column = 0; column < n_columns; ++column) {
    const int32_t place = place_of[column];
    if (place < 0 && !checks_all) continue;
    nb::object *known = place < 0 ? nullptr : shared[static_cast<size_t>(place)].find(cells[column]);
    nb::object cell = known != nullptr && known->is_valid() ? *known : nb::steal(decode(cells[column], buffer));
    if (place >= 0) has_blank |= may_be_blank(cells[column]);
    if (!cell.is_valid()) {
      if (!PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) throw nb::python_error();
      PyErr_Clear();
      return false;
    }
    if (known != nullptr) *known = cell;
    if (place >= 0) made[static_cast<size_t>(place)] = std::move(cell);
  }
  for (size_t k = 0; k < lists.size(); ++k) lists[k].append(made[k]);
  return true;
}

nb::tuple read_csv_rows(nb::bytes block, size_t start, nb::bytes delimiter, size_t n_columns, const In<int32_t> &wanted, size_t most_bytes,
                        bool is_last) {
  check(start <= block.size(), "start is beyond the block; give at most its size.");
  check(delimiter.size() == 1, "delimiter is not one byte; give one.");
  check(n_columns > 0, "n_columns is 0; give at least 1.");
  check_indices("wanted", wanted.data(), wanted.size(), 0, static_cast<int64_t>(n_columns));
  const std::string_view text(block.c_str() + start, block.size() - start);
  const ramify::CsvLayout layout = {delimiter.c_str()[0], n_columns, most_bytes};
  ramify::CsvRows found;
  bool is_ascii = true;
  without_gil([&] {
    ramify::find_csv_rows(text, layout, is_last, found);
    for (size_t k = 0; k < found.size; ++k) is_ascii &= static_cast<uint8_t>(text[k]) < 128;
  });
  std::vector<int32_t> place_of(n_columns, -1);
  for (size_t k = 0; k < wanted.size(); ++k) place_of[static_cast<size_t>(wanted.data()[k])] = static_cast<int32_t>(k);
  std::vector<nb::list> lists(wanted.size());
  std::vector<SharedStrings> shared(wanted.size());
  std::string buffer;
  bool has_blank = false;
  for (size_t row = 0; row < found.starts.size(); ++row) {
    if (append_row(&found.cells[row * n_columns], n_columns, !is_ascii, place_of, lists, shared, buffer, has_blank)) continue;
    found.size = found.starts[row];
    found.n_lines = found.lines[row];
    found.lines.resize(row);
    found.is_odd = true;
    break;
  }
  nb::list columns;
  for (nb::list &list : lists) columns.append(list);
  return nb::make_tuple(columns, to_numpy(std::move(found.lines)), found.size, found.n_lines, found.is_odd, has_blank);
}

}  // namespace

void bind_csv(nb::module_ &m) {
  def_kernel(m, "read_csv_rows", &read_csv_rows, "block", "start", "delimiter", "n_columns", "wanted", "most_bytes", "is_last");
}
