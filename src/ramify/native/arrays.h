// NumPy arrays and small structs of them as kernels take and give them.
//
// An array argument is never converted: another type, order or number of dimensions is a TypeError, and so is a read-only
// array where a kernel writes. Structs and kernels are defined through def_struct and def_kernel, which limit parameters.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sparse_rows.h"

namespace nb = nanobind;

// A contiguous array in memory, and the Python object that owns it. T: const for an array that is only read.
template <typename T, size_t N>
struct Array {
  using View = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

  nb::object source;
  View view;

  T *data() const { return view.data(); }
  size_t size() const { return view.size(); }
  size_t shape(size_t axis) const { return view.shape(axis); }
};

template <typename T>
using In = Array<const T, 1>;
template <typename T>
using InMatrix = Array<const T, 2>;
template <typename T>
using Out = Array<T, 1>;
template <typename T>
using OutMatrix = Array<T, 2>;

namespace nanobind::detail {

template <typename T, size_t N>
struct type_caster<Array<T, N>> {
  using Given = Array<T, N>;
  using Inner = make_caster<typename Given::View>;
  NB_TYPE_CASTER(Given, Inner::Name)

  template <typename Flags>
  bool from_python(handle source, Flags flags, cleanup_list *cleanup) noexcept {
    Inner inner;
    const auto without_conversion = static_cast<Flags>(flags & ~static_cast<Flags>(cast_flags::convert));
    if (source.is_none() || !inner.from_python(source, without_conversion, cleanup)) return false;
    value = {borrow(source), std::move(inner.value)};
    return true;
  }
};

}  // namespace nanobind::detail

// What kernels take, with the Python arguments that it was made from: these own the arrays.
template <class View>
struct Held : View {
  nb::tuple arguments;
};

constexpr size_t kMaxParameters = 12;

template <typename Argument>
auto name_argument(const char *name) {
  if constexpr (std::is_pointer_v<Argument>)
    return nb::arg(name).none();  // a struct that may be None is passed by pointer
  else
    return nb::arg(name);
}

template <typename T, size_t N>
nb::object to_object(const Array<T, N> &array) { return array.source; }
template <class View>
nb::object to_object(const Held<View> &held) { return nb::find(held); }
template <class View>
nb::object to_object(const Held<View> *held) { return held ? nb::find(*held) : nb::none(); }
inline nb::object to_object(std::string_view text) { return nb::str(text.data(), text.size()); }
template <typename Number, std::enable_if_t<std::is_arithmetic_v<Number>, int> = 0>
nb::object to_object(Number number) { return nb::cast(number); }

// A struct of arrays that checks them when it is made; it can be pickled.
template <class View, typename... Args, typename... Names>
void def_struct(nb::module_ &m, const char *name, const char *doc, View (*make)(Args...), Names... names) {
  static_assert(sizeof...(Args) == sizeof...(Names), "name every argument");
  static_assert(sizeof...(Args) <= kMaxParameters, "too many parameters: put what belongs together into a struct");
  nb::class_<Held<View>>(m, name, doc)
      .def("__init__",
           [make](Held<View> *self, Args... args) {
             const View view = make(args...);
             new (self) Held<View>{view, nb::make_tuple(to_object(args)...)};
           },
           name_argument<Args>(names)...)
      .def("__reduce__", [](nb::handle self) {
        return nb::make_tuple(self.type(), nb::cast<const Held<View> &>(self).arguments);
      });
}

template <typename Return, typename... Args, typename... Names>
void def_kernel(nb::module_ &m, const char *name, Return (*kernel)(Args...), Names... names) {
  static_assert(sizeof...(Args) == sizeof...(Names), "name every argument");
  static_assert(sizeof...(Args) <= kMaxParameters, "too many parameters: put what belongs together into a struct");
  m.def(name, kernel, name_argument<Args>(names)...);
}

// Runs a kernel with the interpreter lock released.
template <class Work>
auto without_gil(Work work) {
  nb::gil_scoped_release released;
  return work();
}

template <typename T, typename Allocator>
nb::ndarray<nb::numpy, T, nb::ndim<1>> to_numpy(std::vector<T, Allocator> &&values) {
  auto *owned = new std::vector<T, Allocator>(std::move(values));
  nb::capsule owner(owned, [](void *p) noexcept { delete static_cast<std::vector<T, Allocator> *>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned->data(), {owned->size()}, owner);
}

inline nb::tuple to_tuple(ramify::PatternRows &&rows) {
  return nb::make_tuple(to_numpy(std::move(rows.offsets)), to_numpy(std::move(rows.columns)));
}
