// Bindings of structured large-margin models.
#include "checks.h"
#include "structured_svm.h"

namespace {

using ramify::StructuredProblem;

StructuredProblem make_problem(const Held<ramify::Rows> &X, const In<double> &squared_norms, const In<int32_t> &labels,
                               const Held<ramify::Pattern> &outputs, const In<double> &margins,
                               const Held<ramify::DoubleRows> &phi) {
  check_size("squared_norms", squared_norms.size(), X.n_rows, "one for each document");
  check_size("labels", labels.size(), X.n_rows, "one for each document");
  check_indices("labels", labels, outputs.n_rows);
  check_size("outputs", outputs.n_columns, phi.n_rows, "one column for each output");
  check(margins.size() >= static_cast<size_t>(outputs.offsets[outputs.n_rows]), "margins is too short; give one for each output of a label.");
  for (size_t label = 0; label < outputs.n_rows; ++label)
    check(outputs.length(label) > 0, "a label has no outputs; give at least its own.");
  return {X, squared_norms.data(), labels.data(), outputs, margins.data(), phi};
}

void update_structured_duals_in_place(const Held<StructuredProblem> &problem, const InMatrix<double> &products,
                                      const InMatrix<double> &inverse, const In<int64_t> &documents, size_t max_steps,
                                      double tolerance, const In<int64_t> &alpha_offsets, const Out<double> &alphas,
                                      const OutMatrix<double> &weights, const Out<double> &violations) {
  const size_t n_outputs = problem.phi.n_rows, n_units = problem.phi.n_columns;
  const bool has_inverse = inverse.size() > 0;
  if (has_inverse) check_shape("inverse", inverse, n_units, n_units, "units × units");
  if (products.size() > 0 || !has_inverse) check_shape("products", products, n_outputs, n_outputs, "outputs × outputs");
  check_indices("documents", documents, problem.X.n_rows);
  check_offsets("alpha_offsets", alpha_offsets.data(), alpha_offsets.size(), alphas.size());
  check_size("alpha_offsets", alpha_offsets.size(), problem.X.n_rows + 1, "one more than there are documents");
  bool fits = true;
  for (size_t d = 0; d < problem.X.n_rows; ++d)
    fits &= alpha_offsets.data()[d + 1] - alpha_offsets.data()[d] ==
            static_cast<int64_t>(problem.outputs.length(static_cast<size_t>(problem.labels[d])));
  check(fits, "alpha_offsets does not fit the labels; give one dual variable for each output of a document's label.");
  check_shape("weights", weights, problem.X.n_columns, n_units, "features × units");
  check_size("violations", violations.size(), documents.size(), "one for each listed document");
  const ramify::OutputMetric metric{products.size() ? products.data() : nullptr, has_inverse ? inverse.data() : nullptr,
                                    n_outputs};
  without_gil([&] {
    ramify::update_structured_duals_in_place(problem, metric, documents.data(), documents.size(), max_steps, tolerance,
                                             {alpha_offsets.data(), alphas.data(), weights.data()}, violations.data());
  });
}

void compute_structured_losses_in_place(const Held<StructuredProblem> &problem, const InMatrix<double> &weights,
                                        const Out<double> &losses, const Out<int32_t> &worst) {
  check_shape("weights", weights, problem.X.n_columns, problem.phi.n_columns, "features × units");
  check_size("losses", losses.size(), problem.X.n_rows, "one for each document");
  check_size("worst", worst.size(), problem.X.n_rows, "one for each document");
  without_gil([&] { ramify::compute_structured_losses_in_place(problem, weights.data(), losses.data(), worst.data()); });
}

}  // namespace

void bind_structured_svm(nb::module_ &m) {
  def_struct(m, "StructuredProblem",
             "Documents and their labels, the outputs of every label with their margins, and φ of every output over units.",
             &make_problem, "X", "squared_norms", "labels", "outputs", "margins", "phi");
  def_kernel(m, "update_structured_duals_in_place", &update_structured_duals_in_place, "problem", "products", "inverse",
             "documents", "max_steps", "tolerance", "alpha_offsets", "alphas", "weights", "violations");
  def_kernel(m, "compute_structured_losses_in_place", &compute_structured_losses_in_place, "problem", "weights", "losses",
             "worst");
}
