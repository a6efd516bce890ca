// For every document the classes whose signatures it shares most: a few telling features a class, looked up by feature.
#include "kernels.h"

namespace ramify {

void nearest_classes(const Rows &X, size_t first, size_t last, const Signatures &index, const float *start,
                     const int64_t *own_offsets, const int32_t *own, size_t n_nearest, int32_t *nearest) {
  std::vector<float> score(index.n_classes, 0.0f);
  std::vector<size_t> seen(index.n_classes, SIZE_MAX);  // the row that touched a class last
  std::vector<int32_t> touched;
  for (size_t r = first; r < last; ++r, nearest += n_nearest) {
    touched.clear();
    for (int64_t p = own_offsets[r]; p < own_offsets[r + 1]; ++p) seen[static_cast<size_t>(own[p])] = r;
    const int32_t *f = X.features_of(r);
    const float *x = X.values_of(r);
    for (size_t k = 0, n = X.length(r); k < n; ++k)
      for (int64_t p = index.offsets[f[k]]; p < index.offsets[f[k] + 1]; ++p) {
        const auto c = static_cast<size_t>(index.classes[p]);
        if (seen[c] != r) seen[c] = r, score[c] = start[c], touched.push_back(index.classes[p]);
        score[c] += x[k] * index.weights[p];
      }
    const size_t kept = std::min(n_nearest, touched.size());
    const auto better = [&](int32_t a, int32_t b) {
      return score[static_cast<size_t>(a)] != score[static_cast<size_t>(b)]
                 ? score[static_cast<size_t>(a)] > score[static_cast<size_t>(b)]
                 : a < b;
    };
    std::nth_element(touched.begin(), touched.begin() + static_cast<int64_t>(kept), touched.end(), better);
    std::sort(touched.begin(), touched.begin() + static_cast<int64_t>(kept));
    std::copy(touched.begin(), touched.begin() + static_cast<int64_t>(kept), nearest);
    std::fill(nearest + kept, nearest + n_nearest, -1);
  }
}

}  // namespace ramify
