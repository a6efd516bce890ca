// Bindings of decisions over a forest.
#include "checks.h"
#include "decisions.h"

namespace {

template <typename T>
void smooth_trees_in_place(const In<int32_t> &parent, const In<double> &weights, const In<double> &penalties, size_t levels,
                           const InMatrix<T> &scores, const OutMatrix<T> &smoothed) {
  const size_t n_nodes = parent.size();
  check_parents(parent);
  check_size("weights", weights.size(), n_nodes, "one for each node");
  check_size("penalties", penalties.size(), n_nodes, "one for each node");
  check(levels != 1, "levels is 1; give 0 for exact smoothing, or at least 2.");
  check_shape("scores", scores, scores.shape(0), n_nodes, "documents × nodes");
  check_shape("smoothed", smoothed, scores.shape(0), n_nodes, "as scores");
  const ramify::IsotonicProblem problem{n_nodes, parent.data(), weights.data(), penalties.data(), levels};
  without_gil([&] { ramify::smooth_trees_in_place(problem, scores.data(), scores.shape(0), smoothed.data()); });
}

template <typename T>
nb::tuple minimize_h_loss(const InMatrix<T> &probabilities, const In<int32_t> &parent, const In<double> &costs,
                          const In<uint8_t> &by_sign) {
  const size_t n_nodes = parent.size();
  check_parents(parent);
  check_shape("probabilities", probabilities, probabilities.shape(0), n_nodes, "documents × nodes");
  check_size("costs", costs.size(), n_nodes, "one for each node");
  check_size("by_sign", by_sign.size(), n_nodes, "one for each node");
  return to_tuple(without_gil([&] {
    return ramify::minimize_h_loss(probabilities.data(), probabilities.shape(0), parent.data(), costs.data(),
                                   by_sign.data(), n_nodes);
  }));
}

void reallocate_probability_in_place(const OutMatrix<double> &P, const In<int32_t> &parent, const In<int32_t> &nodes,
                                     const In<double> &targets, double reserve, bool raise_ancestors) {
  check_parents(parent);
  check_shape("P", P, P.shape(0), parent.size(), "documents × nodes");
  check_size("nodes", nodes.size(), P.shape(0), "one for each document");
  check_size("targets", targets.size(), P.shape(0), "one for each document");
  check_indices("nodes", nodes, parent.size());
  without_gil([&] {
    ramify::reallocate_probability_in_place(P.data(), P.shape(0), parent.data(), parent.size(), nodes.data(), targets.data(),
                                            reserve, raise_ancestors);
  });
}

template <typename T>
void def_for(nb::module_ &m) {
  def_kernel(m, "smooth_trees_in_place", &smooth_trees_in_place<T>, "parent", "weights", "penalties", "levels", "scores",
             "smoothed");
  def_kernel(m, "minimize_h_loss", &minimize_h_loss<T>, "probabilities", "parent", "costs", "by_sign");
}

}  // namespace

void bind_decisions(nb::module_ &m) {
  def_for<float>(m);
  def_for<double>(m);
  def_kernel(m, "reallocate_probability_in_place", &reallocate_probability_in_place, "P", "parent", "nodes", "targets",
             "reserve", "raise_ancestors");
}
