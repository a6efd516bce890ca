// Bindings of naive Bayes with shrinkage, and of Bayesian logistic regression.
#include "checks.h"
#include "mixtures.h"
#include "softmax_bound.h"

namespace {

using ramify::LabelledDocuments;
using ramify::Pattern;
using ramify::WordCounts;

WordCounts make_word_counts(const Held<ramify::DoubleRows> &by_word, const In<double> &totals) {
  check_size("totals", totals.size(), by_word.n_columns, "one for each unit");
  return {by_word, totals.data()};
}

LabelledDocuments make_labelled_documents(const Held<ramify::Rows> &words, const In<double> &weights,
                                          const Held<Pattern> &units, const In<int32_t> &times) {
  check_size("weights", weights.size(), words.n_rows, "one for each document");
  check_size("units", units.n_rows, words.n_rows, "one row for each document");
  check(times.size() >= static_cast<size_t>(units.offsets[units.n_rows]), "times is too short; give one for each unit of a document.");
  return {words, weights.data(), units, times.data()};
}

ramify::MixtureLimits make_mixture_limits(bool leave_one_out, bool by_document, double tolerance, size_t max_steps,
                                          double em_words) {
  return {leave_one_out, by_document, tolerance, max_steps, em_words};
}

// Paths of all units, and one weight for each of their units and for the uniform estimate.
size_t count_weights(const Held<Pattern> &paths, const WordCounts &counts, const In<int32_t> &units) {
  const size_t n_units = counts.by_word.n_columns;
  check_size("paths", paths.n_rows, n_units, "one row for each unit");
  check_size("paths", paths.n_columns, n_units, "one column for each unit");
  check_indices("units", units, n_units);
  check(paths.offsets[0] == 0, "paths starts behind its first entry; give offsets from 0 on.");
  for (size_t k = 0; k < units.size(); ++k)
    check(paths.length(static_cast<size_t>(units.data()[k])) > 0, "the path of a unit is empty; give at least the unit itself.");
  return paths.n_entries() + n_units;
}

// One weight for each estimate of each group's units, whose paths are equally long.
size_t count_group_weights(const Held<Pattern> &paths, const Held<Pattern> &groups) {
  size_t n_weights = 0;
  for (size_t k = 0; k < groups.n_rows; ++k) {
    check(groups.length(k) > 0, "a group is empty; give at least one unit.");
    const size_t length = paths.length(static_cast<size_t>(*groups.begin(k)));
    for (const int32_t *unit = groups.begin(k); unit != groups.end(k); ++unit)
      check(paths.length(static_cast<size_t>(*unit)) == length, "the paths of a group differ in length; give units of one depth.");
    check(length > 0, "the path of a unit is empty; give at least the unit itself.");
    n_weights += length + 1;
  }
  return n_weights;
}

void fit_mixtures_in_place(const Held<WordCounts> &counts, const Held<Pattern> &paths, const Held<LabelledDocuments> &documents,
                           const Held<Pattern> &unit_documents, const Held<Pattern> &groups,
                           const Held<ramify::MixtureLimits> &limits, const In<double> &expected, const Out<double> &weights,
                           const Out<int32_t> &steps) {
  const size_t n_units = counts.by_word.n_columns;
  check_size("paths", paths.n_rows, n_units, "one row for each unit");
  check_size("paths", paths.n_columns, n_units, "one column for each unit");
  check_size("documents", documents.words.n_columns, counts.by_word.n_rows, "one column for each word");
  check_size("documents", documents.units.n_columns, n_units, "one for each unit");
  check_size("unit_documents", unit_documents.n_rows, n_units, "one row for each unit");
  check_size("unit_documents", unit_documents.n_columns, documents.words.n_rows, "one column for each document");
  check_size("groups", groups.n_columns, n_units, "one column for each unit");
  const size_t n_weights = count_group_weights(paths, groups);
  check_size("expected", expected.size(), n_weights, "one for each weight");
  check_size("weights", weights.size(), n_weights, "one for each unit of a group's path and one more");
  check_size("steps", steps.size(), groups.n_rows, "one for each group");
  without_gil([&] {
    ramify::fit_mixtures_in_place(counts, paths, documents, unit_documents, groups, limits, expected.data(), weights.data(),
                                  steps.data());
  });
}

void score_mixtures_in_place(const Held<WordCounts> &counts, const Held<Pattern> &paths, const In<double> &factors,
                             const In<int32_t> &units, const In<double> &priors, const Held<ramify::Rows> &X,
                             const OutMatrix<double> &scores) {
  check_size("factors", factors.size(), count_weights(paths, counts, units), "one for each weight");
  check_size("priors", priors.size(), units.size(), "one for each listed unit");
  check_size("X", X.n_columns, counts.by_word.n_rows, "one column for each word");
  check_shape("scores", scores, X.n_rows, units.size(), "documents × listed units");
  without_gil([&] {
    ramify::score_mixtures_in_place(counts, paths, factors.data(), units.data(), units.size(), priors.data(), X,
                                    scores.data());
  });
}

void minimize_softmax_bound_in_place(const InMatrix<double> &scores, const InMatrix<double> &variances,
                                     const Out<double> &betas, const Out<double> &bounds, const OutMatrix<double> &slopes,
                                     const OutMatrix<double> &twice_lambda, const OutMatrix<double> &curvatures) {
  const size_t n_documents = scores.shape(0), n_classes = scores.shape(1);
  check(n_classes > 0 || n_documents == 0, "scores has no columns; give at least one class.");
  check_shape("variances", variances, n_documents, n_classes, "as scores");
  check_size("betas", betas.size(), n_documents, "one for each document");
  check_size("bounds", bounds.size(), n_documents, "one for each document");
  check_shape("slopes", slopes, n_documents, n_classes, "as scores");
  check_shape("twice_lambda", twice_lambda, n_documents, n_classes, "as scores");
  check_shape("curvatures", curvatures, n_documents, n_classes, "as scores");
  without_gil([&] {
    ramify::minimize_softmax_bound_in_place(
        scores.data(), variances.data(), n_documents, n_classes,
        {betas.data(), bounds.data(), slopes.data(), twice_lambda.data(), curvatures.data()});
  });
}

}  // namespace

void bind_bayes(nb::module_ &m) {
  def_struct(m, "WordCounts", "Counts of words by unit (words × units), and the total of each unit.", &make_word_counts,
             "by_word", "totals");
  def_struct(m, "LabelledDocuments", "Documents × words, a weight for each, its units, and how many times it counts there.",
             &make_labelled_documents, "words", "weights", "units", "times");
  def_struct(m, "MixtureLimits", "How mixture weights are fitted, and when to stop.", &make_mixture_limits, "leave_one_out",
             "by_document", "tolerance", "max_steps", "em_words");
  def_kernel(m, "fit_mixtures_in_place", &fit_mixtures_in_place, "counts", "paths", "documents", "unit_documents", "groups",
             "limits", "expected", "weights", "steps");
  def_kernel(m, "score_mixtures_in_place", &score_mixtures_in_place, "counts", "paths", "factors", "units", "priors", "X",
             "scores");
  def_kernel(m, "minimize_softmax_bound_in_place", &minimize_softmax_bound_in_place, "scores", "variances", "betas", "bounds",
             "slopes", "twice_lambda", "curvatures");
}
