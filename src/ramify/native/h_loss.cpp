// The label set with the least expected H-loss.
#include <algorithm>
#include <cmath>

#include "decisions.h"

namespace ramify {

template <typename T>
PatternRows minimize_h_loss(const T *probabilities, size_t n_documents, const int32_t *parent, const double *costs,
                            const uint8_t *by_sign, size_t n_nodes) {
  PatternRows taken;
  taken.offsets.reserve(n_documents + 1);
  std::vector<double> below(n_nodes);  // the risk of a node's children, once it is rightly taken
  std::vector<uint8_t> takes(n_nodes);
  for (size_t d = 0; d < n_documents; ++d) {
    const T *row = probabilities + d * n_nodes;
    std::fill(below.begin(), below.end(), 0.0);
    for (size_t v = n_nodes; v-- > 0;) {  // parents come first, so a backward sweep sees children first
      const double p = std::isnan(row[v]) ? 0.0 : static_cast<double>(row[v]);
      const double if_left = costs[v] * p, if_taken = costs[v] * (1 - p) + p * below[v];
      takes[v] = by_sign[v] ? p >= 0.5 : if_taken <= if_left && p > 0;
      if (parent[v] >= 0) below[parent[v]] += takes[v] ? if_taken : if_left;
    }
    for (size_t v = 0; v < n_nodes; ++v) {
      takes[v] = takes[v] && (parent[v] < 0 || takes[parent[v]]);
      if (takes[v]) taken.columns.push_back(static_cast<int32_t>(v));
    }
    taken.end_row();
  }
  return taken;
}

template PatternRows minimize_h_loss(const float *, size_t, const int32_t *, const double *, const uint8_t *, size_t);
template PatternRows minimize_h_loss(const double *, size_t, const int32_t *, const double *, const uint8_t *, size_t);

}  // namespace ramify
