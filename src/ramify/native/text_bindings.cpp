// The door for texts: Python's strings are read where they lie, while the list that holds them is held.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <random>
#include <tuple>

#include "arrays.h"
#include "terms.h"

namespace {

using TermArrays = std::tuple<In<uint8_t>, In<int64_t>>;
using IndexArrays = std::tuple<In<uint8_t>, In<int64_t>, In<uint64_t>, uint64_t>;  // the last is the seed

constexpr uint32_t CAPITAL_SIGMA = 0x3a3, CAPITAL_I_WITH_DOT = 0x130;  // whose lower case is not one character for one

// As Python itself sees characters; made when first needed.
const ramify::Characters &characters() {
  static const ramify::Characters found = [] {
    constexpr uint32_t N = 0x110000;
    ramify::Characters made{std::vector<uint32_t>(N), std::vector<uint8_t>(N)};
    for (uint32_t c = 0; c < N; ++c) {
      made.lower[c] = static_cast<uint32_t>(Py_UNICODE_TOLOWER(static_cast<Py_UCS4>(c)));
      made.is_word[c] = Py_UNICODE_ISALNUM(static_cast<Py_UCS4>(c)) || c == '_';
    }
    return made;
  }();
  return found;
}

template <typename Character>
bool has_odd_capital(const ramify::Text &text) {
  const auto *first = static_cast<const Character *>(text.characters);
  return std::any_of(first, first + text.length, [](Character c) { return c == CAPITAL_SIGMA || c == CAPITAL_I_WITH_DOT; });
}

// Texts of a list, held as long as this lives.
class HeldTexts {
 public:
  HeldTexts(nb::list texts, bool lowercase) {
    texts_.reserve(texts.size());
    for (nb::handle text : texts) add(text.ptr(), lowercase);
  }

  const ramify::Text *data() const { return texts_.data(); }
  size_t size() const { return texts_.size(); }
  const ramify::Characters *needed() const { return is_ascii_ ? nullptr : &characters(); }

 private:
  void add(PyObject *text, bool lowercase) {
    if (!PyUnicode_Check(text)) throw nb::type_error("every text must be a string");
    nb::object held = nb::borrow(text);
    ramify::Text read = read_string(text);
    if (lowercase && ((read.width == 2 && has_odd_capital<uint16_t>(read)) || (read.width == 4 && has_odd_capital<uint32_t>(read)))) {
      held = nb::handle(reinterpret_cast<PyObject *>(&PyUnicode_Type)).attr("lower")(held);  // not a subclass's own
      read = read_string(held.ptr());
    }
    is_ascii_ &= PyUnicode_IS_ASCII(held.ptr()) != 0;
    texts_.push_back(read);
    held_.push_back(std::move(held));
  }

  static ramify::Text read_string(PyObject *text) {
#if PY_VERSION_HEX < 0x030c0000
    if (PyUnicode_READY(text) < 0) throw nb::python_error();
#endif
    return {PyUnicode_DATA(text), static_cast<size_t>(PyUnicode_GET_LENGTH(text)), static_cast<int>(PyUnicode_KIND(text))};
  }

  std::vector<ramify::Text> texts_;
  std::vector<nb::object> held_;
  bool is_ascii_ = true;
};

ramify::Terms terms_of(const In<uint8_t> &bytes, const In<int64_t> &offsets) {
  return {reinterpret_cast<const char *>(bytes.data()), offsets.data(), offsets.size() - 1};
}

ramify::TermIndex index_of(const IndexArrays &arrays) {
  const In<uint64_t> &slots = std::get<2>(arrays);
  return {terms_of(std::get<0>(arrays), std::get<1>(arrays)), reinterpret_cast<const ramify::Slot *>(slots.data()), slots.size() / 2,
          std::get<3>(arrays)};
}

// For tables that do not outlive a call.
uint64_t any_seed() {
  static const uint64_t seed = std::random_device{}() | static_cast<uint64_t>(std::random_device{}()) << 32;
  return seed;
}

// The rules as Python gives them, and what they point to.
struct HeldRules {
  bool lowercase;
  size_t shortest, longest;
  std::optional<ramify::TermIndex> left_out, stemmed;
  std::optional<ramify::Terms> stems;

  ramify::WordRules with(const ramify::Characters *characters) const {
    return {lowercase, shortest, longest, characters, left_out ? &*left_out : nullptr, stemmed ? &*stemmed : nullptr,
            stems ? &*stems : nullptr};
  }
};

using OptionalIndex = std::optional<IndexArrays>;
using OptionalTerms = std::optional<TermArrays>;

HeldRules rules_of(bool lowercase, size_t shortest, size_t longest, const OptionalIndex &left_out, const OptionalIndex &stemmed,
                   const OptionalTerms &stems) {
  HeldRules rules{lowercase, shortest, longest, {}, {}, {}};
  if (left_out) rules.left_out = index_of(*left_out);
  if (stemmed) rules.stemmed = index_of(*stemmed);
  if (stems) rules.stems = terms_of(std::get<0>(*stems), std::get<1>(*stems));
  return rules;
}

nb::tuple to_tuple(ramify::TermRows &&rows) {
  return nb::make_tuple(to_numpy(std::move(rows.offsets)), to_numpy(std::move(rows.terms)), to_numpy(std::move(rows.counts)));
}

// A function from texts and something that gives terms their columns to rows.
template <typename Columns, typename Count>
void def_counter(nb::module_ &m, const char *name, Count count) {
  m.def(name, [count](nb::list texts, bool lowercase, size_t shortest, size_t longest, OptionalIndex left_out,
                      OptionalIndex stemmed, OptionalTerms stems, Columns columns) {
    const HeldTexts held(texts, lowercase);
    const HeldRules rules = rules_of(lowercase, shortest, longest, left_out, stemmed, stems);
    const ramify::Characters *needed = held.needed();
    ramify::TermRows rows;
    {
      nb::gil_scoped_release unlocked;
      count(held, rules.with(needed), columns, rows);
    }
    return to_tuple(std::move(rows));
  }, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg());
}

std::vector<uint8_t> as_bytes(const char *first, size_t n) { return std::vector<uint8_t>(first, first + n); }

}  // namespace

void bind_terms(nb::module_ &m) {
  m.def("count_new_terms", [](nb::list texts, bool lowercase, size_t shortest, size_t longest, OptionalIndex left_out,
                              OptionalIndex stemmed, OptionalTerms stems, bool with_rows) {
    const HeldTexts held(texts, lowercase);
    const HeldRules rules = rules_of(lowercase, shortest, longest, left_out, stemmed, stems);
    const ramify::Characters *needed = held.needed();
    ramify::TermTable table(any_seed());
    std::vector<int64_t> documents, occurrences;
    ramify::TermRows rows;
    std::vector<uint8_t> bytes;
    std::vector<int64_t> offsets;
    {
      nb::gil_scoped_release unlocked;
      ramify::count_new_terms(held.data(), held.size(), rules.with(needed), with_rows, table, documents, occurrences, rows);
      const ramify::Terms terms = table.terms();
      bytes = as_bytes(terms.bytes, static_cast<size_t>(terms.offsets[terms.n]) + ramify::PAD);
      offsets.assign(terms.offsets, terms.offsets + terms.n + 1);
    }
    return nb::make_tuple(to_numpy(std::move(bytes)), to_numpy(std::move(offsets)), to_numpy(std::move(documents)),
                          to_numpy(std::move(occurrences)), to_tuple(std::move(rows)));
  }, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg());
  def_counter<IndexArrays>(m, "count_known_terms", [](const HeldTexts &texts, const ramify::WordRules &rules,
                                                      const IndexArrays &known, ramify::TermRows &rows) {
    ramify::count_known_terms(texts.data(), texts.size(), rules, index_of(known), rows);
  });
  def_counter<size_t>(m, "count_hashed_terms",
                      [](const HeldTexts &texts, const ramify::WordRules &rules, size_t n_columns, ramify::TermRows &rows) {
                        ramify::count_hashed_terms(texts.data(), texts.size(), rules, n_columns, rows);
                      });
  m.def("index_terms", [](In<uint8_t> bytes, In<int64_t> offsets, uint64_t seed) {
    ramify::Large<uint64_t> slots;
    {
      nb::gil_scoped_release unlocked;
      const ramify::Terms terms = terms_of(bytes, offsets);
      ramify::TermTable table(seed, terms.n);
      for (size_t t = 0; t < terms.n; ++t) table.add(terms.begin(t), terms.length(t));
      const auto *first = reinterpret_cast<const uint64_t *>(table.slots().data());
      slots.assign(first, first + 2 * table.slots().size());
    }
    return to_numpy(std::move(slots));
  });
  m.def("sort_terms", [](std::vector<TermArrays> lists) {
    ramify::SortedTerms sorted;
    std::vector<uint8_t> bytes;
    {
      nb::gil_scoped_release unlocked;
      std::vector<ramify::Terms> terms;
      for (const TermArrays &list : lists) terms.push_back(terms_of(std::get<0>(list), std::get<1>(list)));
      sorted = ramify::sort_terms(terms, any_seed());
      bytes = as_bytes(sorted.bytes.data(), sorted.bytes.size());
    }
    return nb::make_tuple(to_numpy(std::move(bytes)), to_numpy(std::move(sorted.offsets)), to_numpy(std::move(sorted.positions)));
  });
  m.def("renumber_rows", [](In<int64_t> offsets, In<int32_t> terms, In<float> counts, In<int32_t> numbers, size_t n_numbers) {
    ramify::TermRows rows;
    {
      nb::gil_scoped_release unlocked;
      ramify::renumber_rows(offsets.data(), terms.data(), counts.data(), offsets.size() - 1, numbers.data(), n_numbers, rows);
    }
    return to_tuple(std::move(rows));
  });
  m.def("weigh_rows_in_place", [](In<int64_t> offsets, In<int32_t> terms, In<float> weights, Out<float> values) {
    nb::gil_scoped_release unlocked;
    ramify::weigh_rows_in_place(offsets.data(), terms.data(), offsets.size() - 1, weights.data(), values.data());
  });
}
