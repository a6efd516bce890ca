// Kernels that see what people bring, under libFuzzer: texts become terms, labels are closed over taxonomies, scores are
// smoothed and decided. The bytes of an input say what to call with what. Sanitizers find wrong accesses; wrong results abort.
// Without libFuzzer, a main function tries random inputs: fuzz_kernels NUMBER SEED.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cwctype>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "closure.h"
#include "csv_rows.h"
#include "decisions.h"
#include "terms.h"

namespace {

using namespace ramify;

void require(bool holds, const char *what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

// The bytes of an input, one value after the other; 0 where they have ended.
class Bytes {
 public:
  Bytes(const uint8_t *data, size_t size) : at_(data), end_(data + size) {}

  size_t left() const { return static_cast<size_t>(end_ - at_); }
  uint8_t byte() { return at_ < end_ ? *at_++ : 0; }
  size_t below(size_t n) { return n < 2 ? 0 : (n <= 256 ? byte() : byte() << 8 | byte()) % n; }
  uint32_t word() { return static_cast<uint32_t>(byte()) << 16 | static_cast<uint32_t>(byte()) << 8 | byte(); }
  // Numbers between 0 and 1, often equal ones.
  double fraction() { return byte() / 255.0; }

 private:
  const uint8_t *at_, *end_;
};

void check_rows(const std::vector<int64_t> &offsets, const std::vector<int32_t> &columns, size_t n_rows, size_t n_columns) {
  require(offsets.size() == n_rows + 1 && offsets.front() == 0, "there is an offset for every row");
  require(std::is_sorted(offsets.begin(), offsets.end()), "offsets rise");
  require(static_cast<size_t>(offsets.back()) == columns.size(), "the last offset is the end");
  for (const int32_t column : columns) require(column >= 0 && static_cast<size_t>(column) < n_columns, "a column exists");
  for (size_t r = 0; r < n_rows; ++r)
    for (int64_t p = offsets[r] + 1; p < offsets[r + 1]; ++p) require(columns[p - 1] < columns[p], "the columns of a row rise");
}

// ---- texts ------------------------------------------------------------------------------------------------------------

const Characters &characters() {
  static const Characters found = [] {
    constexpr uint32_t kCharacters = 0x110000;
    Characters made{std::vector<uint32_t>(kCharacters), std::vector<uint8_t>(kCharacters), std::vector<uint8_t>(kCharacters)};
    for (uint32_t c = 0; c < kCharacters; ++c) {
      const bool is_plain = c < 0x20000;
      made.lower[c] = is_plain ? static_cast<uint32_t>(std::towlower(static_cast<wint_t>(c))) : c;
      made.is_word[c] = c == '_' || (is_plain ? std::iswalnum(static_cast<wint_t>(c)) != 0 : c % 3 == 0);
      made.is_space[c] = c == 0x2028 || (c < 0x80 && std::iswspace(static_cast<wint_t>(c)));
    }
    return made;
  }();
  return found;
}

template <typename Character>
std::vector<std::vector<Character>> read_texts(Bytes &bytes, uint32_t most) {
  std::vector<std::vector<Character>> texts(1);
  while (bytes.left()) {
    const uint32_t c = sizeof(Character) == 1 ? bytes.byte() : (bytes.byte() & 3) ? bytes.byte() : bytes.word();
    if (c == 0 && texts.size() < 20) texts.emplace_back();
    else texts.back().push_back(static_cast<Character>(c % most));
  }
  return texts;
}

template <typename Character>
void count_terms(Bytes &bytes, TermRules rules, uint32_t most) {
  const auto read = read_texts<Character>(bytes, most);
  std::vector<Text> texts;
  for (const auto &text : read) texts.push_back({text.data(), text.size(), static_cast<int>(sizeof(Character))});
  if (most > 0x80) rules.characters = &characters();
  TermTable table(7);
  std::vector<int64_t> documents, occurrences;
  TermRows rows, known, hashed;
  count_new_terms(texts.data(), texts.size(), rules, true, table, documents, occurrences, rows);
  require(documents.size() == table.size() && occurrences.size() == table.size(), "every term has its counts");
  const Terms terms = table.terms();
  const TermIndex index{terms, table.slots().data(), table.slots().size(), table.seed};
  for (size_t t = 0; t < terms.n; ++t)
    require(index.find(terms.begin(t), terms.length(t)) == static_cast<int32_t>(t), "a term is found under its number");
  count_known_terms(texts.data(), texts.size(), rules, index, known);
  check_rows(known.offsets, known.terms, texts.size(), table.size());
  const double total = std::accumulate(known.counts.begin(), known.counts.end(), 0.0);
  require(total == static_cast<double>(std::accumulate(occurrences.begin(), occurrences.end(), int64_t{0})), "no term is lost");
  count_hashed_terms(texts.data(), texts.size(), rules, 64, hashed);
  check_rows(hashed.offsets, hashed.terms, texts.size(), 64);
  const SortedTerms sorted = sort_terms({terms, terms}, 5);
  require(sorted.offsets.size() == table.size() + 1, "sorted terms are there once");
}

void fuzz_texts(Bytes &bytes) {
  const uint8_t kind = bytes.byte();
  const size_t shortest = 1 + bytes.below(3), longest = shortest + bytes.below(4);
  const Analyzer analyzer = kind % 3 == 0 ? Analyzer::kWord : kind % 3 == 1 ? Analyzer::kChar : Analyzer::kCharWb;
  const TermRules rules{analyzer, (kind & 16) != 0, shortest, longest, nullptr, nullptr, nullptr, nullptr};
  switch (kind >> 6) {
    case 0: return count_terms<uint8_t>(bytes, rules, 0x80);
    case 1: return count_terms<uint8_t>(bytes, rules, 0x100);
    case 2: return count_terms<uint16_t>(bytes, rules, 0x10000);
    default: return count_terms<uint32_t>(bytes, rules, 0x110000);
  }
}

// ---- labels -----------------------------------------------------------------------------------------------------------

PatternRows read_parents(Bytes &bytes, size_t n_nodes, size_t most_parents) {
  PatternRows parents;
  for (size_t node = 0; node < n_nodes; ++node, parents.end_row())
    for (size_t k = node ? bytes.below(most_parents + 1) : 0; k-- > 0;) {
      const auto parent = static_cast<int32_t>(bytes.below(node));
      const auto first = parents.columns.begin() + parents.offsets.back();
      if (std::find(first, parents.columns.end(), parent) == parents.columns.end()) parents.columns.push_back(parent);
    }
  return parents;
}

Pattern view(const PatternRows &rows, size_t n_columns) {
  return {rows.offsets.data(), rows.columns.data(), rows.offsets.size() - 1, n_columns};
}

void fuzz_labels(Bytes &bytes) {
  const size_t n_nodes = 1 + bytes.below(40), n_rows = bytes.below(6);
  const PatternRows parents = read_parents(bytes, n_nodes, 3);
  PatternRows rows;
  for (size_t r = 0; r < n_rows; ++r, rows.end_row())
    for (size_t k = bytes.below(5); k-- > 0;) rows.columns.push_back(static_cast<int32_t>(bytes.below(n_nodes)));
  const PatternRows closed = close_upward(view(rows, n_nodes), view(parents, n_nodes));
  check_rows(closed.offsets, closed.columns, n_rows, n_nodes);
  const PatternRows specific = keep_most_specific(view(closed, n_nodes), view(parents, n_nodes));
  const PatternRows again = close_upward(view(specific, n_nodes), view(parents, n_nodes));
  require(again.columns == closed.columns && again.offsets == closed.offsets, "the most specific labels have all others above");
  const PatternRows general = keep_most_general(view(closed, n_nodes), view(parents, n_nodes));
  require(general.columns.size() <= closed.columns.size(), "nothing is added");
}

// ---- decisions --------------------------------------------------------------------------------------------------------

template <typename T>
void fuzz_decisions(Bytes &bytes) {
  const size_t n_nodes = 1 + bytes.below(30), n_documents = bytes.below(4);
  std::vector<int32_t> parent(n_nodes, -1);
  for (size_t node = 1; node < n_nodes; ++node) parent[node] = static_cast<int32_t>(bytes.below(node + 1)) - 1;
  std::vector<double> weights(n_nodes), penalties(n_nodes), costs(n_nodes);
  std::vector<uint8_t> by_sign(n_nodes);
  for (size_t node = 0; node < n_nodes; ++node) {
    const uint8_t odd = bytes.byte();
    weights[node] = odd % 4 == 0 ? 0 : bytes.fraction();
    penalties[node] = odd % 5 == 0 ? std::numeric_limits<double>::infinity() : odd % 5 == 1 ? 0 : bytes.fraction();
    costs[node] = 0.1 + bytes.fraction();
    by_sign[node] = odd >> 7;
  }
  std::vector<T> scores(n_documents * n_nodes), smoothed(n_documents * n_nodes);
  for (T &score : scores) {
    const uint8_t value = bytes.byte();
    score = value == 255 ? std::numeric_limits<T>::quiet_NaN() : static_cast<T>(value / 254.0);
  }
  const size_t levels = bytes.byte() % 2 ? 0 : 2 + bytes.below(20);
  smooth_trees_in_place<T>({n_nodes, parent.data(), weights.data(), penalties.data(), levels}, scores.data(), n_documents,
                           smoothed.data());
  for (size_t k = 0; k < smoothed.size(); ++k) {
    const int32_t above = parent[k % n_nodes];
    const T mine = smoothed[k], its = above < 0 ? mine : smoothed[k - k % n_nodes + static_cast<size_t>(above)];
    require(std::isnan(mine) == std::isnan(its), "a tree has scores everywhere or nowhere");
    require(std::isnan(mine) || (mine <= its && mine >= 0 && mine <= 1), "no child is above its parent");
  }
  const PatternRows taken = minimize_h_loss<T>(scores.data(), n_documents, parent.data(), costs.data(), by_sign.data(), n_nodes);
  check_rows(taken.offsets, taken.columns, n_documents, n_nodes);
  for (size_t r = 0; r < n_documents; ++r)
    for (int64_t p = taken.offsets[r]; p < taken.offsets[r + 1]; ++p) {
      const int32_t above = parent[static_cast<size_t>(taken.columns[p])];
      const auto first = taken.columns.begin() + taken.offsets[r], last = taken.columns.begin() + taken.offsets[r + 1];
      require(above < 0 || std::binary_search(first, last, above), "a taken node has its parent");
    }
}

// ---- tables -----------------------------------------------------------------------------------------------------------

void fuzz_tables(Bytes &bytes) {
  const CsvLayout layout = {",;a"[bytes.below(3)], 1 + bytes.below(4), bytes.below(64)};
  const bool is_last = bytes.byte() % 2;
  std::vector<char> block;  // on the heap, with nothing behind it
  while (bytes.left()) block.push_back(bytes.byte() % 2 ? "\",\n\r;a"[bytes.below(6)] : static_cast<char>(bytes.byte()));
  CsvRows found;
  find_csv_rows({block.data(), block.size()}, layout, is_last, found);
  require(found.size <= block.size(), "rows lie in the block");
  require(found.cells.size() == found.starts.size() * layout.n_columns, "every row has every cell");
  require(found.lines.size() == found.starts.size(), "every row has a line");
  for (const CsvCell &cell : found.cells) {
    require(cell.begin >= block.data() && cell.begin + cell.length <= block.data() + found.size, "a cell lies in its row");
    require(cell.length <= layout.most_bytes, "no cell is too long");
  }
  for (size_t r = 1; r < found.starts.size(); ++r)
    require(found.starts[r - 1] < found.starts[r] && found.lines[r - 1] < found.lines[r], "rows follow each other");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Bytes bytes(data, std::min<size_t>(size, 4096));
  switch (bytes.byte() % 5) {
    case 0: fuzz_labels(bytes); break;
    case 1: fuzz_decisions<float>(bytes); break;
    case 2: fuzz_decisions<double>(bytes); break;
    case 3: fuzz_tables(bytes); break;
    default: fuzz_texts(bytes);
  }
  return 0;
}

#ifndef RAMIFY_LIBFUZZER
int main(int argc, char **argv) {
  const long n_inputs = argc > 1 ? std::atol(argv[1]) : 10000;
  std::mt19937 random(argc > 2 ? static_cast<uint32_t>(std::atol(argv[2])) : 0);
  std::vector<uint8_t> input;
  for (long k = 0; k < n_inputs; ++k) {
    input.resize(random() % (k % 10 ? 200 : 3000));
    for (uint8_t &byte : input) byte = static_cast<uint8_t>(random() % 4 ? random() : "  aA1_\0e"[random() % 8]);
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("%ld inputs, no finding\n", n_inputs);
}
#endif
