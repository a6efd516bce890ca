// Bindings of boosting and of committees.
#include <nanobind/stl/string_view.h>

#include "boosting.h"
#include "checks.h"
#include "committees.h"

namespace {

using ramify::BoostRounds;
using ramify::BoostVariant;
using ramify::Committees;
using ramify::Pattern;

BoostRounds make_rounds(const Out<int32_t> &pivots, const OutMatrix<double> &absent, const OutMatrix<double> &present,
                        const Out<double> &z, const Out<double> &normalizers) {
  const size_t n_rounds = pivots.size(), n_classes = absent.shape(1);
  check_shape("absent", absent, n_rounds, n_classes, "rounds × classes");
  check_shape("present", present, n_rounds, n_classes, "rounds × classes");
  check_size("z", z.size(), n_rounds, "one for each round");
  check_size("normalizers", normalizers.size(), n_rounds, "one for each round");
  return {pivots.data(), absent.data(), present.data(), z.data(), normalizers.data(), n_rounds, n_classes};
}

Committees make_committees(const Held<Pattern> &pivots, const In<int64_t> &class_offsets, const In<double> &bias,
                           const In<int64_t> &sum_offsets, const In<double> &sums, const In<int32_t> &roots,
                           const Held<Pattern> &below) {
  const size_t n_committees = pivots.n_rows;
  check_size("class_offsets", class_offsets.size(), n_committees + 1, "one more than there are committees");
  check_offsets("class_offsets", class_offsets.data(), class_offsets.size(), bias.size());
  check_size("sum_offsets", sum_offsets.size(), n_committees + 1, "one more than there are committees");
  check_offsets("sum_offsets", sum_offsets.data(), sum_offsets.size(), sums.size());
  bool fits = true;
  for (size_t c = 0; c < n_committees; ++c)
    fits &= sum_offsets.data()[c + 1] - sum_offsets.data()[c] ==
            static_cast<int64_t>(pivots.length(c)) * (class_offsets.data()[c + 1] - class_offsets.data()[c]);
  check(fits, "sum_offsets does not fit; give one sum for each pivot and class of a committee.");
  check_indices("roots", roots, n_committees);
  check_size("below", below.n_rows, bias.size(), "one row for each class");
  check_size("below", below.n_columns, n_committees, "one column for each committee");
  return {pivots, class_offsets.data(), bias.data(), sum_offsets.data(), sums.data(), roots.data(), roots.size(), below};
}

size_t boost_in_place(const Held<Pattern> &terms, const Held<Pattern> &documents, const Held<Pattern> &labels,
                      std::string_view variant, double epsilon, const OutMatrix<double> &weights,
                      const Held<BoostRounds> &rounds) {
  const auto kind = find_option<BoostVariant>(
      "variant", variant, {{"R", BoostVariant::real}, {"RA", BoostVariant::abstaining}, {"D", BoostVariant::discrete}});
  check_size("documents", documents.n_rows, terms.n_columns, "one row for each term");
  check_size("documents", documents.n_columns, terms.n_rows, "one column for each document");
  check_size("labels", labels.n_rows, terms.n_rows, "one row for each document");
  check_shape("weights", weights, terms.n_rows, labels.n_columns, "documents × classes");
  check_size("rounds", rounds.n_classes, labels.n_columns, "one column for each class");
  return without_gil([&] {
    return ramify::boost_in_place({terms, documents, labels}, kind, epsilon, weights.data(), rounds);
  });
}

void check_columns(const Committees &committees, const Pattern &X) {
  check_size("X", X.n_columns, committees.pivots.n_columns, "one column for each that a committee may ask for");
}

void score_committees_in_place(const Held<Committees> &committees, const Held<Pattern> &X, double threshold,
                               const OutMatrix<float> &scores) {
  check_columns(committees, X);
  check_shape("scores", scores, X.n_rows, committees.n_classes(), "documents × classes");
  without_gil([&] { ramify::score_committees_in_place(committees, X, threshold, scores.data()); });
}

nb::tuple predict_committees(const Held<Committees> &committees, const Held<Pattern> &X, const Held<Pattern> &nodes,
                             const In<int32_t> &always) {
  check_columns(committees, X);
  check_size("nodes", nodes.n_rows, committees.n_classes(), "one row for each class");
  check_indices("always", always, nodes.n_columns);
  return to_tuple(without_gil([&] {
    return ramify::predict_committees(committees, X, nodes, always.data(), always.size());
  }));
}

}  // namespace

void bind_boosting(nb::module_ &m) {
  def_struct(m, "BoostRounds", "What boosting writes for every round.", &make_rounds, "pivots", "absent", "present", "z",
             "normalizers");
  def_struct(m, "Committees", "Committees of stumps, folded into sums.", &make_committees, "pivots", "class_offsets", "bias",
             "sum_offsets", "sums", "roots", "below");
  def_kernel(m, "boost_in_place", &boost_in_place, "terms", "documents", "labels", "variant", "epsilon", "weights", "rounds");
  def_kernel(m, "score_committees_in_place", &score_committees_in_place, "committees", "X", "threshold", "scores");
  def_kernel(m, "predict_committees", &predict_committees, "committees", "X", "nodes", "always");
}
