// Candidate classes of every document, found in an index by feature of the largest weights of every class.
#include <limits>

#include "linear.h"

namespace ramify {

namespace {

// The classes that an index has for a document, and the score of each.
class CandidateScores {
 public:
  CandidateScores(const Rows &index, const float *start)
      : index_(index), start_(start), score_(index.n_columns, 0.0f), last_row_(index.n_columns, SIZE_MAX) {}

  void begin(size_t row) { row_ = row, found_.clear(); }

  void leave_out(int32_t c) { last_row_[static_cast<size_t>(c)] = row_; }

  // Adds a class with its start, unless it was added or left out before.
  void add(int32_t c) {
    const auto k = static_cast<size_t>(c);
    if (last_row_[k] == row_) return;
    last_row_[k] = row_, score_[k] = start_[k], found_.push_back(c);
  }

  void add_all(const Rows &X) {
    const int32_t *f = X.columns_of(row_);
    const float *x = X.values_of(row_);
    for (size_t k = 0, n = X.length(row_); k < n; ++k)
      for (int64_t p = index_.offsets[f[k]]; p < index_.offsets[f[k] + 1]; ++p) {
        add(index_.columns[p]);
        score_[static_cast<size_t>(index_.columns[p])] += x[k] * index_.values[p];
      }
  }

  // The n classes with the highest scores, in order of number; the first of equal ones. -1 where there are fewer.
  void write_top(size_t n, int32_t *top) {
    const size_t n_top = std::min(n, found_.size());
    const auto better = [&](int32_t a, int32_t b) { return of(a) != of(b) ? of(a) > of(b) : a < b; };
    const auto end = found_.begin() + static_cast<int64_t>(n_top);
    std::nth_element(found_.begin(), end, found_.end(), better);
    std::sort(found_.begin(), end);
    std::copy(found_.begin(), end, top);
    std::fill(top + n_top, top + n, -1);
  }

  float of(int32_t c) const { return score_[static_cast<size_t>(c)]; }

 private:
  const Rows &index_;
  const float *start_;
  std::vector<float> score_;
  std::vector<size_t> last_row_;  // the last row that a class was added for
  std::vector<int32_t> found_;
  size_t row_ = SIZE_MAX;
};

// The positions of the largest of n numbers, rising; the first of equal ones.
class LargestPositions {
 public:
  explicit LargestPositions(size_t count) : count_(count) {}

  const std::vector<int32_t> &of(const float *numbers, size_t n) {
    // the smallest of those selected stands in front
    const auto better = [&](int32_t a, int32_t b) { return numbers[a] != numbers[b] ? numbers[a] > numbers[b] : a < b; };
    selected_.clear();
    size_t k = 0;
    for (; k < std::min(count_, n); ++k) selected_.push_back(static_cast<int32_t>(k));
    std::make_heap(selected_.begin(), selected_.end(), better);
    for (; k < n; ++k)
      if (numbers[k] > numbers[selected_.front()]) {
        std::pop_heap(selected_.begin(), selected_.end(), better);
        selected_.back() = static_cast<int32_t>(k);
        std::push_heap(selected_.begin(), selected_.end(), better);
      }
    std::sort(selected_.begin(), selected_.end());
    return selected_;
  }

 private:
  size_t count_;
  std::vector<int32_t> selected_;
};

constexpr float kNone = -std::numeric_limits<float>::infinity();

}  // namespace

void find_negative_candidates_in_place(const Rows &X, const Rows &index, const float *start, const Pattern &own,
                                       size_t n_candidates, int32_t *candidates) {
  CandidateScores found(index, start);
  for (size_t r = 0; r < X.n_rows; ++r, candidates += n_candidates) {
    found.begin(r);
    for (const int32_t *c = own.begin(r); c != own.end(r); ++c) found.leave_out(*c);
    found.add_all(X);
    found.write_top(n_candidates, candidates);
  }
}

void find_candidates_in_place(const Rows &X, const Rows &index, const float *start, size_t n_candidates, int32_t *candidates,
                              float *scores) {
  CandidateScores found(index, start);
  for (size_t r = 0; r < X.n_rows; ++r, candidates += n_candidates, scores += n_candidates) {
    found.begin(r);
    found.add_all(X);
    found.write_top(n_candidates, candidates);
    for (size_t k = 0; k < n_candidates; ++k) scores[k] = candidates[k] < 0 ? kNone : found.of(candidates[k]);
  }
}

void find_top_classes_in_place(const Rows &X, const Rows &index, const float *start, size_t n_candidates,
                               int32_t *candidates, float *scores) {
  std::vector<float> score(index.n_columns);
  LargestPositions largest(n_candidates);
  for (size_t r = 0; r < X.n_rows; ++r, candidates += n_candidates, scores += n_candidates) {
    std::copy(start, start + index.n_columns, score.begin());
    const int32_t *f = X.columns_of(r);
    const float *x = X.values_of(r);
    for (size_t k = 0, n = X.length(r); k < n; ++k)
      for (int64_t p = index.offsets[f[k]], end = index.offsets[f[k] + 1]; p < end; ++p)
        score[static_cast<size_t>(index.columns[p])] += x[k] * index.values[p];
    const auto &top = largest.of(score.data(), score.size());
    std::fill(std::copy(top.begin(), top.end(), candidates), candidates + n_candidates, -1);
    for (size_t k = 0; k < n_candidates; ++k)
      scores[k] = candidates[k] < 0 ? kNone : score[static_cast<size_t>(candidates[k])];
  }
}

}  // namespace ramify
