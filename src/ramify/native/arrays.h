// NumPy arrays as kernels take and give them.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <utility>
#include <vector>

namespace nb = nanobind;

template <typename T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using InMatrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using OutMatrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <typename T, typename Room>
nb::ndarray<nb::numpy, T, nb::ndim<1>> to_numpy(std::vector<T, Room> &&values) {
  auto *kept = new std::vector<T, Room>(std::move(values));
  nb::capsule owner(kept, [](void *p) noexcept { delete static_cast<std::vector<T, Room> *>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner);
}
