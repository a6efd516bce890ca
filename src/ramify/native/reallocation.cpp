// One node of each document gets another probability; the nodes around it are rescaled so that sums still hold.
#include <algorithm>
#include <vector>

#include "decisions.h"

namespace ramify {
namespace {

constexpr double kNoise = 1e-12;   // of a node: how far the sum of its children may differ from it by rounding
constexpr double kTiny = 1e-290;  // smaller numbers are not scaled, since the factor could overflow

// The path from the root to one node: probabilities before and after, 1 above the roots, and the mass beside each step.
struct Path {
  std::vector<int32_t> nodes;
  std::vector<double> before, after, beside, factors;

  void follow(const double *row, const int32_t *parent, int32_t node) {
    nodes.clear();
    for (int32_t v = node; v >= 0; v = parent[v]) nodes.push_back(v);
    std::reverse(nodes.begin(), nodes.end());
    before.assign(1, 1.0), beside.clear();
    for (const int32_t v : nodes) {
      beside.push_back(std::max(before.back() - row[v], 0.0));
      before.push_back(row[v]);
    }
  }

  // A difference of nearly equal numbers is rounding: then nothing stays at the parent, and siblings alone lie beside the node.
  void count_siblings(double total) {
    const double own_mass = beside.back() - total;
    beside.back() = own_mass > kNoise * before[before.size() - 2] ? beside.back() : total;
  }

  // The target within its limits: above it leaves a reserve to all others, below it does not fall behind a sibling.
  double clip(double target, double next_best, double reserve, bool raise_ancestors) const {
    const double now = before.back(), above = before[before.size() - 2], around = beside.back();
    const double lowest = around > kTiny ? std::min(next_best * above / (around + next_best), now) : now;
    const double highest = raise_ancestors ? 1 - reserve * (1 - now) : above - reserve * around;
    return std::max(std::min(target, highest), lowest);
  }

  // Ancestors are raised where they have too little; beside each step the mass stays as it is, or falls to the reserve.
  void raise(double to, double reserve) {
    after = before;
    after.back() = to;
    for (size_t k = nodes.size() - 1; k > 0; --k)
      after[k] = std::min(std::max(before[k], after[k + 1] + reserve * beside[k]), 1.0);
    factors.resize(nodes.size());
    for (size_t k = 0; k < nodes.size(); ++k)
      factors[k] = beside[k] > kTiny ? std::max((after[k] - after[k + 1]) / beside[k], reserve) : 1.0;
  }
};

}  // namespace

void reallocate_probability_in_place(double *P, size_t n_rows, const int32_t *parent, size_t n_nodes, const int32_t *nodes,
                                     const double *targets, double reserve, bool raise_ancestors) {
  Path path;
  std::vector<double> below(n_nodes);  // by node: the factor of its children that are not on the path
  for (size_t r = 0; r < n_rows; ++r) {
    double *row = P + r * n_nodes;
    const int32_t node = nodes[r];
    if (!(row[node] > kTiny)) continue;
    path.follow(row, parent, node);
    double next_best = 0, total = 0;
    for (size_t v = 0; v < n_nodes; ++v)
      if (parent[v] == parent[node] && static_cast<int32_t>(v) != node)
        next_best = std::max(next_best, row[v]), total += row[v];
    path.count_siblings(total);
    const double to = path.clip(targets[r], next_best, reserve, raise_ancestors);
    if (to == row[node]) continue;
    path.raise(to, reserve);
    const double inside = to / row[node];
    for (size_t v = 0, k = 0; v < n_nodes; ++v) {  // parents come first, so the path comes in its order
      if (k < path.nodes.size() && static_cast<int32_t>(v) == path.nodes[k]) {
        row[v] = path.after[++k];
        below[v] = k < path.nodes.size() ? path.factors[k] : inside;
      } else {
        below[v] = parent[v] < 0 ? path.factors[0] : below[parent[v]];
        row[v] *= below[v];
        if (parent[v] >= 0) row[v] = std::min(row[v], row[parent[v]]);  // rounding may have put it above
      }
    }
  }
}

}  // namespace ramify
