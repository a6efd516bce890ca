// Rows of CSV: where their cells are.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace ramify {

// A cell without its quotes. has_quotes: quotes inside are doubled.
struct CsvCell {
  const char *begin;
  size_t length;
  bool has_quotes;
};

// How rows look. most_bytes: of a cell.
struct CsvLayout {
  char delimiter;
  size_t n_columns, most_bytes;
};

// Whole rows from the start of a block, all cells of one row after the other. starts, lines: where each row begins, in bytes and
// in lines from the start of the block. size, n_lines: of all of them, and of empty lines and rows before and between. is_odd: whether
// they end before a row that is not as plain as these.
struct CsvRows {
  std::vector<CsvCell> cells;
  std::vector<size_t> starts;
  std::vector<int64_t> lines;
  size_t size = 0;
  int64_t n_lines = 0;
  bool is_odd = false;
};

// Find the rows of a block of text; stops before one that is cut, malformed, has another number of cells or too long ones, or
// holds a carriage return that is no part of a line end. is_last: the block ends where the table ends.
void find_csv_rows(std::string_view block, const CsvLayout &layout, bool is_last, CsvRows &found);

}  // namespace ramify
