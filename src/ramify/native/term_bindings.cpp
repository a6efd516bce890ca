// Bindings of terms: Python's strings are read in place, while references to them are held.
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <limits>
#include <random>

#include "checks.h"
#include "terms.h"

namespace {

using ramify::Analyzer;
using ramify::Rows;
using ramify::TermIndex;
using ramify::Terms;
using ramify::TermRules;

constexpr uint32_t kCapitalSigma = 0x3a3, kCapitalIWithDot = 0x130;  // their lower case is not one fixed character

// Characters as Python classifies them; made when first needed.
const ramify::Characters &characters() {
  static const ramify::Characters found = [] {
    constexpr uint32_t kCharacters = 0x110000;
    ramify::Characters made{std::vector<uint32_t>(kCharacters), std::vector<uint8_t>(kCharacters), std::vector<uint8_t>(kCharacters)};
    for (uint32_t c = 0; c < kCharacters; ++c) {
      made.lower[c] = static_cast<uint32_t>(Py_UNICODE_TOLOWER(static_cast<Py_UCS4>(c)));
      made.is_word[c] = Py_UNICODE_ISALNUM(static_cast<Py_UCS4>(c)) || c == '_';
      made.is_space[c] = Py_UNICODE_ISSPACE(static_cast<Py_UCS4>(c));
    }
    return made;
  }();
  return found;
}

template <typename Character>
bool has_odd_capital(const ramify::Text &text) {
  const auto *first = static_cast<const Character *>(text.characters);
  return std::any_of(first, first + text.length, [](Character c) { return c == kCapitalSigma || c == kCapitalIWithDot; });
}

// The texts of a list, with references to them.
class Texts {
 public:
  Texts(nb::list texts, bool lowercase) {
    texts_.reserve(texts.size());
    for (nb::handle text : texts) add(text.ptr(), lowercase);
  }

  const ramify::Text *data() const { return texts_.data(); }
  size_t size() const { return texts_.size(); }
  const ramify::Characters *needed() const { return is_ascii_ ? nullptr : &characters(); }

 private:
  void add(PyObject *text, bool lowercase) {
    if (!PyUnicode_Check(text)) throw nb::type_error("every text must be a string");
    nb::object string = nb::borrow(text);
    ramify::Text read = read_string(text);
    if (lowercase && ((read.width == 2 && has_odd_capital<uint16_t>(read)) || (read.width == 4 && has_odd_capital<uint32_t>(read)))) {
      string = nb::handle(reinterpret_cast<PyObject *>(&PyUnicode_Type)).attr("lower")(string);  // not a subclass's own
      read = read_string(string.ptr());
    }
    is_ascii_ &= PyUnicode_IS_ASCII(string.ptr()) != 0;
    texts_.push_back(read);
    strings_.push_back(std::move(string));
  }

  static ramify::Text read_string(PyObject *text) {
#if PY_VERSION_HEX < 0x030c0000
    if (PyUnicode_READY(text) < 0) throw nb::python_error();
#endif
    return {PyUnicode_DATA(text), static_cast<size_t>(PyUnicode_GET_LENGTH(text)), static_cast<int>(PyUnicode_KIND(text))};
  }

  std::vector<ramify::Text> texts_;
  std::vector<nb::object> strings_;
  bool is_ascii_ = true;
};

Terms make_terms(const In<uint8_t> &bytes, const In<int64_t> &offsets) {
  check(bytes.size() >= ramify::kPadding, "bytes is too short; give 8 bytes of padding behind the last term.");
  check_offsets("offsets", offsets.data(), offsets.size(), bytes.size() - ramify::kPadding);
  return {reinterpret_cast<const char *>(bytes.data()), offsets.data(), offsets.size() - 1};
}

TermIndex make_term_index(const Held<Terms> &terms, const In<uint64_t> &slots, uint64_t seed) {
  const size_t n_slots = slots.size() / 2;
  check(slots.size() == 2 * n_slots && n_slots > 0 && (n_slots & (n_slots - 1)) == 0,
        "slots is not a table of terms; give what index_terms returns.");
  const auto *table = reinterpret_cast<const ramify::Slot *>(slots.data());
  size_t n_empty = 0;
  bool fits = true;
  for (size_t k = 0; k < n_slots; ++k) n_empty += table[k].number == 0, fits &= table[k].number <= terms.n;
  check(fits && n_empty > 0, "slots does not fit the terms; give what index_terms returns for them.");
  return {terms, table, n_slots, seed};
}

TermRules make_term_rules(std::string_view analyzer, bool lowercase, size_t shortest, size_t longest,
                          const Held<TermIndex> *stop_words, const Held<TermIndex> *stemmed, const Held<Terms> *stems) {
  const auto kind = find_option<Analyzer>(
      "analyzer", analyzer, {{"word", Analyzer::kWord}, {"char", Analyzer::kChar}, {"char_wb", Analyzer::kCharWb}});
  check(shortest >= 1 && shortest <= longest, "shortest is 0 or above longest; give 1 ≤ shortest ≤ longest pieces of a term.");
  check(kind == Analyzer::kWord || (!stop_words && !stemmed), "stop words and stems are of words; leave them out for characters.");
  check((stemmed == nullptr) == (stems == nullptr), "only one of stemmed and stems is given; give both or None for both.");
  if (stemmed) check_size("stems", stems->n, stemmed->terms.n, "one for each stemmed word");
  return {kind, lowercase, shortest, longest, nullptr, stop_words, stemmed, stems};
}

TermRules with_characters(const TermRules &rules, const Texts &texts) {
  TermRules complete = rules;
  complete.characters = texts.needed();
  return complete;
}

// For tables that do not outlive a call.
uint64_t process_seed() {
  static const uint64_t seed = std::random_device{}() | static_cast<uint64_t>(std::random_device{}()) << 32;
  return seed;
}

nb::tuple to_tuple(ramify::TermRows &&rows) {
  return nb::make_tuple(to_numpy(std::move(rows.offsets)), to_numpy(std::move(rows.terms)), to_numpy(std::move(rows.counts)));
}

std::vector<uint8_t> to_bytes(const char *first, size_t n) { return std::vector<uint8_t>(first, first + n); }

nb::tuple count_new_terms(nb::list texts, const Held<TermRules> &rules, bool with_rows) {
  const Texts strings(texts, rules.lowercase);
  const TermRules complete = with_characters(rules, strings);
  ramify::TermTable table(process_seed());
  std::vector<int64_t> documents, occurrences, offsets;
  ramify::TermRows rows;
  std::vector<uint8_t> bytes;
  without_gil([&] {
    ramify::count_new_terms(strings.data(), strings.size(), complete, with_rows, table, documents, occurrences, rows);
    const Terms terms = table.terms();
    bytes = to_bytes(terms.bytes, static_cast<size_t>(terms.offsets[terms.n]) + ramify::kPadding);
    offsets.assign(terms.offsets, terms.offsets + terms.n + 1);
  });
  return nb::make_tuple(to_numpy(std::move(bytes)), to_numpy(std::move(offsets)), to_numpy(std::move(documents)),
                        to_numpy(std::move(occurrences)), to_tuple(std::move(rows)));
}

nb::tuple count_known_terms(nb::list texts, const Held<TermRules> &rules, const Held<TermIndex> &known) {
  const Texts strings(texts, rules.lowercase);
  const TermRules complete = with_characters(rules, strings);
  ramify::TermRows rows;
  without_gil([&] { ramify::count_known_terms(strings.data(), strings.size(), complete, known, rows); });
  return to_tuple(std::move(rows));
}

nb::tuple count_hashed_terms(nb::list texts, const Held<TermRules> &rules, size_t n_columns) {
  check(n_columns > 0 && n_columns <= static_cast<size_t>(std::numeric_limits<int32_t>::max()),
        "n_columns is 0 or too large; give 1 to 2147483647.");
  const Texts strings(texts, rules.lowercase);
  const TermRules complete = with_characters(rules, strings);
  ramify::TermRows rows;
  without_gil([&] { ramify::count_hashed_terms(strings.data(), strings.size(), complete, n_columns, rows); });
  return to_tuple(std::move(rows));
}

nb::ndarray<nb::numpy, uint64_t, nb::ndim<1>> index_terms(const Held<Terms> &terms, uint64_t seed) {
  return to_numpy(without_gil([&] {
    ramify::TermTable table(seed, terms.n);
    for (size_t t = 0; t < terms.n; ++t) table.add(terms.begin(t), terms.length(t));
    const auto *first = reinterpret_cast<const uint64_t *>(table.slots().data());
    return ramify::Large<uint64_t>(first, first + 2 * table.slots().size());
  }));
}

nb::tuple sort_terms(nb::list lists) {
  std::vector<Terms> terms;
  for (nb::handle list : lists) terms.push_back(nb::cast<const Held<Terms> &>(list));
  ramify::SortedTerms sorted;
  std::vector<uint8_t> bytes;
  without_gil([&] {
    sorted = ramify::sort_terms(terms, process_seed());
    bytes = to_bytes(sorted.bytes.data(), sorted.bytes.size());
  });
  return nb::make_tuple(to_numpy(std::move(bytes)), to_numpy(std::move(sorted.offsets)), to_numpy(std::move(sorted.positions)));
}

nb::tuple renumber_rows(const Held<Rows> &rows, const In<int32_t> &numbers, size_t n_numbers) {
  check_size("numbers", numbers.size(), rows.n_columns, "one for each column");
  check_indices("numbers", numbers.data(), numbers.size(), std::numeric_limits<int32_t>::min(), static_cast<int64_t>(n_numbers));
  ramify::TermRows renumbered;
  without_gil([&] { ramify::renumber_rows(rows, numbers.data(), n_numbers, renumbered); });
  return to_tuple(std::move(renumbered));
}

void weigh_rows_in_place(const Held<ramify::Pattern> &rows, const In<float> &weights, const Out<float> &values) {
  check_size("weights", weights.size(), rows.n_columns, "one for each column");
  check(values.size() >= static_cast<size_t>(rows.offsets[rows.n_rows]), "values is too short; give one for each entry of the rows.");
  without_gil([&] { ramify::weigh_rows_in_place(rows, weights.data(), values.data()); });
}

}  // namespace

void bind_terms(nb::module_ &m) {
  def_struct(m, "Terms", "Terms in UTF-8, one after the other, with 8 bytes of padding behind the last.", &make_terms, "bytes",
             "offsets");
  def_struct(m, "TermIndex", "A hash table of terms.", &make_term_index, "terms", "slots", "seed");
  def_struct(m, "TermRules", "What a term is made of: so many words or characters.", &make_term_rules, "analyzer", "lowercase",
             "shortest", "longest", "stop_words", "stemmed", "stems");
  def_kernel(m, "count_new_terms", &count_new_terms, "texts", "rules", "with_rows");
  def_kernel(m, "count_known_terms", &count_known_terms, "texts", "rules", "known");
  def_kernel(m, "count_hashed_terms", &count_hashed_terms, "texts", "rules", "n_columns");
  def_kernel(m, "index_terms", &index_terms, "terms", "seed");
  def_kernel(m, "sort_terms", &sort_terms, "lists");
  def_kernel(m, "renumber_rows", &renumber_rows, "rows", "numbers", "n_numbers");
  def_kernel(m, "weigh_rows_in_place", &weigh_rows_in_place, "rows", "weights", "values");
}
