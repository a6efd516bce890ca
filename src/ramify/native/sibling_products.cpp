// Products of the documents of sibling classes with each other.
#include "linear.h"

namespace ramify {

void multiply_siblings_in_place(const Rows &X, const Pattern &documents, const int64_t *offsets, size_t first, size_t last,
                                float *products) {
  std::vector<float> dense(X.n_columns, 0.0f);
  for (size_t unit = first; unit < last; ++unit) {
    const int32_t *group = documents.begin(unit);
    const size_t n = documents.length(unit);
    float *matrix = products + offsets[unit];
    for (size_t i = 0; i < n; ++i) {
      const auto row = static_cast<size_t>(group[i]);
      add_row(X, row, 1.0f, dense.data());
      for (size_t j = 0; j <= i; ++j)
        matrix[i * n + j] = matrix[j * n + i] = dot(X, static_cast<size_t>(group[j]), dense.data());
      for (size_t p = 0; p < X.length(row); ++p) dense[static_cast<size_t>(X.columns_of(row)[p])] = 0;
    }
  }
}

}  // namespace ramify
