// The door to large margins over joint answers.
#include "arrays.h"
#include "joint.h"

namespace {

// The first arguments of both kernels.
struct Given {
  In<int64_t> offsets;
  In<int32_t> features;
  In<float> values;
  In<double> squared_norms;
  In<int32_t> labels;
  In<int64_t> answer_offsets;
  In<int32_t> answers;
  In<double> margins;
  In<int64_t> unit_offsets;
  In<int32_t> units;
  In<double> signs;

  ramify::JointProblem problem(size_t n_units) const {
    return {offsets.data(),        features.data(), values.data(),  squared_norms.data(), labels.data(),
            answer_offsets.data(), answers.data(),  margins.data(), unit_offsets.data(),  units.data(),
            signs.data(),          n_units};
  }
};

}  // namespace

void bind_joint(nb::module_ &m) {
  m.def("ascend_answers_in_place",
        [](In<int64_t> offsets, In<int32_t> features, In<float> values, In<double> squared_norms, In<int32_t> labels,
           In<int64_t> answer_offsets, In<int32_t> answers, In<double> margins, In<int64_t> unit_offsets, In<int32_t> units,
           In<double> signs, InMatrix<double> products, InMatrix<double> inverse, In<int64_t> documents, size_t most_steps,
           double closest, In<int64_t> alpha_offsets, Out<double> alphas, OutMatrix<double> weights, Out<double> furthest) {
          nb::gil_scoped_release unlocked;
          const Given given{offsets, features, values, squared_norms, labels, answer_offsets,
                            answers, margins, unit_offsets, units, signs};
          const ramify::AnswerMetric metric{products.size() ? products.data() : nullptr,
                                            inverse.size() ? inverse.data() : nullptr, products.shape(0)};
          ramify::ascend_answers_in_place(given.problem(weights.shape(1)), metric, documents.data(), documents.size(),
                                          most_steps, closest, alpha_offsets.data(), alphas.data(), weights.data(),
                                          furthest.data());
        });
  m.def("measure_answers_in_place",
        [](In<int64_t> offsets, In<int32_t> features, In<float> values, In<double> squared_norms, In<int32_t> labels,
           In<int64_t> answer_offsets, In<int32_t> answers, In<double> margins, In<int64_t> unit_offsets, In<int32_t> units,
           In<double> signs, InMatrix<double> weights, Out<double> losses, Out<int32_t> worst) {
          nb::gil_scoped_release unlocked;
          const Given given{offsets, features, values, squared_norms, labels, answer_offsets,
                            answers, margins, unit_offsets, units, signs};
          ramify::measure_answers_in_place(given.problem(weights.shape(1)), losses.size(), weights.data(), losses.data(),
                                           worst.data());
        });
}
