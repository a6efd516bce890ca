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

void fit_mixtures_in_place(const Held<WordCounts> &counts, const Held<Pattern> &paths, const Held<LabelledDocuments> &documents,
                           const Held<Pattern> &unit_documents, const In<int32_t> &units, bool leave_one_out, double tolerance,
                           size_t max_steps, double em_words, const In<double> &expected, const Out<double> &weights,
                           const Out<int32_t> &steps) {
  const size_t n_weights = count_weights(paths, counts, units), n_units = paths.n_rows;
  check_size("documents", documents.words.n_columns, counts.by_word.n_rows, "one column for each word");
  check_size("documents", documents.units.n_columns, n_units, "one for each unit");
  check_size("unit_documents", unit_documents.n_rows, n_units, "one row for each unit");
  check_size("unit_documents", unit_documents.n_columns, documents.words.n_rows, "one column for each document");
  check_size("expected", expected.size(), n_weights, "one for each weight");
  check_size("weights", weights.size(), n_weights, "one for each unit of a path and one more for each unit");
  check_size("steps", steps.size(), units.size(), "one for each listed unit");
  without_gil([&] {
    ramify::fit_mixtures_in_place(counts, paths, documents, unit_documents, units.data(), units.size(),
                                  {leave_one_out, tolerance, max_steps, em_words}, expected.data(), weights.data(),
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
  def_kernel(m, "fit_mixtures_in_place", &fit_mixtures_in_place, "counts", "paths", "documents", "unit_documents", "units",
             "leave_one_out", "tolerance", "max_steps", "em_words", "expected", "weights", "steps");
  def_kernel(m, "score_mixtures_in_place", &score_mixtures_in_place, "counts", "paths", "factors", "units", "priors", "X",
             "scores");
  def_kernel(m, "minimize_softmax_bound_in_place", &minimize_softmax_bound_in_place, "scores", "variances", "betas", "bounds",
             "slopes", "twice_lambda", "curvatures");
}
