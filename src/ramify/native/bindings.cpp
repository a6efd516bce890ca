// The door between Python and the kernels: arrays in, arrays out, the interpreter lock released in between.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "kernels.h"

namespace nb = nanobind;
using namespace nb::literals;

template <typename T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using InMatrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <typename T>
using OutMatrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <typename T>
static nb::ndarray<nb::numpy, T, nb::ndim<1>> to_numpy(std::vector<T> &&values) {
  auto *kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner);
}

using LabelKernel = ramify::LabelRows (*)(const int64_t *, const int32_t *, size_t, const int64_t *, const int32_t *,
                                          size_t);

template <LabelKernel kernel>
static nb::tuple on_label_rows(In<int64_t> offsets, In<int32_t> nodes, In<int64_t> parent_offsets,
                               In<int32_t> parent_nodes) {
  ramify::LabelRows rows;
  {
    nb::gil_scoped_release unlocked;
    rows = kernel(offsets.data(), nodes.data(), offsets.size() - 1, parent_offsets.data(), parent_nodes.data(),
                  parent_offsets.size() - 1);
  }
  return nb::make_tuple(to_numpy(std::move(rows.offsets)), to_numpy(std::move(rows.nodes)));
}

// noconvert: an array of another type is refused, never copied behind the caller's back.
NB_MODULE(_core, m) {
  m.doc() = "Ramify's compiled kernels; see kernels.h for what each computes.";
  const auto label_kernel = [&m](const char *name, auto function) {
    m.def(name, function, "offsets"_a.noconvert(), "nodes"_a.noconvert(), "parent_offsets"_a.noconvert(),
          "parent_nodes"_a.noconvert());
  };
  label_kernel("close_upward", &on_label_rows<ramify::close_upward>);
  label_kernel("keep_most_specific", &on_label_rows<ramify::keep_most_specific>);
  label_kernel("keep_most_general", &on_label_rows<ramify::keep_most_general>);
  m.def(
      "score_rows_in_place",
      [](In<int64_t> offsets, In<int32_t> features, In<float> values, InMatrix<float> weights, In<double> bias,
         OutMatrix<double> scores) {
        nb::gil_scoped_release unlocked;
        ramify::score_rows_in_place(offsets.data(), features.data(), values.data(), offsets.size() - 1, weights.data(),
                                    bias.data(), bias.size(), scores.data());
      },
      "offsets"_a.noconvert(), "features"_a.noconvert(), "values"_a.noconvert(), "weights"_a.noconvert(), "bias"_a.noconvert(), "scores"_a.noconvert());
}
