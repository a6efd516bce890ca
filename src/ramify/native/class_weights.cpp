// From dual variables to the weights of classes.
#include <cmath>

#include "feature_set.h"
#include "linear.h"

namespace ramify {

namespace {

// The feature of the model for every feature of the rows; -1 where there is none, as for the bias.
std::vector<int32_t> invert(const FeatureOrder &order, size_t n_features) {
  std::vector<int32_t> inverse(n_features, -1);
  for (size_t f = 0; f < order.n_features; ++f) inverse[static_cast<size_t>(order.positions[f])] = static_cast<int32_t>(f);
  return inverse;
}

}  // namespace

void assemble_class_weights_in_place(const Rows &X, const Pairs &pairs, const double *scale, const FeatureOrder &order,
                                     float threshold, size_t first, size_t last, double *bias, VectorList &result) {
  Large<float> u(X.n_columns, 0.0f);
  FeatureSet touched(X.n_columns), ordered(order.n_features);
  const std::vector<int32_t> inverse = invert(order, X.n_columns);
  for (size_t k = first; k < last; ++k) {
    const Class c = pairs.of(k, nullptr);
    add_pairs(X, c, u.data());
    for (size_t j = 0; j < c.n_pairs; ++j) {
      if (c.alphas[j] == 0) continue;
      const auto row = static_cast<size_t>(c.documents[j]);
      for (size_t p = 0; p < X.length(row); ++p) touched.add(static_cast<size_t>(X.columns_of(row)[p]));
    }
    const auto factor = static_cast<float>(scale[k]);
    bias[k] = u.empty() ? 0.0 : scale[k] * static_cast<double>(u[0]);
    float largest = 0;
    touched.drain([&](size_t f) {
      if (inverse[f] < 0) return void(u[f] = 0);
      largest = std::max(largest, std::fabs(factor * u[f]));
      ordered.add(static_cast<size_t>(inverse[f]));
    });
    ordered.drain([&](size_t f) {
      float &weight = u[static_cast<size_t>(order.positions[f])];
      if (weight != 0 && std::fabs(factor * weight) >= threshold * largest) {
        result.features.push_back(static_cast<int32_t>(f));
        result.values.push_back(factor * weight);
      }
      weight = 0;
    });
    result.end_vector(k);
    if ((k - first) % 16 == 0) result.reserve_for(k - first + 1, last - first);
  }
}

void reorder_features_in_place(const SparseVectors &vectors, const int32_t *units, size_t n_units, const FeatureOrder &order,
                               double *bias, VectorList &result) {
  Large<float> dense(vectors.n_features, 0.0f), ordered(order.n_features);
  for (size_t next = 0; next < n_units; ++next) {
    const auto unit = static_cast<size_t>(units[next]);
    vectors.of(unit).add_to(dense.data());
    for (size_t f = 0; f < order.n_features; ++f) ordered[f] = dense[static_cast<size_t>(order.positions[f])];
    result.append_nonzero(unit, ordered.data(), order.n_features);
    bias[unit] = dense.empty() ? 0.0 : static_cast<double>(dense[0]);
    std::fill(dense.begin(), dense.end(), 0.0f);
  }
}

void sum_class_vectors(const Rows &X, const Pairs &pairs, size_t first, size_t last, VectorList &result) {
  Large<float> u(X.n_columns, 0.0f);
  std::vector<uint8_t> has(X.n_columns, 0);
  std::vector<int32_t> listed(X.n_columns + 1);
  for (size_t k = first; k < last; ++k) {
    const Class c = pairs.of(k, nullptr);
    add_pairs(X, c, u.data());
    mark_features(X, c, has);
    size_t n = 0;
    for (size_t f = 0; f < X.n_columns; ++f) {
      listed[n] = static_cast<int32_t>(f);
      n += has[f];
    }
    result.move_listed(listed.data(), n, u.data());
    result.end_vector(k);
    std::fill(has.begin(), has.end(), uint8_t{0});
    if ((k - first) % 16 == 0) result.reserve_for(k - first + 1, last - first);
  }
}

}  // namespace ramify
