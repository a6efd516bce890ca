// What bindings check before a kernel runs: sizes, index ranges and names. Kernels trust what they are given.
//
// A check costs no more than reading the indices once. Structs check when they are made, so who calls a kernel many times on
// the same arrays makes the struct once.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>

#include "arrays.h"

[[noreturn]] inline void refuse(const std::string &message) { throw nb::value_error(message.c_str()); }

inline void check(bool is_right, const char *message) {
  if (!is_right) refuse(message);
}

// "bias has 3 entries; give 5, one for each class."
inline void check_size(const char *name, size_t found, size_t wanted, const char *meaning) {
  if (found == wanted) return;
  refuse(std::string(name) + " has " + std::to_string(found) + " entries; give " + std::to_string(wanted) + ", " + meaning + ".");
}

template <typename T>
void check_shape(const char *name, const Array<T, 2> &matrix, size_t n_rows, size_t n_columns, const char *meaning) {
  if (matrix.shape(0) == n_rows && matrix.shape(1) == n_columns) return;
  refuse(std::string(name) + " is " + std::to_string(matrix.shape(0)) + " × " + std::to_string(matrix.shape(1)) + "; give " +
         std::to_string(n_rows) + " × " + std::to_string(n_columns) + ", " + meaning + ".");
}

// Offsets never fall, and end within what they point into.
inline void check_offsets(const char *name, const int64_t *offsets, size_t n_offsets, size_t n_entries) {
  if (n_offsets == 0) refuse(std::string(name) + " is empty; give one entry more than there are rows.");
  bool is_falling = offsets[0] < 0;
  for (size_t k = 1; k < n_offsets; ++k) is_falling |= offsets[k] < offsets[k - 1];
  if (is_falling) refuse(std::string(name) + " falls or is negative; give offsets that start at 0 or above and never fall.");
  if (offsets[n_offsets - 1] > static_cast<int64_t>(n_entries))
    refuse(std::string(name) + " ends at " + std::to_string(offsets[n_offsets - 1]) + ", but there are only " +
           std::to_string(n_entries) + " entries.");
}

// Every index lies in low .. high - 1.
template <typename Index>
void check_indices(const char *name, const Index *indices, size_t n, int64_t low, int64_t high) {
  bool is_wrong = false;
  for (size_t k = 0; k < n; ++k)
    is_wrong |= static_cast<int64_t>(indices[k]) < low || static_cast<int64_t>(indices[k]) >= high;
  if (!is_wrong) return;
  size_t k = 0;
  while (indices[k] >= low && indices[k] < high) ++k;
  refuse(std::string(name) + " holds " + std::to_string(indices[k]) + "; give numbers from " + std::to_string(low) + " to " +
         std::to_string(high - 1) + ".");
}

template <typename Index>
void check_indices(const char *name, const In<Index> &indices, size_t high) {
  check_indices(name, indices.data(), indices.size(), 0, static_cast<int64_t>(high));
}

// Parents come first; -1 above a root.
inline void check_parents(const In<int32_t> &parent) {
  bool is_wrong = false;
  for (size_t v = 0; v < parent.size(); ++v)
    is_wrong |= parent.data()[v] < -1 || parent.data()[v] >= static_cast<int64_t>(v);
  check(!is_wrong, "parent holds a number that is not -1 and no earlier row; give parents before their children.");
}

inline void check_class_range(size_t first, size_t last, size_t n) {
  if (first > last || last > n)
    refuse("the range is " + std::to_string(first) + " to " + std::to_string(last) + "; give one within 0 to " +
           std::to_string(n) + ".");
}

template <typename Value>
struct Option {
  std::string_view name;
  Value value;
};

// "loss is 'huber'; give 'hinge', 'squared_hinge' or 'logistic'."
template <typename Value>
Value find_option(const char *what, std::string_view name, std::initializer_list<Option<Value>> options) {
  std::string allowed;
  size_t left = options.size();
  for (const Option<Value> &option : options) {
    if (option.name == name) return option.value;
    --left;
    allowed += "'" + std::string(option.name) + "'" + (left > 1 ? ", " : left == 1 ? " or " : "");
  }
  refuse(std::string(what) + " is '" + std::string(name) + "'; give " + allowed + ".");
}
