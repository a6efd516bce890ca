// Dual coordinate ascent on one class: documents, pairs, the three losses with their duals, and one pass.
//
// For class n with documents i, signs y_i, bounds U_i (cost of document i) and weights w, z_i = y_i w·x_i:
//
//   primal   ½‖w‖² + Σ_i U_i L(z_i)            dual   Σ_i U_i h(α_i / U_i) − ½‖Σ_i α_i y_i x_i‖²,   0 ≤ α_i ≤ U_i
//
// and primal − dual is a sum over documents of U_i L(z_i) − U_i h(α_i / U_i) + α_i z_i, no term below zero.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sparse_rows.h"

namespace ramify {

// Documents × features; the constant feature of the bias is among them.
struct Documents : Rows {
  const float *squared_norms;
};

// Four sums side by side, so that an addition need not wait for the one before it.
inline float dot(const Rows &X, size_t row, const float *w) {
  const int32_t *f = X.columns_of(row);
  const float *x = X.values_of(row);
  const size_t n = X.length(row);
  float a = 0, b = 0, c = 0, d = 0;
  size_t k = 0;
  for (; k + 3 < n; k += 4) {
    a += w[f[k]] * x[k];
    b += w[f[k + 1]] * x[k + 1];
    c += w[f[k + 2]] * x[k + 2];
    d += w[f[k + 3]] * x[k + 3];
  }
  for (; k < n; ++k) a += w[f[k]] * x[k];
  return (a + b) + (c + d);
}

// The features of a row differ from each other, so four can be read before any is written.
inline void add_row(const Rows &X, size_t row, float factor, float *w) {
  const int32_t *f = X.columns_of(row);
  const float *x = X.values_of(row);
  const size_t n = X.length(row);
  size_t k = 0;
  for (; k + 3 < n; k += 4) {
    const float a = w[f[k]] + factor * x[k], b = w[f[k + 1]] + factor * x[k + 1];
    const float c = w[f[k + 2]] + factor * x[k + 2], d = w[f[k + 3]] + factor * x[k + 3];
    w[f[k]] = a, w[f[k + 1]] = b, w[f[k + 2]] = c, w[f[k + 3]] = d;
  }
  for (; k < n; ++k) w[f[k]] += factor * x[k];
}

inline void prefetch_row(const Rows &X, size_t row) {
#if defined(__GNUC__)
  const char *f = reinterpret_cast<const char *>(X.columns_of(row));
  const char *x = reinterpret_cast<const char *>(X.values_of(row));
  const size_t bytes = X.length(row) * 4;
  for (size_t k = 0; k < bytes && k < 1024; k += 64) {
    __builtin_prefetch(f + k);
    __builtin_prefetch(x + k);
  }
#endif
}

// ---- losses: L(z), U h(α / U), the α that is best when z would move by curvature · change, and the best where z is 0 -----

struct Hinge {
  static constexpr bool has_bound = true;  // whether a pair can cost nothing
  static constexpr bool has_corner = true;
  static double loss(double z) { return z < 1 ? 1 - z : 0; }
  static double entropy(double alpha, double) { return alpha; }
  static float best(float alpha, float z, float upper, float curvature) {
    return std::min(std::max(alpha - (z - 1) / curvature, 0.0f), upper);
  }
  static float at_zero(float upper) { return upper; }
  static float rescaled(float alpha, float factor) { return alpha * factor; }  // a start for costs times a factor
  static bool is_at_bound(float alpha, float z, float upper, float slack) {
    return (alpha <= 0 && z > 1 + slack) || (alpha >= upper && z < 1 - slack);
  }
};

struct SquaredHinge {
  static constexpr bool has_bound = true;
  static constexpr bool has_corner = false;
  static double loss(double z) { return z < 1 ? (1 - z) * (1 - z) : 0; }
  static double entropy(double alpha, double upper) { return alpha - alpha * alpha / (4 * upper); }
  static float best(float alpha, float z, float upper, float curvature) {
    const float slope = z - 1 + alpha / (2 * upper);
    return std::max(alpha - slope / (curvature + 1 / (2 * upper)), 0.0f);
  }
  static float at_zero(float upper) { return 2 * upper; }
  static float rescaled(float alpha, float factor) { return alpha * std::sqrt(factor); }
  static bool is_at_bound(float alpha, float z, float, float slack) { return alpha <= 0 && z > 1 + slack; }
};

struct Logistic {
  static constexpr bool has_bound = false;
  static constexpr bool has_corner = false;
  static double loss(double z) { return z > 0 ? std::log1p(std::exp(-z)) : std::log1p(std::exp(z)) - z; }
  static double entropy(double alpha, double upper) {
    const double fraction = alpha / upper;
    const double rest = 1 - fraction;
    double h = 0;
    if (fraction > 0) h -= fraction * std::log(fraction);
    if (rest > 0) h -= rest * std::log(rest);
    return upper * h;
  }
  // Newton's method on σ, fraction = 1 / (1 + e^σ): σ = z + curvature · upper · (fraction(σ) − fraction) has one root and a
  // derivative between 1 and 1 + curvature · upper / 4. A step that leaves its bracket, or is more than half as long as the
  // one before the last, gives way to halving the bracket, so that it always converges.
  static float best(float alpha, float z, float upper, float curvature) {
    const double range = static_cast<double>(curvature) * upper, fraction = static_cast<double>(alpha) / upper;
    double low = z - range * fraction, high = z + range * (1 - fraction), sigma = std::min(std::max<double>(z, low), high);
    double length = high - low, before = length;
    for (int step = 0; step < 100; ++step) {
      const double p = 1 / (1 + std::exp(sigma)), off = sigma - z - range * (p - fraction);
      if (off > 0) high = sigma; else low = sigma;
      double next = sigma - off / (1 + range * p * (1 - p));
      if (next <= low || next >= high || std::fabs(next - sigma) > 0.5 * before) next = 0.5 * (low + high);
      before = length;
      length = std::fabs(next - sigma);
      const bool has_converged = std::fabs(next - sigma) <= 1e-6 * (1 + std::fabs(sigma));
      sigma = next;
      if (has_converged) break;
    }
    return static_cast<float>(upper / (1 + std::exp(sigma)));
  }
  static float at_zero(float upper) { return upper / 2; }
  static float rescaled(float alpha, float factor) { return alpha * factor; }
  static bool is_at_bound(float, float, float, float) { return false; }
};

// ---- one class ------------------------------------------------------------------------------------------------------

// The pairs of one class: documents, dual variables and costs; the first n_positive are of the class.
struct Class {
  const int32_t *documents;
  float *alphas;
  size_t n_pairs, n_positive;
  float cost_positive, cost_negative;
  const float *document_weights;

  float sign(size_t j) const { return j < n_positive ? 1.0f : -1.0f; }
  float upper(size_t j) const { return (j < n_positive ? cost_positive : cost_negative) * document_weights[documents[j]]; }
};

// The pairs of many classes, class after class.
struct Pairs {
  size_t n_classes, n_documents;
  const int64_t *offsets;
  const int32_t *documents;
  const int64_t *n_positive;
  const float *cost_positive, *cost_negative;
  float *alphas;

  Class of(size_t k, const float *document_weights) const {
    const auto start = static_cast<size_t>(offsets[k]), end = static_cast<size_t>(offsets[k + 1]);
    return {documents + start, alphas + start, end - start, static_cast<size_t>(n_positive[k]),
            cost_positive[k],  cost_negative[k], document_weights};
  }
};

// The objective of a class in primal and dual, the best scale of its weights, and the passes that it took.
struct Certificate {
  double primal = 0, dual = 0, scale = 1, passes = 0;
};

enum class LossKind : int { hinge = 0, squared_hinge = 1, logistic = 2 };

template <class Work>
auto with_loss(LossKind kind, Work work) {
  if (kind == LossKind::hinge) return work(Hinge{});
  if (kind == LossKind::squared_hinge) return work(SquaredHinge{});
  return work(Logistic{});
}

// A small generator for every class and pass: results do not depend on which thread works on which class.
struct Random {
  uint64_t state;
  explicit Random(uint64_t seed) : state(seed * 0x9E3779B97F4A7C15ull + 0xD1B54A32D192ED03ull) { next(); next(); }
  uint64_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  }
  uint32_t below(uint32_t n) { return static_cast<uint32_t>((next() >> 32) * n >> 32); }
};

// The active set of a class: its pairs are the first `size` of the order.
struct ActiveOrder {
  std::vector<uint32_t> order;
  size_t size = 0;

  explicit ActiveOrder(size_t n_pairs) : order(n_pairs) { activate_all(); }
  void activate_all() {
    size = order.size();
    for (size_t j = 0; j < size; ++j) order[j] = static_cast<uint32_t>(j);
  }
  void shuffle(Random &random) {
    for (size_t k = size; k > 1; --k) std::swap(order[k - 1], order[random.below(static_cast<uint32_t>(k))]);
  }
};

// w += factor · Σ α y x over the pairs of a class.
inline void add_pairs(const Rows &X, const Class &c, float *w, float factor = 1.0f) {
  for (size_t j = 0; j < c.n_pairs; ++j)
    if (c.alphas[j] != 0) add_row(X, static_cast<size_t>(c.documents[j]), factor * c.alphas[j] * c.sign(j), w);
}

// Marks the features of the documents of a class.
inline void mark_features(const Rows &X, const Class &c, std::vector<uint8_t> &has) {
  for (size_t j = 0; j < c.n_pairs; ++j) {
    const auto row = static_cast<size_t>(c.documents[j]);
    const int32_t *f = X.columns_of(row);
    for (size_t p = 0, n = X.length(row); p < n; ++p) has[static_cast<size_t>(f[p])] = 1;
  }
}

// Weights may be scaled by 1 or a little more: documents that end on the margin lie around it before convergence, and a scale
// lifts most of them over the corner of the hinge.
constexpr int kNumScales = 8;
constexpr float kScales[kNumScales] = {1.0f, 1.0003f, 1.001f, 1.003f, 1.006f, 1.012f, 1.025f, 1.05f};

// What a pass over the pairs of a class adds up.
struct Sums {
  double loss[kNumScales] = {};  // Σ U L(scale · z)
  double entropy = 0;            // Σ U h(α / U)
  double quadratic = 0;          // Σ α z, which is w·u

  template <class Loss>
  void add(float alpha, float z, float upper) {
    if (Loss::has_corner) {
      for (int k = 0; k < kNumScales; ++k) loss[k] += std::max(0.0f, upper * (1 - kScales[k] * z));
    } else {
      loss[0] += upper * Loss::loss(z);
    }
    entropy += Loss::entropy(alpha, upper);
    quadratic += static_cast<double>(alpha) * z;
  }
};

// One pass over the active pairs: w moves by `curvature` · change in α · y · x. Pairs at a bound whose gradient points beyond it
// by more than `slack` become inactive. Gives the largest violation. relaxation: steps are taken as if the curvature were so many
// times smaller; below 2, no step lowers the dual.
template <class Loss>
float run_pass(const Documents &X, Class &c, float curvature, float slack, ActiveOrder &active, Random &random, float *w,
               Sums *sums, float relaxation = 1) {
  active.shuffle(random);
  float worst = 0;
  size_t n_active = 0;
  for (size_t k = 0; k < active.size; ++k) {
    const uint32_t j = active.order[k];
    const size_t i = static_cast<size_t>(c.documents[j]);
    if (k + 1 < active.size) prefetch_row(X, static_cast<size_t>(c.documents[active.order[k + 1]]));
    const float y = c.sign(j), upper = c.upper(j), alpha = c.alphas[j], norm = curvature * X.squared_norms[i];
    if (upper <= 0) continue;
    if (norm <= 0) {  // an empty row: whatever the weights, its margin is 0
      c.alphas[j] = Loss::at_zero(upper);
      continue;
    }
    const float z = y * dot(X, i, w);
    if (sums) sums->add<Loss>(alpha, z, upper);
    const float better = Loss::best(alpha, z, upper, norm / relaxation), change = better - alpha;
    if (change == 0 && Loss::is_at_bound(alpha, z, upper, slack)) continue;
    active.order[n_active++] = j;
    if (change == 0) continue;
    worst = std::max(worst, std::fabs(change) * norm);
    c.alphas[j] = better;
    add_row(X, i, change * curvature * y, w);
  }
  active.size = n_active;
  return worst;
}

}  // namespace ramify
