// Scores of all documents against 32 classes at once, in 8-bit weights with a bound on the error, to find the few pairs
// of a document and a class that can matter; these are then scored in full.
#include <cmath>
#include <cstring>
#include <functional>
#include <utility>

#include "dispatch.h"
#include "linear.h"

namespace ramify {

namespace {

typedef float Floats8 __attribute__((vector_size(32)));
typedef int32_t Ints8 __attribute__((vector_size(32)));

constexpr size_t kBlock = 32;    // classes that are scored together
constexpr size_t kAhead = 12;    // how many features ahead their cache lines are fetched
constexpr size_t kTile = 16;     // features whose weights are quantized together
constexpr float kSteps = 127.0f;  // from zero to the largest weight of a feature

// The weights of a feature as steps; gives the size of a step.
RAMIFY_WIDE_CLONES
float quantize_line(const float *weights, int8_t *steps) {
  float largest = 0;
  for (size_t c = 0; c < kBlock; ++c) largest = std::max(largest, std::fabs(weights[c]));
  const float inverse = largest > 1e-30f ? kSteps / largest : 0.0f;
  Ints8 line = {0};
  for (size_t part = 0; part < 4; ++part) {
    Floats8 step;
    std::memcpy(&step, weights + part * 8, sizeof step);
    step *= inverse;
    step += step < 0 ? Floats8{} - 0.5f : Floats8{} + 0.5f;
    line |= (__builtin_convertvector(step, Ints8) & 255) << static_cast<int>(8 * part);
  }
  std::memcpy(steps, &line, sizeof line);
  return largest / kSteps;
}

// Weights of up to 32 classes, in full, and as steps of 8 bits. The steps of a feature share a scale and half a cache line,
// of which a word of 32 bits holds the classes l, l + 8, l + 16 and l + 24: two shifts separate them.
class Block {
 public:
  explicit Block(size_t n_features)
      : n_tiles_((n_features + kTile - 1) / kTile), width_(n_tiles_ * kTile), weights_(width_ * kBlock, 0.0f),
        scales_(width_, 0.0f), steps_(width_ * kBlock, 0), used_(width_ / 64 + 1, 0), touched_(n_tiles_, 0), stale_(n_tiles_, 0),
        parents_(n_features) {}

  void fill(const Rows &X, const Pairs &pairs, const Ancestors &ancestors, const double *scale, const int32_t *classes,
            size_t n) {
    clear();
    for (size_t next = 0; next < n; ++next) {
      const auto k = static_cast<size_t>(classes[next]);
      const auto factor = static_cast<float>(scale[k]);
      float *w = weights_.data() + next * width_;
      if (const float *p = parents_.of(ancestors, k)) {
        for (size_t f = 0; f < X.n_columns; ++f) w[f] = factor * p[f];
        std::fill(touched_.begin(), touched_.end(), uint8_t{1});
      }
      const Class c = pairs.of(k, nullptr);
      for (size_t j = 0; j < c.n_pairs; ++j)
        if (c.alphas[j] != 0) {
          const auto row = static_cast<size_t>(c.documents[j]);
          add_row(X, row, factor * c.alphas[j] * c.sign(j), w);
          touch(X, row);
        }
    }
    for (size_t t = 0; t < n_tiles_; ++t)
      if (touched_[t] || stale_[t]) quantize(t * kTile);
  }

  const int8_t *steps() const { return steps_.data(); }
  bool uses(size_t f) const { return used_[f / 64] >> (f % 64) & 1; }
  const float *scales() const { return scales_.data(); }
  const float *weights_of(size_t c) const { return weights_.data() + c * width_; }

 private:
  size_t n_tiles_, width_;
  Large<float> weights_, scales_;  // classes × features; by feature
  Large<int8_t> steps_;            // features × classes
  std::vector<uint64_t> used_;     // one bit per feature: whether any class has a weight there
  std::vector<uint8_t> touched_, stale_;
  ParentWeights parents_;

  void clear() {
    for (size_t t = 0; t < n_tiles_; ++t)
      for (size_t c = 0; touched_[t] && c < kBlock; ++c)
        std::memset(weights_.data() + c * width_ + t * kTile, 0, kTile * sizeof(float));
    stale_.swap(touched_);
    std::fill(touched_.begin(), touched_.end(), uint8_t{0});
  }

  void touch(const Rows &X, size_t row) {
    const int32_t *f = X.columns_of(row);
    for (size_t p = 0, n = X.length(row); p < n; ++p) touched_[static_cast<size_t>(f[p]) / kTile] = 1;
  }

  void quantize(size_t first) {
    float tile[kTile][kBlock];
    for (size_t c = 0; c < kBlock; ++c)
      for (size_t f = 0; f < kTile; ++f) tile[f][c] = weights_[c * width_ + first + f];
    for (size_t f = first; f < first + kTile; ++f) {
      scales_[f] = quantize_line(tile[f - first], steps_.data() + f * kBlock);
      const uint64_t bit = uint64_t{1} << (f % 64);
      used_[f / 64] = scales_[f] > 0 ? used_[f / 64] | bit : used_[f / 64] & ~bit;
    }
  }
};

// The features of a row in which some class of a block has a weight: the others would only cost cache misses.
struct UsedPart {
  std::vector<int32_t> features;
  std::vector<float> values;
  size_t n = 0;

  void take(const Rows &X, size_t row, const Block &block) {
    const int32_t *f = X.columns_of(row);
    const float *x = X.values_of(row);
    if (features.size() <= X.length(row)) features.resize(X.length(row) + 1), values.resize(X.length(row) + 1);
    n = 0;
    for (size_t k = 0, length = X.length(row); k < length; ++k) {
      features[n] = f[k];
      values[n] = x[k];
      n += block.uses(static_cast<size_t>(f[k]));
    }
  }
};

// Scores of a row, and the sum of |x| · scale over its features, half of which bounds the error of rounding.
RAMIFY_WIDE_CLONES
float score_row(const int32_t *f, const float *x, size_t n, const int8_t *steps, const float *scales, float *scores) {
  Floats8 a = {0}, b = {0}, c = {0}, d = {0};
  float error = 0;
  for (size_t k = 0; k < n; ++k) {
    if (k + kAhead < n) __builtin_prefetch(steps + static_cast<size_t>(f[k + kAhead]) * kBlock);
    const float factor = x[k] * scales[f[k]];
    const auto line = *reinterpret_cast<const Ints8 *>(steps + static_cast<size_t>(f[k]) * kBlock);
    error += std::fabs(factor);
    a += factor * __builtin_convertvector(line << 24 >> 24, Floats8);
    b += factor * __builtin_convertvector(line << 16 >> 24, Floats8);
    c += factor * __builtin_convertvector(line << 8 >> 24, Floats8);
    d += factor * __builtin_convertvector(line >> 24, Floats8);
  }
  std::memcpy(scores, &a, sizeof a);
  std::memcpy(scores + 8, &b, sizeof b);
  std::memcpy(scores + 16, &c, sizeof c);
  std::memcpy(scores + 24, &d, sizeof d);
  return error;
}

double score_exactly(const Rows &X, size_t row, const float *w) {
  const int32_t *f = X.columns_of(row);
  const float *x = X.values_of(row);
  const size_t n = X.length(row);
  double a = 0, b = 0;
  size_t k = 0;
  for (; k + 1 < n; k += 2) {
    a += static_cast<double>(w[f[k]]) * x[k];
    b += static_cast<double>(w[f[k + 1]]) * x[k + 1];
  }
  return k < n ? a + b + static_cast<double>(w[f[k]]) * x[k] : a + b;
}

// Which rows are among the pairs of a class: one bit per row and class.
std::vector<uint64_t> mark_pairs(const Pairs &pairs, const int32_t *classes, size_t n, size_t words) {
  std::vector<uint64_t> is_paired(n * words, 0);
  for (size_t c = 0; c < n; ++c)
    for (int64_t j = pairs.offsets[classes[c]]; j < pairs.offsets[classes[c] + 1]; ++j) {
      const auto row = static_cast<size_t>(pairs.documents[j]);
      is_paired[c * words + row / 64] |= uint64_t{1} << (row % 64);
    }
  return is_paired;
}

// The rows with the highest scores of one class, at most max_pairs of them.
class TopRows {
 public:
  void offer(float score, int32_t row, size_t max_pairs) {
    if (heap_.size() == max_pairs && score <= heap_.front().first) return;
    if (heap_.size() == max_pairs) std::pop_heap(heap_.begin(), heap_.end(), std::greater<>()), heap_.pop_back();
    heap_.emplace_back(score, row);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
  void move_to(size_t c, FoundPairs &found) {
    std::sort(heap_.begin(), heap_.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
    for (const auto &[score, row] : heap_) found.add(static_cast<size_t>(row), c);
    heap_.clear();
  }

 private:
  std::vector<std::pair<float, int32_t>> heap_;
};

}  // namespace

void screen_classes_in_place(const Rows &X, LossKind loss, const Pairs &pairs, const float *document_weights,
                             const Ancestors &ancestors, const double *scale, const int32_t *classes, size_t n_classes,
                             const ScreeningLimits &limits, double *losses, FoundPairs &found) {
  Block block(X.n_columns);
  TopRows top[kBlock];
  UsedPart part;
  const size_t words = X.n_rows / 64 + 1;
  const float threshold = limits.threshold;
  float scores[kBlock];
  for (size_t start = 0; start < n_classes; start += kBlock) {
    const size_t n = std::min(kBlock, n_classes - start);
    const int32_t *listed = classes + start;
    block.fill(X, pairs, ancestors, scale, listed, n);
    const std::vector<uint64_t> is_paired = mark_pairs(pairs, listed, n, words);
    for (size_t r = 0; r < X.n_rows; ++r) {
      part.take(X, r, block);
      const float steps = score_row(part.features.data(), part.values.data(), part.n, block.steps(), block.scales(), scores);
      // rounding a weight loses half a step at most, and every sum in 32 bits 2⁻²⁴ of up to 127 steps
      const float error = steps * (0.501f + 7.6e-6f * static_cast<float>(part.n)) + 1e-6f;
      for (size_t c = 0; c < n; ++c) {
        double score = scores[c] + error;
        if (score <= threshold || is_paired[c * words + r / 64] >> (r % 64) & 1) continue;
        if (limits.exact) score = score_exactly(X, r, block.weights_of(c)) + 2e-14 * static_cast<double>(part.n) * steps;
        const float cost = pairs.cost_negative[listed[c]] * document_weights[r];
        if (score <= threshold || cost <= 0) continue;
        losses[listed[c]] += cost * with_loss(loss, [&](auto kind) { return decltype(kind)::loss(-score); });
        top[c].offer(static_cast<float>(score), static_cast<int32_t>(r), limits.max_pairs);
      }
    }
    for (size_t c = 0; c < n; ++c) top[c].move_to(static_cast<size_t>(listed[c]), found);
  }
}

}  // namespace ramify
