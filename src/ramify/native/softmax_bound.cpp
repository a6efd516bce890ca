// The bound on the expected softmax denominator, minimized document by document.
#include "softmax_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ramify {

namespace {

constexpr double kTolerance = 1e-12;  // slopes of a document add up to 1 within this
constexpr int kMaxSteps = 200;

// One document: the bound as a function of β, which is convex.
struct Document {
  const double *scores, *variances;
  size_t n;
  double *slopes, *twice_lambda, *curvatures;

  // 1 − Σ slopes, the derivative by β; curvature gets the second.
  double derive(double beta, double &curvature) const {
    double slope = 1;
    curvature = 0;
    for (size_t k = 0; k < n; ++k) {
      const double t = scores[k] - beta, square = t * t + variances[k], xi = std::sqrt(square);
      const double e = std::exp(-xi);
      twice_lambda[k] = xi < 1e-4 ? 0.25 - square / 48 : (1 - e) / (2 * xi * (1 + e));
      slopes[k] = 0.5 + twice_lambda[k] * t;
      const double fraction = square > 0 ? t * t / square : 0;
      curvatures[k] = (1 - fraction) * twice_lambda[k] + fraction * e / ((1 + e) * (1 + e));
      slope -= slopes[k];
      curvature += curvatures[k];
    }
    return slope;
  }

  double value(double beta) const {
    double sum = beta;
    for (size_t k = 0; k < n; ++k) {
      const double t = scores[k] - beta, xi = std::sqrt(t * t + variances[k]);
      sum += 0.5 * (t + xi) + std::log1p(std::exp(-xi));
    }
    return sum;
  }

  // Newton's steps inside a bracket, which is halved where they do not halve the slope. At the lowest score no slope is below
  // ½, so the best β is no lower.
  double minimize(double beta) const {
    double low = *std::min_element(scores, scores + n), high = std::numeric_limits<double>::infinity();
    double curvature, last = std::numeric_limits<double>::infinity(), step_length = 1;
    beta = std::max(beta, low);
    double slope = derive(beta, curvature);
    for (int step = 0; step < kMaxSteps && std::fabs(slope) > kTolerance; ++step) {
      (slope < 0 ? low : high) = beta;
      double next = beta - slope / curvature;
      if (std::isinf(high))
        next = std::isfinite(next) ? next : beta + (step_length *= 2);
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

void minimize_softmax_bound_in_place(const double *scores, const double *variances, size_t n_documents, size_t n_classes,
                                     const SoftmaxBound &bound) {
  for (size_t i = 0; i < n_documents; ++i) {
    const size_t first = i * n_classes;
    const Document document{scores + first, variances + first, n_classes, bound.slopes + first, bound.twice_lambda + first,
                            bound.curvatures + first};
    bound.betas[i] = document.minimize(bound.betas[i]);
    bound.bounds[i] = document.value(bound.betas[i]);
  }
}

}  // namespace ramify
