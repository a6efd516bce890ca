// The door to boosting.
#include "arrays.h"
#include "boosting.h"

static ramify::Committees committees_of(In<int64_t> &pivot_offsets, In<int32_t> &pivots, In<int64_t> &class_offsets,
                                        In<double> &bias, In<int64_t> &sum_offsets, In<double> &sums, In<int32_t> &top,
                                        In<int64_t> &below_offsets, In<int32_t> &below, size_t n_columns) {
  return {pivot_offsets.data(), pivots.data(), class_offsets.data(), bias.data(),   sum_offsets.data(),
          sums.data(),          top.data(),    below_offsets.data(), below.data(), class_offsets.size() - 1,
          top.size(),           bias.size(),   n_columns};
}

static nb::tuple to_tuple(ramify::LabelRows &&rows) {
  return nb::make_tuple(to_numpy(std::move(rows.offsets)), to_numpy(std::move(rows.nodes)));
}

void bind_boosting(nb::module_ &m) {
  m.def("take_rows", [](In<int64_t> offsets, In<int32_t> items, In<int32_t> rows) {
    ramify::LabelRows taken;
    {
      nb::gil_scoped_release unlocked;
      taken = ramify::take_rows(offsets.data(), items.data(), rows.data(), rows.size(), nullptr, 0);
    }
    return to_tuple(std::move(taken));
  });
  m.def("take_items", [](In<int64_t> offsets, In<int32_t> items, In<int32_t> rows, In<int32_t> kept) {
    ramify::LabelRows taken;
    {
      nb::gil_scoped_release unlocked;
      taken = ramify::take_rows(offsets.data(), items.data(), rows.data(), rows.size(), kept.data(), kept.size());
    }
    return to_tuple(std::move(taken));
  });
  m.def("compact_in_place", [](Out<int32_t> items, size_t n_columns) {
    std::vector<int32_t> columns;
    {
      nb::gil_scoped_release unlocked;
      columns = ramify::compact_in_place(items.data(), items.size(), n_columns);
    }
    return to_numpy(std::move(columns));
  });
  m.def("turn_rows", [](In<int64_t> offsets, In<int32_t> items, size_t n_columns) {
    ramify::LabelRows turned;
    {
      nb::gil_scoped_release unlocked;
      turned = ramify::turn_rows(offsets.data(), items.data(), offsets.size() - 1, n_columns);
    }
    return to_tuple(std::move(turned));
  });
  m.def("boost_in_place",
        [](In<int64_t> offsets, In<int32_t> terms, In<int64_t> by_term, In<int32_t> documents, In<int64_t> label_offsets,
           In<int32_t> labels, int variant, double epsilon, size_t n_rounds, OutMatrix<double> weights, Out<int32_t> pivots,
           OutMatrix<double> absent, OutMatrix<double> present, Out<double> z, Out<double> normalizers) {
          nb::gil_scoped_release unlocked;
          const ramify::BoostProblem problem{offsets.data(), terms.data(),       by_term.data(),     documents.data(),
                                             label_offsets.data(), labels.data(), weights.shape(0), by_term.size() - 1,
                                             weights.shape(1)};
          return ramify::boost_in_place(problem, static_cast<ramify::Variant>(variant), epsilon, n_rounds, weights.data(),
                                        {pivots.data(), absent.data(), present.data(), z.data(), normalizers.data()});
        });
  m.def("score_committees_in_place",
        [](In<int64_t> pivot_offsets, In<int32_t> pivots, In<int64_t> class_offsets, In<double> bias, In<int64_t> sum_offsets,
           In<double> sums, In<int32_t> top, In<int64_t> below_offsets, In<int32_t> below, size_t n_columns,
           In<int64_t> offsets, In<int32_t> columns, double threshold, OutMatrix<float> scores) {
          nb::gil_scoped_release unlocked;
          ramify::score_committees_in_place(committees_of(pivot_offsets, pivots, class_offsets, bias, sum_offsets, sums, top,
                                                          below_offsets, below, n_columns),
                                            offsets.data(), columns.data(), offsets.size() - 1, threshold, scores.data());
        });
  m.def("pass_committees",
        [](In<int64_t> pivot_offsets, In<int32_t> pivots, In<int64_t> class_offsets, In<double> bias, In<int64_t> sum_offsets,
           In<double> sums, In<int32_t> top, In<int64_t> below_offsets, In<int32_t> below, size_t n_columns,
           In<int64_t> offsets, In<int32_t> columns, In<int64_t> node_offsets, In<int32_t> nodes, In<int32_t> always) {
          ramify::LabelRows passed;
          {
            nb::gil_scoped_release unlocked;
            passed = ramify::pass_committees(committees_of(pivot_offsets, pivots, class_offsets, bias, sum_offsets, sums, top,
                                                           below_offsets, below, n_columns),
                                             offsets.data(), columns.data(), offsets.size() - 1, node_offsets.data(),
                                             nodes.data(), always.data(), always.size());
          }
          return to_tuple(std::move(passed));
        });
}
