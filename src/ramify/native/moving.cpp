// One node of each document gets another probability, and what lies around it follows, so that sums still hold.
#include <algorithm>
#include <vector>

#include "kernels.h"

namespace ramify {
namespace {

constexpr double kNoise = 1e-12;   // of a node: what its children may differ from it by, and still add up to it
constexpr double kTiny = 1e-290;  // what is less is not multiplied, since that could be too much for a number

// The way down to one node: probabilities before and after, 1 above the roots, and what lies beside each step.
struct Way {
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

  // What nearly equal numbers differ by is noise, and nobody stays at the parent; siblings alone lie beside the node then.
  void see_siblings(double total) {
    const double staying = beside.back() - total;
    beside.back() = staying > kNoise * before[before.size() - 2] ? beside.back() : total;
  }

  // What the node can have: more leaves something to all others, less does not put it behind a sibling.
  double possible(double wanted, double next_best, double left, bool raising) const {
    const double now = before.back(), above = before[before.size() - 2], around = beside.back();
    const double lowest = around > kTiny ? std::min(next_best * above / (around + next_best), now) : now;
    const double highest = raising ? 1 - left * (1 - now) : above - left * around;
    return std::max(std::min(wanted, highest), lowest);
  }

  // The nodes above are raised where they have too little; beside each step as much is left as there is, or the least.
  void raise(double to, double left) {
    after = before;
    after.back() = to;
    for (size_t k = nodes.size() - 1; k > 0; --k)
      after[k] = std::min(std::max(before[k], after[k + 1] + left * beside[k]), 1.0);
    factors.resize(nodes.size());
    for (size_t k = 0; k < nodes.size(); ++k)
      factors[k] = beside[k] > kTiny ? std::max((after[k] - after[k + 1]) / beside[k], left) : 1.0;
  }
};

}  // namespace

void move_nodes_in_place(double *P, size_t n_rows, const int32_t *parent, size_t n_nodes, const int32_t *nodes,
                         const double *wanted, double left, bool raising) {
  Way way;
  std::vector<double> below(n_nodes);  // by node: what its children are multiplied by, unless they are on the way
  for (size_t r = 0; r < n_rows; ++r) {
    double *row = P + r * n_nodes;
    const int32_t node = nodes[r];
    if (!(row[node] > kTiny)) continue;
    way.follow(row, parent, node);
    double next_best = 0, total = 0;
    for (size_t v = 0; v < n_nodes; ++v)
      if (parent[v] == parent[node] && static_cast<int32_t>(v) != node)
        next_best = std::max(next_best, row[v]), total += row[v];
    way.see_siblings(total);
    const double to = way.possible(wanted[r], next_best, left, raising);
    if (to == row[node]) continue;
    way.raise(to, left);
    const double inside = to / row[node];
    for (size_t v = 0, k = 0; v < n_nodes; ++v) {  // parents come first, so the way is met in its order
      if (k < way.nodes.size() && static_cast<int32_t>(v) == way.nodes[k]) {
        row[v] = way.after[++k];
        below[v] = k < way.nodes.size() ? way.factors[k] : inside;
      } else {
        below[v] = parent[v] < 0 ? way.factors[0] : below[parent[v]];
        row[v] *= below[v];
        if (parent[v] >= 0) row[v] = std::min(row[v], row[parent[v]]);  // rounding may have put it above
      }
    }
  }
}

}  // namespace ramify
