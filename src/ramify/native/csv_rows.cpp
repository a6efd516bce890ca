#include "csv_rows.h"

#include <algorithm>
#include <array>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace ramify {
namespace {

enum class End { cell, row, cut, odd };

class Reader {
 public:
  Reader(std::string_view block, const CsvLayout &layout, bool is_last, CsvRows &found)
      : place_(block.data()), end_(place_ + block.size()), first_(place_), layout_(layout), is_last_(is_last), found_(found) {
    for (char mark : {layout.delimiter, '\n', '\r'}) stops_[static_cast<uint8_t>(mark)] = true;
  }

  void read_all() {
    while (place_ < end_) {
      if (skip_empty_line()) continue;
      const char *start = place_;
      const size_t n_cells = found_.cells.size();
      const int64_t line = line_;
      const End how = read_row();
      if (how != End::row) {
        found_.cells.resize(n_cells);
        found_.is_odd = how == End::odd;
        return;
      }
      if (is_empty(n_cells)) {
        found_.cells.resize(n_cells);
        accept();
        continue;
      }
      found_.starts.push_back(static_cast<size_t>(start - first_));
      found_.lines.push_back(line);
      accept();
    }
  }

 private:
  // Whether a row of several cells has nothing in them, as spreadsheets write rows below a table.
  bool is_empty(size_t first_cell) const {
    const auto has_none = [](const CsvCell &cell) { return cell.length == 0; };
    return layout_.n_columns > 1 &&
           std::all_of(found_.cells.begin() + static_cast<std::ptrdiff_t>(first_cell), found_.cells.end(), has_none);
  }

  void accept() {
    found_.size = static_cast<size_t>(place_ - first_);
    found_.n_lines = line_;
  }

  bool skip_empty_line() {
    const char *next = place_ + (*place_ == '\r' ? 1 : 0);
    if (next == end_ || *next != '\n') return false;
    place_ = next + 1;
    ++line_;
    accept();
    return true;
  }

  End read_row() {
    for (size_t n_cells = 1;; ++n_cells) {
      const End how = place_ < end_ && *place_ == '"' ? read_quoted() : read_plain();
      if (how == End::cell && n_cells < layout_.n_columns) continue;
      return how == End::cell || (how == End::row && n_cells < layout_.n_columns) ? End::odd : how;
    }
  }

  End read_plain() {
    const char *start = place_;
    skip_text();
    if (place_ == end_ && !is_last_) return End::cut;
    return finish({start, static_cast<size_t>(place_ - start), false});
  }

  // Go to the next delimiter or line end.
  void skip_text() {
#ifdef __SSE2__
    const __m128i delimiter = _mm_set1_epi8(layout_.delimiter), feed = _mm_set1_epi8('\n'), back = _mm_set1_epi8('\r');
    for (; end_ - place_ >= 16; place_ += 16) {
      const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i *>(place_));
      const __m128i ends = _mm_or_si128(_mm_cmpeq_epi8(text, feed), _mm_cmpeq_epi8(text, back));
      const int found = _mm_movemask_epi8(_mm_or_si128(ends, _mm_cmpeq_epi8(text, delimiter)));
      if (found != 0) {
        place_ += __builtin_ctz(static_cast<unsigned>(found));
        return;
      }
    }
#endif
    while (place_ < end_ && !stops_[static_cast<uint8_t>(*place_)]) ++place_;
  }

  End read_quoted() {
    const char *start = ++place_;
    bool has_quotes = false;
    while (true) {
      place_ = place_ < end_ ? static_cast<const char *>(std::memchr(place_, '"', static_cast<size_t>(end_ - place_))) : nullptr;
      if (place_ == nullptr || (place_ + 1 == end_ && !is_last_)) return End::cut;
      if (place_ + 1 == end_ || place_[1] != '"') break;
      has_quotes = true;
      place_ += 2;
    }
    const CsvCell cell = {start, static_cast<size_t>(place_ - start), has_quotes};
    if (!count_lines(cell)) return End::odd;
    ++place_;
    return finish(cell);
  }

  // Add the line ends inside a cell; false if one is a carriage return alone.
  bool count_lines(const CsvCell &cell) {
    const char *end = cell.begin + cell.length;
    line_ += std::count(cell.begin, end, '\n');
    for (const char *mark = cell.begin; (mark = static_cast<const char *>(std::memchr(mark, '\r', static_cast<size_t>(end - mark)))); ++mark)
      if (mark + 1 == end || mark[1] != '\n') return false;
    return true;
  }

  // Keep a cell, and go past what ends it.
  End finish(const CsvCell &cell) {
    if (cell.length > layout_.most_bytes) return End::odd;
    found_.cells.push_back(cell);
    if (place_ == end_) return is_last_ ? End::row : End::cut;
    if (*place_ == layout_.delimiter) {
      ++place_;
      return End::cell;
    }
    if (*place_ == '\r') {
      if (place_ + 1 == end_ && !is_last_) return End::cut;
      if (place_ + 1 == end_ || place_[1] != '\n') return End::odd;
      ++place_;
    }
    if (*place_ != '\n') return End::odd;  // something follows a closing quote
    ++place_;
    ++line_;
    return End::row;
  }

  const char *place_, *end_, *first_;
  const CsvLayout &layout_;
  bool is_last_;
  CsvRows &found_;
  int64_t line_ = 0;
  std::array<bool, 256> stops_{};
};

}  // namespace

void find_csv_rows(std::string_view block, const CsvLayout &layout, bool is_last, CsvRows &found) {
  Reader(block, layout, is_last, found).read_all();
}

}  // namespace ramify
