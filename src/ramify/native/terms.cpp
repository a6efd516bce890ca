// From texts to counted terms.
#include "terms.h"

#include <algorithm>
#include <cmath>

namespace ramify {
namespace {

// What an ASCII character becomes inside a word; 0 for one that ends it.
struct Ascii {
  char inside[128];
  explicit Ascii(bool lowercase) {
    for (int c = 0; c < 128; ++c) {
      const bool is_upper = c >= 'A' && c <= 'Z';
      const bool is_word = is_upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
      inside[c] = is_word ? static_cast<char>(is_upper && lowercase ? c + 32 : c) : '\0';
    }
  }
};

// The words of one text, written one after the other with a space between, so that a run of words is a run of bytes.
class Words {
 public:
  explicit Words(const WordRules &rules) : rules_(rules), ascii_(rules.lowercase) {
    for (size_t t = 0; rules.stems && t < rules.stems->n; ++t)
      if (rules.stems->length(t) > rules.stemmed->terms.length(t))
        longer_ = std::max(longer_, rules.stems->length(t) - rules.stemmed->terms.length(t));
  }

  void read(const Text &text) {
    words_.clear();
    if (text.width == 1) read_as<uint8_t>(text);
    else if (text.width == 2) read_as<uint16_t>(text);
    else read_as<uint32_t>(text);
  }

  // Uses every run of so many words, shorter ones first; where they will be looked for is announced some terms before.
  template <typename Expect, typename Use>
  void each_term(uint64_t seed, Expect expect, Use use) {
    terms_.clear();
    for (size_t size = rules_.shortest; size <= rules_.longest && size <= words_.size(); ++size)
      for (size_t k = 0; k + size <= words_.size(); ++k) {
        const Word &first = words_[k], &last = words_[k + size - 1];
        const size_t length = last.start + last.length - first.start;
        terms_.push_back({written_.data() + first.start, length, hash_of(written_.data() + first.start, length, seed)});
      }
    const size_t n = terms_.size();
    for (size_t k = 0; k < std::min(kAhead, n); ++k) expect(terms_[k].hash);
    for (size_t k = 0; k < n; ++k) {
      if (k + kAhead < n) expect(terms_[k + kAhead].hash);
      use(terms_[k].bytes, terms_[k].length, terms_[k].hash);
    }
  }

 private:
  // Bytes are written through a pointer that nothing else refers to, into room for the whole text.
  template <typename Character>
  void read_as(const Text &text) {
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
    words_.push_back({static_cast<size_t>(word - written_.data()), length});
    *out = ' ';
    return out + 1;
  }

  static constexpr size_t kAhead = 12;
  struct Word {
    size_t start, length;
  };
  struct Term {
    const char *bytes;
    size_t length;
    uint64_t hash;
  };

  const WordRules &rules_;
  const Ascii ascii_;
  std::vector<char> written_;
  std::vector<Word> words_;
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
void count_numbered(const Text *texts, size_t n_texts, const WordRules &rules, size_t n_terms, uint64_t seed, Expect expect,
                    Find find, TermRows &rows) {
  Words words(rules);
  RowSorter row(n_terms);
  size_t n_characters = 0;
  for (size_t d = 0; d < n_texts; ++d) n_characters += texts[d].length;
  const bool has_table = n_texts >= 64 && n_terms <= n_characters;  // enough texts to pay for a table of all terms
  Counter counter(has_table ? n_terms : 0);
  for (size_t d = 0; d < n_texts; ++d) {
    words.read(texts[d]);
    counter.begin();
    words.each_term(seed, expect, [&](const char *bytes, size_t length, uint64_t hash) {
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

void count_new_terms(const Text *texts, size_t n_texts, const WordRules &rules, bool with_rows, TermTable &table,
                     std::vector<int64_t> &documents, std::vector<int64_t> &occurrences, TermRows &rows) {
  Words words(rules);
  Counter counter(0);
  for (size_t d = 0; d < n_texts; ++d) {
    words.read(texts[d]);
    counter.begin();
    words.each_term(table.seed, [&](uint64_t hash) { table.expect(hash); },
                    [&](const char *bytes, size_t length, uint64_t hash) { counter.add(table.add(bytes, length, hash)); });
    documents.resize(table.size()), occurrences.resize(table.size());
    for (const auto &[term, count] : counter.counted) {
      ++documents[term], occurrences[term] += count;
      if (with_rows) rows.terms.push_back(static_cast<int32_t>(term)), rows.counts.push_back(static_cast<float>(count));
    }
    rows.offsets.push_back(static_cast<int64_t>(rows.terms.size()));
  }
}

void count_known_terms(const Text *texts, size_t n_texts, const WordRules &rules, const TermIndex &known, TermRows &rows) {
  count_numbered(texts, n_texts, rules, known.terms.n, known.seed, [&](uint64_t hash) { known.expect(hash); },
                 [&](const char *bytes, size_t length, uint64_t hash) { return known.find(bytes, length, hash); }, rows);
}

void count_hashed_terms(const Text *texts, size_t n_texts, const WordRules &rules, size_t n_columns, TermRows &rows) {
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
