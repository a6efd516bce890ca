// Bindings of linear models: scoring, dual ascent, screening and candidates.
#include "linear.h"

#include <nanobind/stl/string_view.h>

#include <algorithm>

#include "checks.h"
#include "scoring.h"

namespace {

using ramify::ActiveSet;
using ramify::ClassVectors;
using ramify::Documents;
using ramify::FoldLanes;
using ramify::LossKind;
using ramify::Pairs;
using ramify::Pattern;
using ramify::Rows;
using ramify::SiblingProducts;
using ramify::SparseVectors;
using ramify::TreePartition;

// ---- structs --------------------------------------------------------------------------------------------------------

Documents make_documents(const Held<Rows> &rows, const In<float> &squared_norms) {
  check_size("squared_norms", squared_norms.size(), rows.n_rows, "one for each document");
  return {rows, squared_norms.data()};
}

Pairs make_pairs(const In<int64_t> &offsets, const In<int32_t> &documents, const In<int64_t> &n_positive,
                 const In<float> &cost_positive, const In<float> &cost_negative, const Out<float> &alphas,
                 size_t n_documents) {
  const size_t n_classes = n_positive.size();
  check_size("offsets", offsets.size(), n_classes + 1, "one more than there are classes");
  check_offsets("offsets", offsets.data(), offsets.size(), documents.size());
  check_indices("documents", documents, n_documents);
  bool fits = true;
  for (size_t k = 0; k < n_classes; ++k)
    fits &= n_positive.data()[k] >= 0 && n_positive.data()[k] <= offsets.data()[k + 1] - offsets.data()[k];
  check(fits, "n_positive is negative or above the number of pairs; give how many pairs of each class are positive.");
  check_size("cost_positive", cost_positive.size(), n_classes, "one for each class");
  check_size("cost_negative", cost_negative.size(), n_classes, "one for each class");
  check_size("alphas", alphas.size(), documents.size(), "one for each pair");
  return {n_classes,         n_documents,          offsets.data(),       documents.data(),
          n_positive.data(), cost_positive.data(), cost_negative.data(), alphas.data()};
}

FoldLanes make_fold_lanes(const In<uint8_t> &folds, const In<float> &costs, const In<int32_t> &place_of,
                          const In<uint8_t> &fold_of) {
  check_size("folds", folds.size(), ramify::kLanes, "one for each lane");
  check_size("costs", costs.size(), ramify::kLanes, "one for each lane");
  check_indices("place_of", place_of.data(), place_of.size(), -1, static_cast<int64_t>(fold_of.size()));
  size_t n_lanes[256] = {0};  // by fold
  bool is_positive = true;
  for (size_t k = 0; k < ramify::kLanes; ++k) is_positive &= costs.data()[k] > 0, ++n_lanes[folds.data()[k]];
  check(is_positive, "costs holds a number that is not above 0; give positive factors.");
  return {folds.data(),   costs.data(),   place_of.data(), place_of.size(),
          fold_of.data(), fold_of.size(), *std::max_element(n_lanes, n_lanes + 256)};
}

SparseVectors make_sparse_vectors(const In<int64_t> &start, const In<int64_t> &end, const In<int32_t> &features,
                                  const Out<float> &values, size_t n_features) {
  check_size("end", end.size(), start.size(), "as many as start");
  check_size("values", values.size(), features.size(), "one for each feature");
  check_indices("features", features, n_features);
  bool fits = true;
  for (size_t k = 0; k < start.size(); ++k)
    fits &= start.data()[k] >= 0 && start.data()[k] <= end.data()[k] && end.data()[k] <= static_cast<int64_t>(values.size());
  check(fits, "a vector starts behind its end or outside of values; give 0 ≤ start ≤ end ≤ number of values.");
  return {start.data(), end.data(), features.data(), values.data(), start.size(), n_features};
}

ClassVectors make_class_vectors(size_t first, const In<int64_t> &offsets, const In<int32_t> &features,
                                const Out<float> &values, size_t n_features) {
  check_offsets("offsets", offsets.data(), offsets.size(), values.size());
  check_size("values", values.size(), features.size(), "one for each feature");
  check_indices("features", features, n_features);
  return {{offsets.data(), offsets.data() + 1, features.data(), values.data(), offsets.size() - 1, n_features, first}};
}

TreePartition make_tree_partition(const In<int32_t> &parent, const In<int32_t> &class_of, const In<float> &n_partitions,
                                  const In<uint8_t> &is_visited, const Held<Pattern> &joins) {
  const size_t n_units = parent.size();
  check_parents(parent);
  check_size("class_of", class_of.size(), n_units, "one for each unit");
  check_indices("class_of", class_of.data(), n_units, -1, static_cast<int64_t>(n_units));
  check_size("n_partitions", n_partitions.size(), n_units, "one for each unit");
  check_size("is_visited", is_visited.size(), n_units, "one for each unit");
  check_size("joins", joins.n_rows, n_units, "one row for each unit");
  check_size("joins", joins.n_columns, n_units, "one column for each unit");
  int32_t last = -1;
  for (size_t unit = 0; unit < n_units; ++unit) last = std::max(last, class_of.data()[unit]);
  return {n_units,         static_cast<size_t>(last + 1), parent.data(), class_of.data(), n_partitions.data(),
          is_visited.data(), joins};
}

// The products of every group fit between its offsets.
bool has_squares(const Pattern &documents, const In<int64_t> &offsets) {
  bool fits = true;
  for (size_t unit = 0; unit < documents.n_rows; ++unit)
    fits &= offsets.data()[unit + 1] - offsets.data()[unit] == static_cast<int64_t>(documents.length(unit) * documents.length(unit));
  return fits;
}

constexpr const char *kNoSquares = "offsets does not fit; give the square of the number of a unit's documents for each unit.";

SiblingProducts make_sibling_products(const Held<Pattern> &documents, const In<int64_t> &offsets, const In<float> &products) {
  check_size("offsets", offsets.size(), documents.n_rows + 1, "one more than there are units");
  check_offsets("offsets", offsets.data(), offsets.size(), products.size());
  check(has_squares(documents, offsets), kNoSquares);
  return {documents, offsets.data(), products.data()};
}

ActiveSet make_active_set(const Out<uint8_t> &is_active, const Out<float> &slack) {
  return {is_active.data(), slack.data(), is_active.size(), slack.size()};
}

// ---- checks that several kernels need -------------------------------------------------------------------------------

LossKind find_loss(std::string_view name) {
  return find_option<LossKind>("loss", name, {{"hinge", LossKind::hinge},
                                              {"squared_hinge", LossKind::squared_hinge},
                                              {"logistic", LossKind::logistic}});
}

void check_pairs(const Pairs &pairs, const Rows &X) {
  check_size("pairs", pairs.n_documents, X.n_rows, "the number of documents");
}

void check_ancestors(const Pattern &ancestors, const SparseVectors &deltas, const Pairs &pairs, const Rows &X) {
  check_size("ancestors", ancestors.n_rows, pairs.n_classes, "one row for each class");
  check_size("ancestors", ancestors.n_columns, deltas.n_vectors, "one column for each unit");
  check_size("deltas", deltas.n_features, X.n_columns, "the number of features");
}

void check_tree(const TreePartition &tree, const Pairs &pairs) {
  if (tree.n_classes > pairs.n_classes)
    refuse("class_of holds " + std::to_string(tree.n_classes - 1) + ", but pairs has only " + std::to_string(pairs.n_classes) +
           " classes.");
}

void check_deltas(const SparseVectors &deltas, const TreePartition &tree, const Rows &X) {
  check_size("deltas", deltas.n_vectors, tree.n_units, "one vector for each unit");
  check_size("deltas", deltas.n_features, X.n_columns, "the number of features");
}

void check_class_vectors(const ClassVectors &vectors, const TreePartition &tree, const Rows &X) {
  check_size("class_vectors", vectors.n_features, X.n_columns, "the number of features");
  bool fits = true;
  for (size_t unit = 0; unit < tree.n_units; ++unit) {
    if (!tree.is_visited[unit] || tree.class_of[unit] < 0) continue;
    const auto k = static_cast<size_t>(tree.class_of[unit]);
    fits &= k >= vectors.first && k - vectors.first < vectors.n_vectors;
  }
  check(fits, "class_vectors lacks a class that is visited; give the vectors of all classes of the partition, or None.");
}

nb::tuple to_tuple(ramify::VectorList &&result) {
  return nb::make_tuple(to_numpy(std::move(result.units)), to_numpy(std::move(result.ends)),
                        to_numpy(std::move(result.features)), to_numpy(std::move(result.values)));
}

// ---- scoring --------------------------------------------------------------------------------------------------------

void score_rows_in_place(const Held<Rows> &X, const InMatrix<float> &weights, const In<double> &bias,
                         const OutMatrix<double> &scores) {
  check_shape("weights", weights, X.n_columns, bias.size(), "features × classes");
  check_shape("scores", scores, X.n_rows, bias.size(), "documents × classes");
  without_gil([&] { ramify::score_rows_in_place(X, weights.data(), bias.data(), bias.size(), scores.data()); });
}

void score_units_in_place(const Held<Rows> &X, const Held<Rows> &weights, const In<int32_t> &parent, const In<double> &bias,
                          const OutMatrix<double> &scores) {
  const size_t n_units = parent.size();
  check_parents(parent);
  check_size("weights", weights.n_rows, X.n_columns, "one row for each feature");
  check_size("weights", weights.n_columns, n_units, "one column for each unit");
  check_size("bias", bias.size(), n_units, "one for each unit");
  check_shape("scores", scores, X.n_rows, n_units, "documents × units");
  without_gil([&] { ramify::score_units_in_place(X, weights, parent.data(), bias.data(), n_units, scores.data()); });
}

// ---- one class at a time --------------------------------------------------------------------------------------------

void solve_classes_in_place(const Held<Documents> &X, const Held<Pairs> &pairs, const In<float> &document_weights,
                            const Held<Pattern> &ancestors, const Held<SparseVectors> &deltas, const In<int32_t> &classes,
                            std::string_view loss, double tolerance, size_t max_passes, uint64_t seed,
                            const OutMatrix<double> &certificates) {
  const LossKind kind = find_loss(loss);
  check_pairs(pairs, X);
  check_ancestors(ancestors, deltas, pairs, X);
  check_size("document_weights", document_weights.size(), X.n_rows, "one for each document");
  check_indices("classes", classes, pairs.n_classes);
  check_shape("certificates", certificates, pairs.n_classes, 4, "primal, dual, scale and passes of each class");
  static_assert(sizeof(ramify::Certificate) == 4 * sizeof(double), "a certificate is a row of four numbers");
  without_gil([&] {
    ramify::solve_classes_in_place(X, kind, pairs, document_weights.data(), {ancestors, deltas}, classes.data(),
                                   classes.size(), {tolerance, max_passes, seed},
                                   reinterpret_cast<ramify::Certificate *>(certificates.data()));
  });
}

void cross_fit_classes_in_place(const Held<Documents> &X, const Held<Rows> &held_out, const Held<Pairs> &pairs,
                                const In<float> &document_weights, const Held<FoldLanes> &lanes, const In<int32_t> &classes,
                                std::string_view loss, double tolerance, size_t max_passes, uint64_t seed,
                                const OutMatrix<float> &scores) {
  const LossKind kind = find_loss(loss);
  check_pairs(pairs, X);
  check_size("held_out", held_out.n_columns, X.n_columns, "the number of features");
  check_size("held_out", held_out.n_rows, lanes.n_held_out, "the number of documents with a fold");
  check_size("document_weights", document_weights.size(), X.n_rows, "one for each document");
  check_size("lanes", lanes.n_documents, X.n_rows, "one place for each document");
  check_indices("classes", classes, pairs.n_classes);
  const auto n_pairs = static_cast<size_t>(pairs.offsets[pairs.n_classes]);
  check_shape("scores", scores, n_pairs, lanes.n_scores, "pairs × lanes of a fold");
  without_gil([&] {
    ramify::cross_fit_classes_in_place(X, held_out, kind, pairs, document_weights.data(), lanes, classes.data(), classes.size(),
                                       {tolerance, max_passes, seed}, scores.data());
  });
}

nb::tuple assemble_class_weights_in_place(const Held<Documents> &X, const Held<Pairs> &pairs, const In<double> &scale,
                                          const In<int32_t> &positions, float threshold, size_t first, size_t last,
                                          const Out<double> &bias) {
  check_pairs(pairs, X);
  check_size("scale", scale.size(), pairs.n_classes, "one for each class");
  check_indices("positions", positions, X.n_columns);
  check_class_range(first, last, pairs.n_classes);
  check_size("bias", bias.size(), pairs.n_classes, "one for each class");
  ramify::VectorList result;
  without_gil([&] {
    ramify::assemble_class_weights_in_place(X, pairs, scale.data(), {positions.data(), positions.size()}, threshold, first,
                                            last, bias.data(), result);
  });
  return to_tuple(std::move(result));
}

nb::tuple reorder_features_in_place(const Held<SparseVectors> &vectors, const In<int32_t> &units,
                                    const In<int32_t> &positions, const Out<double> &bias) {
  check_indices("units", units, vectors.n_vectors);
  check_indices("positions", positions, vectors.n_features);
  check_size("bias", bias.size(), vectors.n_vectors, "one for each unit");
  ramify::VectorList result;
  without_gil([&] {
    ramify::reorder_features_in_place(vectors, units.data(), units.size(), {positions.data(), positions.size()}, bias.data(),
                                      result);
  });
  return to_tuple(std::move(result));
}

nb::tuple sum_class_vectors(const Held<Documents> &X, const Held<Pairs> &pairs, size_t first, size_t last) {
  check_pairs(pairs, X);
  check_class_range(first, last, pairs.n_classes);
  ramify::VectorList result;
  result.ends.push_back(0);
  without_gil([&] { ramify::sum_class_vectors(X, pairs, first, last, result); });
  return nb::make_tuple(to_numpy(std::move(result.ends)), to_numpy(std::move(result.features)),
                        to_numpy(std::move(result.values)));
}

// ---- all classes of a tree ------------------------------------------------------------------------------------------

nb::tuple update_tree_duals_in_place(const Held<Documents> &X, const Held<TreePartition> &tree,
                                     const Held<SparseVectors> &deltas, const Held<Pairs> &pairs,
                                     const Held<ClassVectors> *class_vectors, const In<float> &document_weights,
                                     const Held<SiblingProducts> &siblings, const Held<ActiveSet> &active,
                                     std::string_view loss, size_t sibling_passes, size_t class_passes, uint64_t seed) {
  const LossKind kind = find_loss(loss);
  check_pairs(pairs, X);
  check_tree(tree, pairs);
  check_deltas(deltas, tree, X);
  if (class_vectors) check_class_vectors(*class_vectors, tree, X);
  check_size("document_weights", document_weights.size(), X.n_rows, "one for each document");
  check_size("siblings", siblings.documents.n_rows, tree.n_units, "one row for each unit");
  check_size("siblings", siblings.documents.n_columns, X.n_rows, "one column for each document");
  check(active.n_pairs >= static_cast<size_t>(pairs.offsets[pairs.n_classes]), "is_active is too short; give one flag for each pair.");
  check_size("slack", active.n_classes, pairs.n_classes, "one for each class");
  ramify::VectorList result;
  without_gil([&] {
    ramify::update_tree_duals_in_place(X, kind, tree, deltas, pairs, class_vectors, document_weights.data(), siblings, active,
                                       {sibling_passes, class_passes, seed}, result);
  });
  return to_tuple(std::move(result));
}

nb::tuple list_tree_features(const Held<Documents> &X, const Held<TreePartition> &tree, const Held<Pairs> &pairs,
                             const In<uint8_t> &is_listed) {
  check_pairs(pairs, X);
  check_tree(tree, pairs);
  check_size("is_listed", is_listed.size(), tree.n_units, "one for each unit");
  ramify::VectorList result;
  without_gil([&] { ramify::list_tree_features(X, tree, pairs, is_listed.data(), result); });
  return nb::make_tuple(to_numpy(std::move(result.units)), to_numpy(std::move(result.ends)),
                        to_numpy(std::move(result.features)));
}

nb::tuple assemble_tree_deltas_in_place(const Held<Documents> &X, const Held<TreePartition> &tree,
                                        const Held<SparseVectors> &deltas, const Held<Pairs> &pairs) {
  check_pairs(pairs, X);
  check_tree(tree, pairs);
  check_deltas(deltas, tree, X);
  ramify::VectorList result;
  without_gil([&] { ramify::assemble_tree_deltas_in_place(X, tree, deltas, pairs, result); });
  return to_tuple(std::move(result));
}

void multiply_siblings_in_place(const Held<Documents> &X, const Held<Pattern> &documents, const In<int64_t> &offsets,
                                size_t first, size_t last, const Out<float> &products) {
  check_size("documents", documents.n_columns, X.n_rows, "one column for each document");
  check_size("offsets", offsets.size(), documents.n_rows + 1, "one more than there are units");
  check_offsets("offsets", offsets.data(), offsets.size(), products.size());
  check(has_squares(documents, offsets), kNoSquares);
  check_class_range(first, last, documents.n_rows);
  without_gil([&] { ramify::multiply_siblings_in_place(X, documents, offsets.data(), first, last, products.data()); });
}

// ---- screening and candidates ---------------------------------------------------------------------------------------

nb::tuple screen_classes_in_place(const Held<Documents> &X, const Held<Pairs> &pairs, const In<float> &document_weights,
                                  const Held<Pattern> &ancestors, const Held<SparseVectors> &deltas, const In<double> &scale,
                                  const In<int32_t> &classes, std::string_view loss, float threshold, bool exact,
                                  size_t max_pairs, const Out<double> &losses) {
  const LossKind kind = find_loss(loss);
  check_pairs(pairs, X);
  check_ancestors(ancestors, deltas, pairs, X);
  check_size("document_weights", document_weights.size(), X.n_rows, "one for each document");
  check_size("scale", scale.size(), pairs.n_classes, "one for each class");
  check_indices("classes", classes, pairs.n_classes);
  check(max_pairs > 0, "max_pairs is 0; give at least 1.");
  check_size("losses", losses.size(), pairs.n_classes, "one for each class");
  ramify::FoundPairs found;
  without_gil([&] {
    ramify::screen_classes_in_place(X, kind, pairs, document_weights.data(), {ancestors, deltas}, scale.data(),
                                    classes.data(), classes.size(), {threshold, exact, max_pairs}, losses.data(), found);
  });
  return nb::make_tuple(to_numpy(std::move(found.rows)), to_numpy(std::move(found.classes)));
}

void check_index(const Rows &index, const In<float> &start, const Rows &X) {
  check_size("index", index.n_rows, X.n_columns, "one row for each feature");
  check_size("start", start.size(), index.n_columns, "one for each class");
}

void find_negative_candidates_in_place(const Held<Rows> &X, const Held<Rows> &index, const In<float> &start,
                                       const Held<Pattern> &own, const OutMatrix<int32_t> &candidates) {
  check_index(index, start, X);
  check_size("own", own.n_rows, X.n_rows, "one row for each document");
  check_size("own", own.n_columns, index.n_columns, "one column for each class");
  check_shape("candidates", candidates, X.n_rows, candidates.shape(1), "one row for each document");
  without_gil([&] {
    ramify::find_negative_candidates_in_place(X, index, start.data(), own, candidates.shape(1), candidates.data());
  });
}

using FindCandidates = void (*)(const Rows &, const Rows &, const float *, size_t, int32_t *, float *);

template <FindCandidates kernel>
void find_with_scores(const Held<Rows> &X, const Held<Rows> &index, const In<float> &start,
                      const OutMatrix<int32_t> &candidates, const OutMatrix<float> &scores) {
  check_index(index, start, X);
  check_shape("candidates", candidates, X.n_rows, candidates.shape(1), "one row for each document");
  check_shape("scores", scores, X.n_rows, candidates.shape(1), "as candidates");
  without_gil([&] { kernel(X, index, start.data(), candidates.shape(1), candidates.data(), scores.data()); });
}

void score_candidates_in_place(const Held<Rows> &X, const Held<Rows> &deltas, const In<double> &bias,
                               const Held<Pattern> &paths, const InMatrix<int32_t> &candidates,
                               const OutMatrix<float> &scores) {
  check_size("deltas", deltas.n_columns, X.n_columns, "one column for each feature");
  check_size("bias", bias.size(), deltas.n_rows, "one for each unit");
  check_size("paths", paths.n_columns, deltas.n_rows, "one column for each unit");
  check_shape("candidates", candidates, X.n_rows, candidates.shape(1), "one row for each document");
  check_indices("candidates", candidates.data(), candidates.size(), -1, static_cast<int64_t>(paths.n_rows));
  check_shape("scores", scores, X.n_rows, candidates.shape(1), "as candidates");
  without_gil([&] {
    ramify::score_candidates_in_place(X, deltas, bias.data(), paths, candidates.data(), candidates.shape(1), scores.data());
  });
}

void def_structs(nb::module_ &m) {
  def_struct(m, "Documents", "Documents × features, and the squared norm of each document.", &make_documents, "rows",
             "squared_norms");
  def_struct(m, "Pairs",
             "The pairs of documents and classes, class by class, positives first; the dual variables alphas are written to.",
             &make_pairs, "offsets", "documents", "n_positive", "cost_positive", "cost_negative", "alphas", "n_documents");
  def_struct(m, "FoldLanes", "By lane a fold and a factor of the costs; the row of every document that is held out, and its fold.",
             &make_fold_lanes, "folds", "costs", "place_of", "fold_of");
  def_struct(m, "SparseVectors", "One sparse vector for each unit, from start to end; values may be written to.",
             &make_sparse_vectors, "start", "end", "features", "values", "n_features");
  def_struct(m, "ClassVectors", "One sparse vector for each class from `first` on; values are written to.",
             &make_class_vectors, "first", "offsets", "features", "values", "n_features");
  def_struct(m, "TreePartition", "A forest of units in preorder, and the units of one partition of its classes.",
             &make_tree_partition, "parent", "class_of", "n_partitions", "is_visited", "joins");
  def_struct(m, "SiblingProducts", "Documents of sibling classes (units × documents), and their products with each other.",
             &make_sibling_products, "documents", "offsets", "products");
  def_struct(m, "ActiveSet", "A flag for each pair, and the slack of each class; both are written to.", &make_active_set,
             "is_active", "slack");
}

}  // namespace

void bind_linear(nb::module_ &m) {
  def_structs(m);
  def_kernel(m, "score_rows_in_place", &score_rows_in_place, "X", "weights", "bias", "scores");
  def_kernel(m, "score_units_in_place", &score_units_in_place, "X", "weights", "parent", "bias", "scores");
  def_kernel(m, "solve_classes_in_place", &solve_classes_in_place, "X", "pairs", "document_weights", "ancestors", "deltas",
             "classes", "loss", "tolerance", "max_passes", "seed", "certificates");
  m.attr("LANES") = ramify::kLanes;
  def_kernel(m, "cross_fit_classes_in_place", &cross_fit_classes_in_place, "X", "held_out", "pairs", "document_weights",
             "lanes", "classes", "loss", "tolerance", "max_passes", "seed", "scores");
  def_kernel(m, "assemble_class_weights_in_place", &assemble_class_weights_in_place, "X", "pairs", "scale", "positions",
             "threshold", "first", "last", "bias");
  def_kernel(m, "reorder_features_in_place", &reorder_features_in_place, "vectors", "units", "positions", "bias");
  def_kernel(m, "sum_class_vectors", &sum_class_vectors, "X", "pairs", "first", "last");
  def_kernel(m, "update_tree_duals_in_place", &update_tree_duals_in_place, "X", "tree", "deltas", "pairs", "class_vectors",
             "document_weights", "siblings", "active", "loss", "sibling_passes", "class_passes", "seed");
  def_kernel(m, "list_tree_features", &list_tree_features, "X", "tree", "pairs", "is_listed");
  def_kernel(m, "assemble_tree_deltas_in_place", &assemble_tree_deltas_in_place, "X", "tree", "deltas", "pairs");
  def_kernel(m, "multiply_siblings_in_place", &multiply_siblings_in_place, "X", "documents", "offsets", "first", "last",
             "products");
  def_kernel(m, "screen_classes_in_place", &screen_classes_in_place, "X", "pairs", "document_weights", "ancestors", "deltas",
             "scale", "classes", "loss", "threshold", "exact", "max_pairs", "losses");
  def_kernel(m, "find_negative_candidates_in_place", &find_negative_candidates_in_place, "X", "index", "start", "own",
             "candidates");
  def_kernel(m, "find_candidates_in_place", &find_with_scores<ramify::find_candidates_in_place>, "X", "index", "start",
             "candidates", "scores");
  def_kernel(m, "find_top_classes_in_place", &find_with_scores<ramify::find_top_classes_in_place>, "X", "index", "start",
             "candidates", "scores");
  def_kernel(m, "score_candidates_in_place", &score_candidates_in_place, "X", "deltas", "bias", "paths", "candidates",
             "scores");
}
