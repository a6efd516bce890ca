// The door to softmax regression with a distribution over its weights.
#include "arrays.h"
#include "bayes.h"

void bind_bayes(nb::module_ &m) {
  m.def("settle_documents_in_place",
        [](InMatrix<double> scores, InMatrix<double> spreads, Out<double> betas, Out<double> bounds, OutMatrix<double> slopes,
           OutMatrix<double> twice_lambda, OutMatrix<double> curvatures) {
          nb::gil_scoped_release unlocked;
          ramify::settle_documents_in_place(scores.data(), spreads.data(), scores.shape(0), scores.shape(1), betas.data(),
                                            bounds.data(), slopes.data(), twice_lambda.data(), curvatures.data());
        });
  m.def("multiply_rows_in_place",
        [](In<int64_t> offsets, In<int32_t> features, In<double> values, InMatrix<double> dense, OutMatrix<double> products) {
          nb::gil_scoped_release unlocked;
          ramify::multiply_rows_in_place(offsets.data(), features.data(), values.data(), products.shape(0), dense.data(),
                                         products.shape(1), products.data());
        });
}
