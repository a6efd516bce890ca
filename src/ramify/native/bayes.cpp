// Softmax regression with a distribution over its weights.
#include "bayes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels.h"

namespace ramify {

namespace {

constexpr double kClosest = 1e-12;  // slopes of a document add up to 1 within this
constexpr int kMostSteps = 200;

// One document: the bound as a function of β, which is convex.
struct Document {
  const double *scores, *spreads;
  size_t n;
  double *slopes, *twice_lambda, *curvatures;

  // 1 − Σ slopes, the derivative by β; curvature gets the second.
  double derive(double beta, double &curvature) const {
    double slope = 1;
    curvature = 0;
    for (size_t k = 0; k < n; ++k) {
      const double t = scores[k] - beta, square = t * t + spreads[k], xi = std::sqrt(square);
      const double e = std::exp(-xi);
      twice_lambda[k] = xi < 1e-4 ? 0.25 - square / 48 : (1 - e) / (2 * xi * (1 + e));
      slopes[k] = 0.5 + twice_lambda[k] * t;
      const double share = square > 0 ? t * t / square : 0;
      curvatures[k] = (1 - share) * twice_lambda[k] + share * e / ((1 + e) * (1 + e));
      slope -= slopes[k];
      curvature += curvatures[k];
    }
    return slope;
  }

  double value(double beta) const {
    double sum = beta;
    for (size_t k = 0; k < n; ++k) {
      const double t = scores[k] - beta, xi = std::sqrt(t * t + spreads[k]);
      sum += 0.5 * (t + xi) + std::log1p(std::exp(-xi));
    }
    return sum;
  }

  // Newton's steps inside a bracket, which is halved where they do not halve the slope. At the lowest score no slope is below
  // ½, so the best β is no lower.
  double settle(double beta) const {
    double low = *std::min_element(scores, scores + n), high = std::numeric_limits<double>::infinity();
    double curvature, last = std::numeric_limits<double>::infinity(), reach = 1;
    beta = std::max(beta, low);
    double slope = derive(beta, curvature);
    for (int step = 0; step < kMostSteps && std::fabs(slope) > kClosest; ++step) {
      (slope < 0 ? low : high) = beta;
      double next = beta - slope / curvature;
      if (std::isinf(high))
        next = std::isfinite(next) ? next : beta + (reach *= 2);
      else if (!(next > low && next < high) || std::fabs(slope) > 0.5 * last)
        next = low + 0.5 * (high - low);
      if (next == beta) break;
      last = std::fabs(slope);
      beta = next;
      slope = derive(beta, curvature);
    }
    return beta;
  }
};

}  // namespace

void settle_documents_in_place(const double *scores, const double *spreads, size_t n_documents, size_t n_classes, double *betas,
                               double *bounds, double *slopes, double *twice_lambda, double *curvatures) {
  for (size_t i = 0; i < n_documents; ++i) {
    const size_t first = i * n_classes;
    const Document document{scores + first,      spreads + first, n_classes, slopes + first, twice_lambda + first,
                            curvatures + first};
    betas[i] = document.settle(betas[i]);
    bounds[i] = document.value(betas[i]);
  }
}

RAMIFY_WIDE_CLONES
void multiply_rows_in_place(const int64_t *offsets, const int32_t *features, const double *values, size_t n_rows,
                            const double *dense, size_t n_columns, double *products) {
  for (size_t r = 0; r < n_rows; ++r) {
    double *to = products + r * n_columns;
    std::fill(to, to + n_columns, 0.0);
    for (int64_t k = offsets[r]; k < offsets[r + 1]; ++k) {
      const double *from = dense + static_cast<size_t>(features[k]) * n_columns;
      const double x = values[k];
      for (size_t c = 0; c < n_columns; ++c) to[c] += x * from[c];
    }
  }
}

}  // namespace ramify
