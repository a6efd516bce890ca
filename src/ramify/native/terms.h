// Terms as bytes: a hash of them, an index that says where each stands, and a table that grows.
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "memory.h"
#include "sparse_rows.h"

namespace ramify {

constexpr size_t kPadding = 8;  // bytes that may be read behind the last term

// Up to eight bytes as a number; the others are 0. Bytes behind them must be readable.
inline uint64_t read_bytes(const char *bytes, size_t n) {
  uint64_t word;
  std::memcpy(&word, bytes, 8);
  return n >= 8 ? word : word & ((uint64_t{1} << (8 * n)) - 1);
}

// Without the seed nobody can construct many terms with the same hash.
inline uint64_t hash_of(const char *bytes, size_t n, uint64_t seed) {
  uint64_t h = seed ^ n;
  for (size_t k = 0; k < n; k += 8) {
    h ^= read_bytes(bytes + k, n - k);
    h *= 0xd6e8feb86659fd93ULL;
    h ^= h >> 32;
  }
  h *= 0xd6e8feb86659fd93ULL;
  return h ^ (h >> 29);
}

inline bool is_same(const char *a, const char *b, size_t n) {
  for (size_t k = 0; k < n; k += 8)
    if (read_bytes(a + k, n - k) != read_bytes(b + k, n - k)) return false;
  return true;
}

// Terms one after the other: term t lies from offsets[t] to offsets[t + 1]; kPadding bytes are readable behind the last.
struct Terms {
  const char *bytes;
  const int64_t *offsets;
  size_t n;

  size_t length(size_t t) const { return static_cast<size_t>(offsets[t + 1] - offsets[t]); }
  const char *begin(size_t t) const { return bytes + offsets[t]; }
  std::string_view view(size_t t) const { return {begin(t), length(t)}; }
};

// A place of an index: the first eight bytes of a term, a part of its hash and its length, and its number plus one; the last
// is 0 where there is none. As numbers for Python: the first bytes, then the rest.
struct Slot {
  uint64_t first;
  uint32_t check;
  uint32_t number;

  static uint32_t check_of(size_t length, uint64_t hash) {
    return static_cast<uint32_t>(hash >> 40) << 8 | static_cast<uint32_t>(length < 255 ? length : 255);
  }
};

// The place of a term, or the empty one where it would stand. Their number is a power of two, and one is empty. Short terms are
// compared without reading the terms themselves.
inline size_t find_slot(const Slot *slots, size_t n_slots, const Terms &terms, const char *bytes, size_t length, uint64_t hash) {
  const uint64_t first = read_bytes(bytes, length);
  const uint32_t check = Slot::check_of(length, hash);
  for (size_t at = hash & (n_slots - 1);; at = (at + 1) & (n_slots - 1)) {
    const Slot &slot = slots[at];
    if (slot.number == 0) return at;
    if (slot.first != first || slot.check != check) continue;
    if (length <= 8) return at;
    const size_t term = slot.number - 1;
    if (terms.length(term) == length && is_same(terms.begin(term) + 8, bytes + 8, length - 8)) return at;
  }
}

struct TermIndex {
  Terms terms;
  const Slot *slots;
  size_t n_slots;
  uint64_t seed;

  // The number of a term, -1 where it is unknown.
  int32_t find(const char *bytes, size_t length) const { return find(bytes, length, hash_of(bytes, length, seed)); }
  int32_t find(const char *bytes, size_t length, uint64_t hash) const {
    return static_cast<int32_t>(slots[find_slot(slots, n_slots, terms, bytes, length, hash)].number) - 1;
  }
  void expect(uint64_t hash) const { __builtin_prefetch(slots + (hash & (n_slots - 1))); }
};

// Terms in the order in which they come, each once.
class TermTable {
 public:
  explicit TermTable(uint64_t seed, size_t expected = 1 << 12) : seed(seed), bytes_(kPadding), offsets_{0} {
    size_t n = 16;
    while (n < 2 * expected) n *= 2;
    slots_.assign(n, Slot{0, 0, 0});
  }

  const uint64_t seed;

  size_t size() const { return offsets_.size() - 1; }

  // The number of a term, which is new where it equals the size before.
  uint32_t add(const char *bytes, size_t length) { return add(bytes, length, hash_of(bytes, length, seed)); }
  uint32_t add(const char *bytes, size_t length, uint64_t hash) {
    const size_t at = find_slot(slots_.data(), slots_.size(), terms(), bytes, length, hash);
    if (slots_[at].number) return slots_[at].number - 1;
    const size_t end = bytes_.size() - kPadding;
    bytes_.resize(end + length + kPadding);
    std::memcpy(bytes_.data() + end, bytes, length);
    offsets_.push_back(static_cast<int64_t>(end + length));
    const auto number = static_cast<uint32_t>(size());
    slots_[at] = {read_bytes(bytes, length), Slot::check_of(length, hash), number};
    if (2 * size() > slots_.size()) grow();
    return number - 1;
  }
  void expect(uint64_t hash) const { __builtin_prefetch(slots_.data() + (hash & (slots_.size() - 1))); }

  Terms terms() const { return {bytes_.data(), offsets_.data(), size()}; }
  const Large<Slot> &slots() const { return slots_; }

 private:
  void grow() {
    Large<Slot> larger(4 * slots_.size(), Slot{0, 0, 0});
    const size_t mask = larger.size() - 1;
    const Terms all = terms();
    for (const Slot &slot : slots_) {
      if (slot.number == 0) continue;
      size_t at = hash_of(all.begin(slot.number - 1), all.length(slot.number - 1), seed) & mask;
      while (larger[at].number) at = (at + 1) & mask;
      larger[at] = slot;
    }
    slots_.swap(larger);
  }

  Large<char> bytes_;
  Large<int64_t> offsets_;
  Large<Slot> slots_;
};

// ---- from text to terms ---------------------------------------------------------------------------------------------

// A text as one, two or four bytes a character.
struct Text {
  const void *characters;
  size_t length;
  int width;
};

// What each character becomes in lower case, and whether it is part of a word or white space.
struct Characters {
  std::vector<uint32_t> lower;
  std::vector<uint8_t> is_word, is_space;
};

// What a term is made of, as in scikit-learn: words; characters, where white space of two or more becomes one space; or
// characters of the words between white spaces, with a space before and after each word.
enum class Analyzer { kWord, kChar, kCharWb };

// How terms of `shortest` to `longest` words or characters are found. characters: null where all texts are ASCII.
// stop_words: null for none. stemmed, stems: words and the stem of each; null where words are not stemmed.
struct TermRules {
  Analyzer analyzer;
  bool lowercase;
  size_t shortest, longest;
  const Characters *characters;
  const TermIndex *stop_words;
  const TermIndex *stemmed;
  const Terms *stems;
};

// Documents × terms; the terms of a row rise where they are known ones.
struct TermRows {
  std::vector<int64_t> offsets{0};
  std::vector<int32_t> terms;
  std::vector<float> counts;
};

// Counts terms as they come; gives rows of their numbers in `table`, if with_rows, and in how many documents each is.
void count_new_terms(const Text *texts, size_t n_texts, const TermRules &rules, bool with_rows, TermTable &table,
                     std::vector<int64_t> &documents, std::vector<int64_t> &occurrences, TermRows &rows);

// Counts known terms and passes over others.
void count_known_terms(const Text *texts, size_t n_texts, const TermRules &rules, const TermIndex &known, TermRows &rows);

// Counts terms by the column that their hash (MurmurHash3, 32 bits, seed 0) falls into.
void count_hashed_terms(const Text *texts, size_t n_texts, const TermRules &rules, size_t n_columns, TermRows &rows);

// Terms of several lists, each once, sorted by their bytes; positions: of each term of each list, in order.
struct SortedTerms {
  std::vector<char> bytes;
  std::vector<int64_t> offsets{0};
  std::vector<int32_t> positions;
};
SortedTerms sort_terms(const std::vector<Terms> &lists, uint64_t seed);

// Gives the terms of rows other numbers, below n_numbers, drops those with a number below 0, and sorts each row.
void renumber_rows(const Rows &rows, const int32_t *numbers, size_t n_numbers, TermRows &renumbered);

// Multiplies values by the weights of their terms, and scales rows to unit length.
void weigh_rows_in_place(const Pattern &rows, const float *weights, float *values);

}  // namespace ramify
