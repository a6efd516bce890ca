// Scores by committees of stumps, met from the top down.
#include <cmath>
#include <limits>

#include "boosting.h"

namespace ramify {
namespace {

// Where a column stands among the pivots of a committee: by a table of all columns, where that is worth its making.
class Places {
 public:
  Places(const Committees &all, int64_t n_lookups) : all_(all) {
    if (static_cast<int64_t>(all.n_committees * all.n_columns) > 8 * n_lookups) return;
    table_.assign(all.n_committees * all.n_columns, -1);
    for (size_t c = 0; c < all.n_committees; ++c)
      for (int64_t p = all.pivot_offsets[c]; p < all.pivot_offsets[c + 1]; ++p)
        table_[c * all.n_columns + static_cast<size_t>(all.pivots[p])] = static_cast<int32_t>(p - all.pivot_offsets[c]);
  }

  // The place, or -1.
  int64_t of(size_t committee, int32_t column) const {
    if (!table_.empty()) return table_[committee * all_.n_columns + static_cast<size_t>(column)];
    const int32_t *first = all_.pivots + all_.pivot_offsets[committee], *end = all_.pivots + all_.pivot_offsets[committee + 1];
    const int32_t *found = std::lower_bound(first, end, column);
    return found != end && *found == column ? found - first : -1;
  }

 private:
  const Committees &all_;
  std::vector<int32_t> table_;
};

// The scores of one committee's classes: the bias, and what each pivot adds that the row has.
RAMIFY_WIDE_CLONES void judge(const Committees &all, const Places &places, size_t committee, const int32_t *columns,
                              size_t n_columns, double *scores) {
  const int64_t first = all.class_offsets[committee];
  const auto m = static_cast<size_t>(all.class_offsets[committee + 1] - first);
  std::copy(all.bias + first, all.bias + first + m, scores);
  const double *sums = all.sums + all.sum_offsets[committee];
  for (size_t p = 0; p < n_columns; ++p) {
    const int64_t place = places.of(committee, columns[p]);
    if (place < 0) continue;
    const double *more = sums + static_cast<size_t>(place) * m;
    for (size_t j = 0; j < m; ++j) scores[j] += more[j];
  }
}

// Goes over documents from the top down, and tells of every class of every committee that one meets.
class Walk {
 public:
  Walk(const Committees &all, const int64_t *offsets, const int32_t *columns, size_t n_rows)
      : all_(all), offsets_(offsets), columns_(columns), places_(all, offsets[n_rows] - offsets[0]), local_(all.n_classes) {}

  template <class Tell>
  void row(size_t r, double threshold, const Tell &tell) {
    waiting_.assign(all_.top, all_.top + all_.n_top);
    while (!waiting_.empty()) {
      const auto committee = static_cast<size_t>(waiting_.back());
      waiting_.pop_back();
      judge(all_, places_, committee, columns_ + offsets_[r], static_cast<size_t>(offsets_[r + 1] - offsets_[r]), local_.data());
      for (int64_t c = all_.class_offsets[committee]; c < all_.class_offsets[committee + 1]; ++c) {
        const double score = local_[static_cast<size_t>(c - all_.class_offsets[committee])];
        tell(static_cast<size_t>(c), score);
        if (score > threshold)
          waiting_.insert(waiting_.end(), all_.below + all_.below_offsets[c], all_.below + all_.below_offsets[c + 1]);
      }
    }
  }

 private:
  const Committees &all_;
  const int64_t *offsets_;
  const int32_t *columns_;
  const Places places_;
  std::vector<double> local_;
  std::vector<int32_t> waiting_;
};

}  // namespace

void score_committees_in_place(const Committees &all, const int64_t *offsets, const int32_t *columns, size_t n_rows,
                               double threshold, float *scores) {
  Walk walk(all, offsets, columns, n_rows);
  std::fill(scores, scores + n_rows * all.n_classes, std::numeric_limits<float>::quiet_NaN());
  for (size_t r = 0; r < n_rows; ++r)
    walk.row(r, threshold, [&](size_t c, double score) { scores[r * all.n_classes + c] = static_cast<float>(score); });
}

LabelRows pass_committees(const Committees &all, const int64_t *offsets, const int32_t *columns, size_t n_rows,
                          const int64_t *node_offsets, const int32_t *nodes, const int32_t *always, size_t n_always) {
  Walk walk(all, offsets, columns, n_rows);
  LabelRows passed;
  for (size_t r = 0; r < n_rows; ++r) {
    const auto first = static_cast<std::ptrdiff_t>(passed.nodes.size());
    passed.nodes.insert(passed.nodes.end(), always, always + n_always);
    walk.row(r, 0, [&](size_t c, double score) {
      if (static_cast<float>(score) > 0)
        passed.nodes.insert(passed.nodes.end(), nodes + node_offsets[c], nodes + node_offsets[c + 1]);
    });
    std::sort(passed.nodes.begin() + first, passed.nodes.end());
    passed.offsets.push_back(static_cast<int64_t>(passed.nodes.size()));
  }
  return passed;
}

}  // namespace ramify
