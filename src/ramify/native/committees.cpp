// Scores by committees of stumps, from the root down.
#include "committees.h"

#include <algorithm>
#include <limits>

#include "dispatch.h"

namespace ramify {
namespace {

// Where a column stands among the pivots of a committee: by a table of all columns, where enough lookups pay for it.
class PivotPositions {
 public:
  PivotPositions(const Committees &all, size_t n_lookups) : pivots_(all.pivots) {
    if (pivots_.n_rows * pivots_.n_columns > 8 * n_lookups) return;
    table_.assign(pivots_.n_rows * pivots_.n_columns, -1);
    for (size_t c = 0; c < pivots_.n_rows; ++c)
      for (const int32_t *pivot = pivots_.begin(c); pivot != pivots_.end(c); ++pivot)
        table_[c * pivots_.n_columns + static_cast<size_t>(*pivot)] = static_cast<int32_t>(pivot - pivots_.begin(c));
  }

  // The position, or -1.
  int64_t of(size_t committee, int32_t column) const {
    if (!table_.empty()) return table_[committee * pivots_.n_columns + static_cast<size_t>(column)];
    const int32_t *first = pivots_.begin(committee), *end = pivots_.end(committee);
    const int32_t *found = std::lower_bound(first, end, column);
    return found != end && *found == column ? found - first : -1;
  }

 private:
  const Pattern &pivots_;
  std::vector<int32_t> table_;
};

// The scores of one committee's classes: the bias, and the sums of the pivots that the row has.
RAMIFY_WIDE_CLONES void add_votes(const Committees &all, const PivotPositions &positions, size_t committee,
                                  const int32_t *columns, size_t n_columns, double *scores) {
  const int64_t first = all.class_offsets[committee];
  const auto m = static_cast<size_t>(all.class_offsets[committee + 1] - first);
  std::copy(all.bias + first, all.bias + first + m, scores);
  const double *sums = all.sums + all.sum_offsets[committee];
  for (size_t p = 0; p < n_columns; ++p) {
    const int64_t position = positions.of(committee, columns[p]);
    if (position < 0) continue;
    const double *more = sums + static_cast<size_t>(position) * m;
    for (size_t j = 0; j < m; ++j) scores[j] += more[j];
  }
}

// Passes documents through the committees from the root down, and reports every class of every committee that one reaches.
class Cascade {
 public:
  Cascade(const Committees &all, const Pattern &X)
      : all_(all), X_(X), positions_(all, X.n_entries()), scores_(all.n_classes()) {}

  template <class Report>
  void pass(size_t r, double threshold, const Report &report) {
    queue_.assign(all_.roots, all_.roots + all_.n_roots);
    while (!queue_.empty()) {
      const auto committee = static_cast<size_t>(queue_.back());
      queue_.pop_back();
      add_votes(all_, positions_, committee, X_.begin(r), X_.length(r), scores_.data());
      for (int64_t c = all_.class_offsets[committee]; c < all_.class_offsets[committee + 1]; ++c) {
        const double score = scores_[static_cast<size_t>(c - all_.class_offsets[committee])];
        report(static_cast<size_t>(c), score);
        if (score > threshold)
          queue_.insert(queue_.end(), all_.below.begin(static_cast<size_t>(c)), all_.below.end(static_cast<size_t>(c)));
      }
    }
  }

 private:
  const Committees &all_;
  const Pattern &X_;
  const PivotPositions positions_;
  std::vector<double> scores_;
  std::vector<int32_t> queue_;
};

}  // namespace

void score_committees_in_place(const Committees &all, const Pattern &X, double threshold, float *scores) {
  Cascade cascade(all, X);
  const size_t n_classes = all.n_classes();
  std::fill(scores, scores + X.n_rows * n_classes, std::numeric_limits<float>::quiet_NaN());
  for (size_t r = 0; r < X.n_rows; ++r)
    cascade.pass(r, threshold, [&](size_t c, double score) { scores[r * n_classes + c] = static_cast<float>(score); });
}

PatternRows predict_committees(const Committees &all, const Pattern &X, const Pattern &nodes, const int32_t *always,
                               size_t n_always) {
  Cascade cascade(all, X);
  PatternRows passed;
  for (size_t r = 0; r < X.n_rows; ++r) {
    const auto first = static_cast<std::ptrdiff_t>(passed.columns.size());
    passed.columns.insert(passed.columns.end(), always, always + n_always);
    cascade.pass(r, 0, [&](size_t c, double score) {
      if (static_cast<float>(score) > 0) passed.columns.insert(passed.columns.end(), nodes.begin(c), nodes.end(c));
    });
    std::sort(passed.columns.begin() + first, passed.columns.end());
    passed.end_row();
  }
  return passed;
}

}  // namespace ramify
