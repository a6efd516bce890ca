// Regularized isotonic regression on trees, exact, by dynamic programming over the values that an optimum can take.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <unordered_set>

#include "decisions.h"
#include "dispatch.h"
#include "memory.h"

namespace ramify {
namespace {

// Documents side by side: every step below is the same for all of them.
constexpr size_t kLanes = 4;
typedef double Lanes __attribute__((vector_size(kLanes * sizeof(double))));
typedef int64_t Mask __attribute__((vector_size(kLanes * sizeof(int64_t))));
typedef int64_t HalfMask __attribute__((vector_size(kLanes / 2 * sizeof(int64_t))));

// Of a node, for every value i that its parent may take, how the optimum was reached: one byte per document.
using Backpointers = uint32_t;
constexpr int64_t kIsBest = 1;     // of the values up to i, the node's own cost is the least so far at i
constexpr int64_t kIsNearest = 2;  // the same with the penalty for lying below the parent added
constexpr int64_t kLeads = 4;      // of the children up to this one, it is the cheapest to be the largest child

// the flag of every document in its byte
constexpr Mask kAreBest = {kIsBest, kIsBest << 8, kIsBest << 16, kIsBest << 24};
constexpr Mask kAreNearest = {kIsNearest, kIsNearest << 8, kIsNearest << 16, kIsNearest << 24};
constexpr Mask kAreLeading = {kLeads, kLeads << 8, kLeads << 16, kLeads << 24};

using LaneRow = Large<Lanes>;

// Costs of the children of one node, for every value that it may take: all of them at their best, and what it costs on top
// that one of them is the largest.
struct Below {
  LaneRow sum, extra;

  void clear(size_t m) {
    constexpr double kInfinite = std::numeric_limits<double>::infinity();
    sum.assign(m, Lanes{}), extra.assign(m, Lanes{kInfinite, kInfinite, kInfinite, kInfinite});
  }
};

struct Child {
  const Lanes &score, &weight;
  const Below *below;  // null for a leaf
  double penalty;      // of the parent
};

// Adds one child to the costs of its parent: one pass over the values.
template <bool kIsLeaf, bool kIsStrict>
__attribute__((always_inline)) inline void fold(const Lanes *values, size_t m, const Child &child, Lanes *sum, Lanes *extra,
                                                Backpointers *backpointers) {
  const Lanes *below_sum = kIsLeaf ? nullptr : child.below->sum.data();
  const Lanes *below_extra = kIsLeaf ? nullptr : child.below->extra.data();
  const Lanes score = child.score, weight = child.weight;
  const double penalty = child.penalty;
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  constexpr int64_t kWithoutSign = std::numeric_limits<int64_t>::max();
  Lanes best = {kInfinite, kInfinite, kInfinite, kInfinite}, nearest = best;
  for (size_t i = 0; i < m; ++i) {
    const Lanes away = score - values[i];
    Lanes cost = weight * (Lanes)((Mask)away & kWithoutSign);
    if constexpr (!kIsLeaf) cost += below_sum[i] + below_extra[i];
    const Mask is_best = cost < best;
    best = cost < best ? cost : best;
    Mask is_nearest = {-1, -1, -1, -1};
    Lanes more;
    if constexpr (kIsStrict) {
      more = cost - best;
    } else {
      // the nearest so far falls further below the parent with every value, and pays for it
      nearest += penalty * (values[i] - values[i > 0 ? i - 1 : 0]);
      is_nearest = cost < nearest;
      nearest = cost < nearest ? cost : nearest;
      more = nearest - best;
    }
    const Lanes before = extra[i];
    const Mask leads = more < before;
    extra[i] = more < before ? more : before;
    sum[i] += best;
    const Mask flags = (is_best & kAreBest) | (is_nearest & kAreNearest) |
                       (leads & kAreLeading);
    const HalfMask joined = __builtin_shufflevector(flags, flags, 0, 1) | __builtin_shufflevector(flags, flags, 2, 3);
    backpointers[i] = static_cast<Backpointers>(joined[0] | joined[1]);
  }
}

RAMIFY_WIDE_CLONES void fold_leaf(const Lanes *values, size_t m, const Child &child, Lanes *sum, Lanes *extra,
                                  Backpointers *backpointers) {
  fold<true, false>(values, m, child, sum, extra, backpointers);
}
RAMIFY_WIDE_CLONES void fold_leaf_strictly(const Lanes *values, size_t m, const Child &child, Lanes *sum, Lanes *extra,
                                           Backpointers *backpointers) {
  fold<true, true>(values, m, child, sum, extra, backpointers);
}
RAMIFY_WIDE_CLONES void fold_inner(const Lanes *values, size_t m, const Child &child, Lanes *sum, Lanes *extra,
                                   Backpointers *backpointers) {
  fold<false, false>(values, m, child, sum, extra, backpointers);
}
RAMIFY_WIDE_CLONES void fold_inner_strictly(const Lanes *values, size_t m, const Child &child, Lanes *sum, Lanes *extra,
                                            Backpointers *backpointers) {
  fold<false, true>(values, m, child, sum, extra, backpointers);
}

void fold_child(const Lanes *values, size_t m, const Child &child, Below &above, Backpointers *backpointers) {
  const bool is_strict = std::isinf(child.penalty);
  const auto step = child.below ? (is_strict ? fold_inner_strictly : fold_inner) : (is_strict ? fold_leaf_strictly : fold_leaf);
  step(values, m, child, above.sum.data(), above.extra.data(), backpointers);
}

// The nodes of every tree, children before parents and subtrees unbroken; trees one after the other, each root last.
std::vector<int32_t> in_postorder(const int32_t *parent, size_t n) {
  std::vector<int32_t> size(n, 1), place(n), order(n);
  for (size_t v = n; v-- > 0;)
    if (parent[v] >= 0) size[parent[v]] += size[v];
  // parents come first, so the range of a parent is fixed before its children take their parts of it
  std::vector<int32_t> next(n);
  int32_t roots = 0;
  for (size_t v = 0; v < n; ++v) {
    int32_t &start = parent[v] < 0 ? roots : next[parent[v]];
    next[v] = start;
    start += size[v];
    place[v] = next[v] + size[v] - 1;
    order[place[v]] = static_cast<int32_t>(v);
  }
  return order;
}

// Whether there are more than `most` distinct values; mostly certain after a few of them.
bool has_more_than(size_t most, const std::vector<double> &values) {
  if (values.size() <= most) return false;
  std::unordered_set<double> found;
  for (double value : values)
    if (found.insert(value).second && found.size() > most) return true;
  return false;
}

// One tree for kLanes documents at a time.
class Smoother {
 public:
  Smoother(const IsotonicProblem &problem, const int32_t *nodes, size_t n_nodes)
      : problem_(problem), nodes_(nodes), n_(n_nodes), place_(problem.n_nodes) {
    for (size_t k = 0; k < n_; ++k) place_[nodes_[k]] = static_cast<int32_t>(k);
    scores_.resize(n_), weights_.resize(n_), below_.assign(n_, nullptr);
  }

  template <typename T>
  void smooth(const T *const *rows, T *const *smoothed, size_t n_documents) {
    read(rows, n_documents);
    backpointers_.resize(n_ * m_);
    for (size_t k = 0; k < n_; ++k) add_to_parent(k);
    for (size_t lane = 0; lane < n_documents; ++lane) write(lane, smoothed[lane]);
  }

 private:
  // Scores, weights and the values to choose from; a node without a score weighs nothing.
  template <typename T>
  void read(const T *const *rows, size_t n_documents) {
    m_ = 1;
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const T *row = rows[std::min(lane, n_documents - 1)];
      std::vector<double> &values = distinct_[lane];
      values.clear();
      for (size_t k = 0; k < n_; ++k) {
        const double score = static_cast<double>(row[nodes_[k]]), weight = problem_.weights[nodes_[k]];
        const bool counts = weight > 0 && !std::isnan(score);
        scores_[k][lane] = counts ? score : 0;
        weights_[k][lane] = counts ? weight : 0;
        if (counts) values.push_back(score);
      }
      has_score_[lane] = !values.empty();
      if (values.empty()) values.push_back(0);
      if (problem_.levels && has_more_than(problem_.levels, values)) {
        round(lane);
      } else {
        std::sort(values.begin(), values.end());
        values.erase(std::unique(values.begin(), values.end()), values.end());
      }
      m_ = std::max(m_, values.size());
    }
    values_.resize(m_);
    for (size_t lane = 0; lane < kLanes; ++lane)
      // a value that is there twice changes nothing: the first of equal ones is used
      for (size_t i = 0; i < m_; ++i) values_[i][lane] = distinct_[lane][std::min(i, distinct_[lane].size() - 1)];
  }

  // Equally spaced values from the lowest to the highest score, and every score at the nearest of them.
  void round(size_t lane) {
    std::vector<double> &values = distinct_[lane];
    const auto [lowest, highest] = std::minmax_element(values.begin(), values.end());
    const double low = *lowest, step = (*highest - low) / static_cast<double>(problem_.levels - 1);
    values.resize(problem_.levels);
    for (size_t i = 0; i < problem_.levels; ++i) values[i] = low + step * static_cast<double>(i);
    for (size_t k = 0; k < n_; ++k) {
      if (weights_[k][lane] == 0) continue;
      const size_t at = step > 0 ? static_cast<size_t>((scores_[k][lane] - low) / step + 0.5) : 0;
      scores_[k][lane] = values[std::min(at, problem_.levels - 1)];
    }
  }

  void add_to_parent(size_t k) {
    const int32_t above = problem_.parent[nodes_[k]];
    Below *own = below_[k];
    Below *&sums = above < 0 ? above_root_ : below_[place_[above]];
    if (!sums) sums = acquire();
    const double penalty = above < 0 ? 0 : problem_.penalties[above];
    fold_child(values_.data(), m_, {scores_[k], weights_[k], own, penalty}, *sums, &backpointers_[k * m_]);
    release(below_[k]);
    if (above < 0) release(above_root_);  // nothing above a root needs it
  }

  Below *acquire() {
    if (spare_.empty()) {
      tables_.emplace_back(new Below);
      spare_.push_back(tables_.back().get());
    }
    Below *table = spare_.back();
    spare_.pop_back();
    table->clear(m_);
    return table;
  }

  void release(Below *&table) {
    if (table) spare_.push_back(table);
    table = nullptr;
  }

  // From the root down: a node gets its best value that is no higher than its parent's; the largest child, its nearest.
  template <typename T>
  void write(size_t lane, T *row) {
    taken_.assign(n_, 0), is_led_.assign(n_, false);
    for (size_t k = n_; k-- > 0;) {
      const int32_t node = nodes_[k], above = problem_.parent[node];
      const Backpointers *backpointers = &backpointers_[k * m_];
      size_t i = m_ - 1;
      Backpointers flag = kIsBest << (8 * lane);
      if (above >= 0) {
        const size_t place = place_[above];
        i = taken_[place];
        // children come in reverse, and the last one that leads is the cheapest to be the largest child
        if (!is_led_[place] && (backpointers[i] & kLeads << (8 * lane))) is_led_[place] = true, flag = kIsNearest << (8 * lane);
      }
      while (i > 0 && !(backpointers[i] & flag)) --i;
      taken_[k] = i;
      row[node] = has_score_[lane] ? static_cast<T>(values_[i][lane]) : std::numeric_limits<T>::quiet_NaN();
    }
  }

  const IsotonicProblem &problem_;
  const int32_t *nodes_;
  const size_t n_;
  size_t m_ = 0;
  std::vector<int32_t> place_;
  LaneRow scores_, weights_, values_;
  std::vector<double> distinct_[kLanes];
  bool has_score_[kLanes];
  Large<Backpointers> backpointers_;
  std::vector<Below *> below_, spare_;
  std::vector<std::unique_ptr<Below>> tables_;
  Below *above_root_ = nullptr;
  std::vector<size_t> taken_;
  std::vector<bool> is_led_;
};

}  // namespace

template <typename T>
void smooth_trees_in_place(const IsotonicProblem &problem, const T *scores, size_t n_documents, T *smoothed) {
  const size_t n = problem.n_nodes;
  const std::vector<int32_t> order = in_postorder(problem.parent, n);
  const T *rows[kLanes];
  T *results[kLanes];
  for (size_t start = 0, k = 0; k < n; ++k) {
    if (problem.parent[order[k]] >= 0) continue;
    Smoother tree(problem, order.data() + start, k + 1 - start);
    for (size_t first = 0; first < n_documents; first += kLanes) {
      const size_t some = std::min(kLanes, n_documents - first);
      for (size_t lane = 0; lane < some; ++lane)
        rows[lane] = scores + (first + lane) * n, results[lane] = smoothed + (first + lane) * n;
      tree.smooth(rows, results, some);
    }
    start = k + 1;
  }
}

template void smooth_trees_in_place(const IsotonicProblem &, const float *, size_t, float *);
template void smooth_trees_in_place(const IsotonicProblem &, const double *, size_t, double *);

}  // namespace ramify
