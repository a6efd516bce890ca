// From texts to counted terms.
#include "terms.h"

#include <algorithm>
#include <cmath>

namespace ramify {
namespace {

// ASCII characters: what each becomes in lower case, if asked, and inside a word, where 0 ends it; and which are white space.
struct Ascii {
  char lower[128], inside[128];
  bool is_space[128];
  explicit Ascii(bool lowercase) {
    for (int c = 0; c < 128; ++c) {
      const bool is_upper = c >= 'A' && c <= 'Z';
      const bool is_word = is_upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
      lower[c] = static_cast<char>(is_upper && lowercase ? c + 32 : c);
      inside[c] = is_word ? lower[c] : '\0';
      is_space[c] = c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f);
    }
  }
};

// The terms of one text. Words are written one after the other with a space between, so that a run of words is a run of bytes;
// so is a run of characters.
class TermReader {
 public:
  explicit TermReader(const TermRules &rules) : rules_(rules), ascii_(rules.lowercase) {
    for (size_t t = 0; rules.stems && t < rules.stems->n; ++t)
      if (rules.stems->length(t) > rules.stemmed->terms.length(t))
        longer_ = std::max(longer_, rules.stems->length(t) - rules.stemmed->terms.length(t));
  }

  // Uses every term of a text; where it will be looked for is announced some terms before.
  template <typename Expect, typename Use>
  void each_term(const Text &text, uint64_t seed, Expect expect, Use use) {
    pieces_.clear(), runs_.clear();
    if (text.width == 1) read_as<uint8_t>(text);
    else if (text.width == 2) read_as<uint16_t>(text);
    else read_as<uint32_t>(text);
    terms_.clear();
    for (const Run &run : runs_)
      for (size_t size = rules_.shortest; size <= rules_.longest; ++size) {
        // a word that is shorter than a term of characters is one term
        const bool is_whole = rules_.analyzer == Analyzer::kCharWb && size >= run.n;
        const size_t taken = is_whole ? run.n : size;
        for (size_t k = run.first; k + taken <= run.first + run.n; ++k) {
          const Piece &first = pieces_[k], &last = pieces_[k + taken - 1];
          const size_t length = last.start + last.length - first.start;
          terms_.push_back({written_.data() + first.start, length, hash_of(written_.data() + first.start, length, seed)});
          if (terms_.size() == kMost) flush(expect, use);
        }
        if (is_whole) break;
      }
    flush(expect, use);
  }

 private:
  template <typename Expect, typename Use>
  void flush(Expect expect, Use use) {
    const size_t n = terms_.size();
    for (size_t k = 0; k < std::min(kAhead, n); ++k) expect(terms_[k].hash);
    for (size_t k = 0; k < n; ++k) {
      if (k + kAhead < n) expect(terms_[k + kAhead].hash);
      use(terms_[k].bytes, terms_[k].length, terms_[k].hash);
    }
    terms_.clear();
  }

  template <typename Character>
  void read_as(const Text &text) {
    if (rules_.analyzer == Analyzer::kWord) read_words<Character>(text);
    else read_characters<Character>(text);
  }

  // Bytes are written through a pointer that nothing else refers to, into room for the whole text.
  template <typename Character>
  void read_words(const Text &text) {
    const auto *next = static_cast<const Character *>(text.characters), *last = next + text.length;
    reserve((sizeof(Character) + 1 + (sizeof(Character) == 1) + longer_) * text.length);
    char *out = written_.data();
    while (next < last) {
      char *word = out;
      size_t n_characters = 0;
      for (; next < last; ++next, ++n_characters) {
        const uint32_t c = *next;
        if (c < 128) {
          const char inside = ascii_.inside[c];
          if (!inside) break;
          *out++ = inside;
        } else {
          const uint32_t low = rules_.lowercase ? rules_.characters->lower[c] : c;
          if (!rules_.characters->is_word[low]) break;
          out = write(low, out);
        }
      }
      out = n_characters < 2 ? word : end_word(word, out);
      ++next;
    }
    if (!pieces_.empty()) runs_.push_back({0, pieces_.size()});
  }

  // One run of all characters, or one for every word.
  template <typename Character>
  void read_characters(const Text &text) {
    const auto *next = static_cast<const Character *>(text.characters), *last = next + text.length;
    reserve((std::min<size_t>(sizeof(Character) + 1, 4) + 1) * text.length + 2);
    const bool by_words = rules_.analyzer == Analyzer::kCharWb;
    char *out = written_.data();
    size_t first = 0;
    while (next < last) {
      if (!is_space(*next)) {
        if (by_words && pieces_.size() == first) out = add(' ', out);
        out = add(lower(*next++), out);
        if (next < last) continue;
      }
      const auto *space = next;
      while (next < last && is_space(*next)) ++next;
      if (!by_words) {
        if (space < next) out = add(next - space > 1 ? uint32_t{' '} : *space, out);
      } else if (pieces_.size() > first) {
        out = add(' ', out);
        runs_.push_back({first, pieces_.size() - first});
        first = pieces_.size();
      }
    }
    if (!by_words && !pieces_.empty()) runs_.push_back({0, pieces_.size()});
  }

  bool is_space(uint32_t c) const { return c < 128 ? ascii_.is_space[c] : rules_.characters->is_space[c] != 0; }
  uint32_t lower(uint32_t c) const {
    if (c < 128) return static_cast<uint8_t>(ascii_.lower[c]);
    return rules_.lowercase ? rules_.characters->lower[c] : c;
  }

  // Adds a character as a piece.
  char *add(uint32_t c, char *out) {
    char *end = write(c, out);
    pieces_.push_back({static_cast<size_t>(out - written_.data()), static_cast<size_t>(end - out)});
    return end;
  }

  void reserve(size_t n_bytes) {
    if (written_.size() < n_bytes + 2 * kPadding) written_.resize(n_bytes + n_bytes / 4 + 2 * kPadding);
  }

  // One character in UTF-8.
  static char *write(uint32_t c, char *out) {
    const auto put = [&](uint32_t byte) { *out++ = static_cast<char>(byte); };
    if (c < 0x80) {
      put(c);
    } else if (c < 0x800) {
      put(0xc0 | c >> 6), put(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
      put(0xe0 | c >> 12), put(0x80 | (c >> 6 & 0x3f)), put(0x80 | (c & 0x3f));
    } else {
      put(0xf0 | c >> 18), put(0x80 | (c >> 12 & 0x3f)), put(0x80 | (c >> 6 & 0x3f)), put(0x80 | (c & 0x3f));
    }
    return out;
  }

  // Ends the word just written: it stays, becomes its stem, or is removed as a stop word. Gives where the next one starts.
  char *end_word(char *word, char *out) {
    auto length = static_cast<size_t>(out - word);
    if (rules_.stop_words && rules_.stop_words->find(word, length) >= 0) return word;
    if (rules_.stemmed) {
      const int32_t known = rules_.stemmed->find(word, length);
      if (known >= 0) {
        const std::string_view stem = rules_.stems->view(static_cast<size_t>(known));
        length = stem.size();
        std::memcpy(word, stem.data(), length);
        out = word + length;
      }
    }
    pieces_.push_back({static_cast<size_t>(word - written_.data()), length});
    *out = ' ';
    return out + 1;
  }

  static constexpr size_t kAhead = 12, kMost = 1 << 14;
  struct Piece {  // a word or a character
    size_t start, length;
  };
  struct Run {  // pieces that terms may be made of
    size_t first, n;
  };
  struct Term {
    const char *bytes;
    size_t length;
    uint64_t hash;
  };

  const TermRules &rules_;
  const Ascii ascii_;
  std::vector<char> written_;
  std::vector<Piece> pieces_;
  std::vector<Run> runs_;
  std::vector<Term> terms_;
  size_t longer_ = 0;  // by how much a stem is longer than its word, at most
};

uint32_t rotate(uint32_t x, int by) { return x << by | x >> (32 - by); }

// MurmurHash3 for 32 bits.
uint32_t murmur(const char *bytes, size_t n) {
  uint32_t h = 0, k = 0;
  const auto stir = [](uint32_t x) { return rotate(x * 0xcc9e2d51u, 15) * 0x1b873593u; };
  size_t at = 0;
  for (; at + 4 <= n; at += 4) {
    std::memcpy(&k, bytes + at, 4);
    h = rotate(h ^ stir(k), 13) * 5 + 0xe6546b64u;
  }
  if (at < n) h ^= stir(static_cast<uint32_t>(read_bytes(bytes + at, n - at)));
  h ^= static_cast<uint32_t>(n);
  h = (h ^ h >> 16) * 0x85ebca6bu;
  h = (h ^ h >> 13) * 0xc2b2ae35u;
  return h ^ h >> 16;
}

// Sorts the terms of a row, and adds up what it holds twice.
class RowSorter {
 public:
  explicit RowSorter(size_t n_terms) {
    int bits = 1;
    while (n_terms >> bits) ++bits;
    passes_ = (bits + 9) / 10;
    digit_ = (bits + passes_ - 1) / passes_;
    places_.resize(size_t{1} << digit_);
  }

  void add(int32_t term, uint32_t count) { keys_.push_back(static_cast<uint64_t>(term) << 32 | count); }

  void flush(TermRows &rows) {
    if (keys_.size() < 64) std::sort(keys_.begin(), keys_.end());
    else sort_by_digits();
    for (size_t k = 0; k < keys_.size();) {
      const uint64_t term = keys_[k] >> 32;
      uint64_t count = 0;
      for (; k < keys_.size() && keys_[k] >> 32 == term; ++k) count += static_cast<uint32_t>(keys_[k]);
      rows.terms.push_back(static_cast<int32_t>(term)), rows.counts.push_back(static_cast<float>(count));
    }
    rows.offsets.push_back(static_cast<int64_t>(rows.terms.size()));
    keys_.clear();
  }

 private:
  void sort_by_digits() {
    other_.resize(keys_.size());
    for (int pass = 0; pass < passes_; ++pass) {
      const int shift = 32 + pass * digit_;
      const uint64_t mask = places_.size() - 1;
      std::fill(places_.begin(), places_.end(), 0);
      for (const uint64_t key : keys_) ++places_[key >> shift & mask];
      uint32_t before = 0;
      for (uint32_t &place : places_) {
        const uint32_t count = place;
        place = before;
        before += count;
      }
      for (const uint64_t key : keys_) other_[places_[key >> shift & mask]++] = key;
      keys_.swap(other_);
    }
  }

  int passes_, digit_;
  std::vector<uint32_t> places_;
  std::vector<uint64_t> keys_, other_;
};

// The terms of one document after the other, each once with its count, in the order of first occurrence.
class Counter {
 public:
  explicit Counter(size_t n_terms) : seen_(n_terms, {0, 0}) {}

  void begin() { ++document_, counted.clear(); }

  // Whether the term is new in the document.
  bool add(uint32_t term) {
    if (term >= seen_.size()) seen_.resize(std::max<size_t>(term + 1, 2 * seen_.size()), {0, 0});
    Seen &seen = seen_[term];
    if (seen.document == document_) {
      ++counted[seen.place].second;
      return false;
    }
    seen = {document_, static_cast<uint32_t>(counted.size())};
    counted.push_back({term, 1});
    return true;
  }

  std::vector<std::pair<uint32_t, uint32_t>> counted;

 private:
  struct Seen {
    uint32_t document, place;
  };
  Large<Seen> seen_;
  uint32_t document_ = 0;
};

// Rows of terms by a function from a term to its number, -1 for one that does not count.
template <typename Expect, typename Find>
void count_numbered(const Text *texts, size_t n_texts, const TermRules &rules, size_t n_terms, uint64_t seed, Expect expect,
                    Find find, TermRows &rows) {
  TermReader reader(rules);
  RowSorter row(n_terms);
  size_t n_characters = 0;
  for (size_t d = 0; d < n_texts; ++d) n_characters += texts[d].length;
  const bool has_table = n_texts >= 64 && n_terms <= n_characters;  // enough texts to pay for a table of all terms
  Counter counter(has_table ? n_terms : 0);
  for (size_t d = 0; d < n_texts; ++d) {
    counter.begin();
    reader.each_term(texts[d], seed, expect, [&](const char *bytes, size_t length, uint64_t hash) {
      const int32_t term = find(bytes, length, hash);
      if (term < 0) return;
      if (has_table) counter.add(static_cast<uint32_t>(term));
      else row.add(term, 1);
    });
    for (const auto &[term, count] : counter.counted) row.add(static_cast<int32_t>(term), count);
    row.flush(rows);
  }
}

}  // namespace

void count_new_terms(const Text *texts, size_t n_texts, const TermRules &rules, bool with_rows, TermTable &table,
                     std::vector<int64_t> &documents, std::vector<int64_t> &occurrences, TermRows &rows) {
  TermReader reader(rules);
  Counter counter(0);
  for (size_t d = 0; d < n_texts; ++d) {
    counter.begin();
    reader.each_term(texts[d], table.seed, [&](uint64_t hash) { table.expect(hash); },
                    [&](const char *bytes, size_t length, uint64_t hash) { counter.add(table.add(bytes, length, hash)); });
    documents.resize(table.size()), occurrences.resize(table.size());
    for (const auto &[term, count] : counter.counted) {
      ++documents[term], occurrences[term] += count;
      if (with_rows) rows.terms.push_back(static_cast<int32_t>(term)), rows.counts.push_back(static_cast<float>(count));
    }
    rows.offsets.push_back(static_cast<int64_t>(rows.terms.size()));
  }
}

void count_known_terms(const Text *texts, size_t n_texts, const TermRules &rules, const TermIndex &known, TermRows &rows) {
  count_numbered(texts, n_texts, rules, known.terms.n, known.seed, [&](uint64_t hash) { known.expect(hash); },
                 [&](const char *bytes, size_t length, uint64_t hash) { return known.find(bytes, length, hash); }, rows);
}

void count_hashed_terms(const Text *texts, size_t n_texts, const TermRules &rules, size_t n_columns, TermRows &rows) {
  const auto column_of = [&](const char *bytes, size_t length, uint64_t) {
    const auto h = static_cast<int64_t>(static_cast<int32_t>(murmur(bytes, length)));
    return static_cast<int32_t>(std::abs(h) % static_cast<int64_t>(n_columns));
  };
  count_numbered(texts, n_texts, rules, n_columns, 0, [](uint64_t) {}, column_of, rows);
}

SortedTerms sort_terms(const std::vector<Terms> &lists, uint64_t seed) {
  size_t n_listed = 0;
  for (const Terms &list : lists) n_listed += list.n;
  TermTable table(seed, n_listed);
  std::vector<uint32_t> numbers;
  numbers.reserve(n_listed);
  for (const Terms &list : lists)
    for (size_t t = 0; t < list.n; ++t)
      numbers.push_back(table.add(list.begin(t), list.length(t)));
  // the first sixteen bytes decide nearly always
  struct Entry {
    uint64_t first, second;
    uint32_t term;
  };
  const Terms all = table.terms();
  std::vector<Entry> order(all.n);
  for (size_t t = 0; t < all.n; ++t)
    order[t] = {__builtin_bswap64(read_bytes(all.begin(t), all.length(t))),
                all.length(t) > 8 ? __builtin_bswap64(read_bytes(all.begin(t) + 8, all.length(t) - 8)) : 0,
                static_cast<uint32_t>(t)};
  std::sort(order.begin(), order.end(), [&](const Entry &a, const Entry &b) {
    if (a.first != b.first) return a.first < b.first;
    return a.second != b.second ? a.second < b.second : all.view(a.term) < all.view(b.term);
  });
  SortedTerms sorted;
  sorted.bytes.reserve(static_cast<size_t>(all.offsets[all.n]) + kPadding);
  sorted.offsets.reserve(all.n + 1);
  std::vector<int32_t> position(all.n);
  for (size_t k = 0; k < all.n; ++k) {
    const std::string_view term = all.view(order[k].term);
    sorted.bytes.insert(sorted.bytes.end(), term.begin(), term.end());
    sorted.offsets.push_back(static_cast<int64_t>(sorted.bytes.size()));
    position[order[k].term] = static_cast<int32_t>(k);
  }
  sorted.bytes.resize(sorted.bytes.size() + kPadding);
  sorted.positions.reserve(n_listed);
  for (const uint32_t number : numbers) sorted.positions.push_back(position[number]);
  return sorted;
}

void renumber_rows(const Rows &rows, const int32_t *numbers, size_t n_numbers, TermRows &renumbered) {
  RowSorter row(n_numbers);
  renumbered.terms.reserve(rows.n_entries());
  renumbered.counts.reserve(renumbered.terms.capacity());
  for (size_t r = 0; r < rows.n_rows; ++r) {
    for (int64_t p = rows.offsets[r]; p < rows.offsets[r + 1]; ++p) {
      const int32_t number = numbers[rows.columns[p]];
      if (number >= 0) row.add(number, static_cast<uint32_t>(rows.values[p]));
    }
    row.flush(renumbered);
  }
}

void weigh_rows_in_place(const Pattern &rows, const float *weights, float *values) {
  for (size_t r = 0; r < rows.n_rows; ++r) {
    double squares = 0;
    for (int64_t p = rows.offsets[r]; p < rows.offsets[r + 1]; ++p) {
      values[p] *= weights[rows.columns[p]];
      squares += values[p] * values[p];
    }
    const double length = std::sqrt(squares);
    if (length > 0)
      for (int64_t p = rows.offsets[r]; p < rows.offsets[r + 1]; ++p) values[p] = static_cast<float>(values[p] / length);
  }
}

}  // namespace ramify
