// Scores of all documents against 32 classes at once, in 16-bit weights with a bound on the error, to find the few pairs
// of a document and a class that can matter.
#include <cstring>
#include <functional>
#include <utility>

#include "kernels.h"

namespace ramify {

namespace {

typedef float Floats8 __attribute__((vector_size(32)));
typedef int16_t Shorts8 __attribute__((vector_size(16)));

// Weights of up to 32 classes. One feature's weights share a scale and, as 16-bit steps of it, a cache line.
class Block {
 public:
  explicit Block(size_t n_features)
      : n_features_(n_features), weights_(n_features * kBlock), scales_(n_features), held_(n_features * kBlock + 32) {
    const auto address = reinterpret_cast<uintptr_t>(held_.data());
    steps_ = held_.data() + (64 - address % 64) % 64 / sizeof(int16_t);
  }

  void fill(const Rows &X, const Pairs &pairs, const Above &above, const double *stretch, const int32_t *classes, size_t n) {
    std::memset(weights_.data(), 0, weights_.size() * sizeof(float));
    PathWeights path(n_features_);
    for (size_t next = 0; next < n; ++next) {
      const auto k = static_cast<size_t>(classes[next]);
      float *column = weights_.data() + next;
      const auto factor = static_cast<float>(stretch[k]);
      if (const float *p = path.of(above, k))
        for (size_t f = 0; f < n_features_; ++f) column[f * kBlock] = factor * p[f];
      const Class c = pairs.of(k, nullptr);
      for (size_t j = 0; j < c.n_pairs; ++j)
        if (c.alphas[j] != 0) add_row_to(column, X, static_cast<size_t>(c.documents[j]), factor * c.alphas[j] * c.sign(j));
    }
    shorten();
  }

  const int16_t *steps() const { return steps_; }
  const float *scales() const { return scales_.data(); }

 private:
  size_t n_features_;
  std::vector<float> weights_, scales_;
  std::vector<int16_t> held_;
  int16_t *steps_;

  static void add_row_to(float *column, const Rows &X, size_t row, float factor) {
    const int32_t *f = X.features_of(row);
    const float *x = X.values_of(row);
    for (size_t p = 0, n = X.length(row); p < n; ++p) column[static_cast<size_t>(f[p]) * kBlock] += factor * x[p];
  }

  void shorten() {
    const float *weights = weights_.data();
    int16_t *steps = steps_;
    for (size_t f = 0; f < n_features_; ++f, weights += kBlock, steps += kBlock) {
      float largest = 0;
      for (size_t c = 0; c < kBlock; ++c) largest = std::max(largest, std::fabs(weights[c]));
      scales_[f] = largest / 32767.0f;
      const float inverse = largest > 1e-30f ? 32767.0f / largest : 0.0f;
      for (size_t c = 0; c < kBlock; ++c) {
        const float step = weights[c] * inverse;
        steps[c] = static_cast<int16_t>(step + (step < 0 ? -0.5f : 0.5f));
      }
    }
  }
};

// Scores of a row, and the sum of |x| · scale over its features, half of which bounds the error of rounding.
RAMIFY_WIDE_CLONES
float score_row(const int32_t *f, const float *x, size_t n, const int16_t *steps, const float *scales, float *scores) {
  Floats8 a = {0}, b = {0}, c = {0}, d = {0};
  float error = 0;
  for (size_t k = 0; k < n; ++k) {
    if (k + kAhead < n) __builtin_prefetch(steps + static_cast<size_t>(f[k + kAhead]) * kBlock);
    const float factor = x[k] * scales[f[k]];
    const auto *line = reinterpret_cast<const Shorts8 *>(steps + static_cast<size_t>(f[k]) * kBlock);
    error += std::fabs(factor);
    a += factor * __builtin_convertvector(line[0], Floats8);
    b += factor * __builtin_convertvector(line[1], Floats8);
    c += factor * __builtin_convertvector(line[2], Floats8);
    d += factor * __builtin_convertvector(line[3], Floats8);
  }
  std::memcpy(scores, &a, sizeof a);
  std::memcpy(scores + 8, &b, sizeof b);
  std::memcpy(scores + 16, &c, sizeof c);
  std::memcpy(scores + 24, &d, sizeof d);
  return error;
}

// Which rows a class already knows: one bit a row and class.
std::vector<uint64_t> mark_known(const Pairs &pairs, const int32_t *classes, size_t n, size_t words) {
  std::vector<uint64_t> known(n * words, 0);
  for (size_t c = 0; c < n; ++c)
    for (int64_t j = pairs.offsets[classes[c]]; j < pairs.offsets[classes[c] + 1]; ++j) {
      const auto row = static_cast<size_t>(pairs.documents[j]);
      known[c * words + row / 64] |= uint64_t{1} << (row % 64);
    }
  return known;
}

// The rows with the highest bounds of one class, no more than some number of them.
class Worst {
 public:
  void offer(float bound, int32_t row, size_t most) {
    if (heap_.size() == most && bound <= heap_.front().first) return;
    if (heap_.size() == most) std::pop_heap(heap_.begin(), heap_.end(), std::greater<>()), heap_.pop_back();
    heap_.emplace_back(bound, row);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
  void hand_over(size_t c, Found &found) {
    std::sort(heap_.begin(), heap_.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
    for (const auto &[bound, row] : heap_) found.add(static_cast<size_t>(row), c);
    heap_.clear();
  }

 private:
  std::vector<std::pair<float, int32_t>> heap_;
};

}  // namespace

void screen_classes(const Rows &X, size_t n_rows, const Pairs &pairs, const Above &above, const double *stretch,
                    const int32_t *classes, size_t n_classes, float threshold, size_t most, LossKind loss,
                    const float *document_weights, Found &found, double *losses) {
  Block block(X.n_features);
  Worst worst[kBlock];
  const size_t words = n_rows / 64 + 1;
  float scores[kBlock];
  for (size_t start = 0; start < n_classes; start += kBlock) {
    const size_t n = std::min(kBlock, n_classes - start);
    const int32_t *here = classes + start;
    block.fill(X, pairs, above, stretch, here, n);
    const std::vector<uint64_t> known = mark_known(pairs, here, n, words);
    for (size_t r = 0; r < n_rows; ++r) {
      const float steps = score_row(X.features_of(r), X.values_of(r), X.length(r), block.steps(), block.scales(), scores);
      // rounding a weight loses half a step at most, and every sum in 32 bits 2⁻²⁴ of up to 32767 steps
      const float error = steps * (0.501f + 0.00196f * static_cast<float>(X.length(r))) + 1e-6f;
      for (size_t c = 0; c < n; ++c)
        if (scores[c] + error > threshold && !(known[c * words + r / 64] >> (r % 64) & 1)) {
          const float bound = scores[c] + error, cost = pairs.cost_negative[here[c]] * document_weights[r];
          if (cost <= 0) continue;
          losses[here[c]] += cost * with_loss(loss, [&](auto kind) { return decltype(kind)::loss(-bound); });
          worst[c].offer(bound, static_cast<int32_t>(r), most);
        }
    }
    for (size_t c = 0; c < n; ++c) worst[c].hand_over(static_cast<size_t>(here[c]), found);
  }
}

}  // namespace ramify
