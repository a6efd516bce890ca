// For every document the classes that are likeliest by a few telling features each, looked up by feature.
#include <limits>

#include "kernels.h"

namespace ramify {

namespace {

// The classes that a document meets in an index, and how much speaks for each.
class Meeting {
 public:
  Meeting(const Signatures &index, const float *start)
      : index_(index), start_(start), score_(index.n_classes, 0.0f), seen_(index.n_classes, SIZE_MAX) {}

  void begin(size_t row) { row_ = row, met_.clear(); }

  void leave_out(int32_t c) { seen_[static_cast<size_t>(c)] = row_; }

  // Meet a class, with what it starts from; false where it was met or left out before.
  bool meet(int32_t c) {
    const auto k = static_cast<size_t>(c);
    if (seen_[k] == row_) return false;
    seen_[k] = row_, score_[k] = start_[k], met_.push_back(c);
    return true;
  }

  void meet_all(const Rows &X) {
    const int32_t *f = X.features_of(row_);
    const float *x = X.values_of(row_);
    for (size_t k = 0, n = X.length(row_); k < n; ++k)
      for (int64_t p = index_.offsets[f[k]]; p < index_.offsets[f[k] + 1]; ++p) {
        meet(index_.classes[p]);
        score_[static_cast<size_t>(index_.classes[p])] += x[k] * index_.weights[p];
      }
  }

  // The classes with the most that speaks for them, in order of number; of equal ones the first. -1 where there are fewer.
  void take(size_t most, int32_t *taken) {
    const size_t kept = std::min(most, met_.size());
    const auto better = [&](int32_t a, int32_t b) { return of(a) != of(b) ? of(a) > of(b) : a < b; };
    const auto end = met_.begin() + static_cast<int64_t>(kept);
    std::nth_element(met_.begin(), end, met_.end(), better);
    std::sort(met_.begin(), end);
    std::copy(met_.begin(), end, taken);
    std::fill(taken + kept, taken + most, -1);
  }

  float of(int32_t c) const { return score_[static_cast<size_t>(c)]; }

 private:
  const Signatures &index_;
  const float *start_;
  std::vector<float> score_;
  std::vector<size_t> seen_;  // the row that met a class last
  std::vector<int32_t> met_;
  size_t row_ = SIZE_MAX;
};

// The `most` largest of n numbers, in order of place; of equal ones the first.
class Largest {
 public:
  explicit Largest(size_t most) : most_(most) {}

  const std::vector<int32_t> &of(const float *numbers, size_t n) {
    // the worst of those kept stands in front
    const auto better = [&](int32_t a, int32_t b) { return numbers[a] != numbers[b] ? numbers[a] > numbers[b] : a < b; };
    kept_.clear();
    size_t k = 0;
    for (; k < std::min(most_, n); ++k) kept_.push_back(static_cast<int32_t>(k));
    std::make_heap(kept_.begin(), kept_.end(), better);
    for (; k < n; ++k)
      if (numbers[k] > numbers[kept_.front()]) {
        std::pop_heap(kept_.begin(), kept_.end(), better);
        kept_.back() = static_cast<int32_t>(k);
        std::push_heap(kept_.begin(), kept_.end(), better);
      }
    std::sort(kept_.begin(), kept_.end());
    return kept_;
  }

 private:
  size_t most_;
  std::vector<int32_t> kept_;
};

constexpr float kNone = -std::numeric_limits<float>::infinity();

}  // namespace

void nearest_classes(const Rows &X, size_t first, size_t last, const Signatures &index, const float *start,
                     const int64_t *own_offsets, const int32_t *own, size_t n_nearest, int32_t *nearest) {
  Meeting meeting(index, start);
  for (size_t r = first; r < last; ++r, nearest += n_nearest) {
    meeting.begin(r);
    for (int64_t p = own_offsets[r]; p < own_offsets[r + 1]; ++p) meeting.leave_out(own[p]);
    meeting.meet_all(X);
    meeting.take(n_nearest, nearest);
  }
}

void near_classes(const Rows &X, size_t first, size_t last, const Signatures &index, const float *start, size_t width,
                  int32_t *near, float *nearness) {
  Meeting meeting(index, start);
  for (size_t r = first; r < last; ++r, near += width, nearness += width) {
    meeting.begin(r);
    meeting.meet_all(X);
    meeting.take(width, near);
    for (size_t k = 0; k < width; ++k) nearness[k] = near[k] < 0 ? kNone : meeting.of(near[k]);
  }
}

void likely_classes(const Rows &X, size_t first, size_t last, const Signatures &index, const float *start,
                    size_t width, int32_t *likely, float *likelihood) {
  std::vector<float> score(index.n_classes);
  Largest largest(width);
  for (size_t r = first; r < last; ++r, likely += width, likelihood += width) {
    std::copy(start, start + index.n_classes, score.begin());
    const int32_t *f = X.features_of(r);
    const float *x = X.values_of(r);
    for (size_t k = 0, n = X.length(r); k < n; ++k)
      for (int64_t p = index.offsets[f[k]], end = index.offsets[f[k] + 1]; p < end; ++p)
        score[static_cast<size_t>(index.classes[p])] += x[k] * index.weights[p];
    const auto &kept = largest.of(score.data(), score.size());
    std::fill(std::copy(kept.begin(), kept.end(), likely), likely + width, -1);
    for (size_t k = 0; k < width; ++k) likelihood[k] = likely[k] < 0 ? kNone : score[static_cast<size_t>(likely[k])];
  }
}

}  // namespace ramify
