// Linear models in the dual: what the kernels of one class, of a tree, of screening and of candidates share.
//
// A unit is a class or an inner node above classes. δ of a unit is the difference between its weights and its parent's; u of a
// class is Σ α y x over its pairs.
#pragma once
#include <algorithm>

#include "coordinate_ascent.h"
#include "memory.h"
#include "sparse_rows.h"

namespace ramify {

// ---- sparse vectors -------------------------------------------------------------------------------------------------

struct SparseVector {
  const int32_t *features = nullptr;
  float *values = nullptr;
  size_t size = 0;

  explicit operator bool() const { return features; }  // whether it is stored at all

  void add_to(float *w) const {
    for (size_t p = 0; p < size; ++p) w[features[p]] += values[p];
  }
};

// One sparse vector for each of n_vectors units or classes, from number `first` on: its entries lie from start to end.
struct SparseVectors {
  const int64_t *start, *end;
  const int32_t *features;
  float *values;
  size_t n_vectors, n_features, first = 0;

  SparseVector of(size_t number) const {
    const int64_t from = start[number - first];
    return {features + from, values + from, static_cast<size_t>(end[number - first] - from)};
  }
};

// u of some neighbouring classes.
struct ClassVectors : SparseVectors {};

// Sparse vectors that a kernel returns, one after the other.
struct VectorList {
  std::vector<int64_t> units, ends;
  Large<int32_t> features;
  Large<float> values;

  void end_vector(size_t unit) {
    units.push_back(static_cast<int64_t>(unit));
    ends.push_back(static_cast<int64_t>(features.size()));
  }

  // The entries of a dense vector that are not zero, added to a buffer without a branch and then copied.
  void append_nonzero(size_t unit, const float *dense, size_t n_features) {
    buffer_features_.resize(n_features + 1);
    buffer_values_.resize(n_features + 1);
    size_t n = 0;
    for (size_t f = 0; f < n_features; ++f) {
      buffer_features_[n] = static_cast<int32_t>(f);
      buffer_values_[n] = dense[f];
      n += dense[f] != 0;
    }
    features.insert(features.end(), buffer_features_.begin(), buffer_features_.begin() + static_cast<std::ptrdiff_t>(n));
    values.insert(values.end(), buffer_values_.begin(), buffer_values_.begin() + static_cast<std::ptrdiff_t>(n));
    end_vector(unit);
  }

  // All of the listed features of a dense vector, which are then 0 there.
  void move_listed(const int32_t *listed, size_t n, float *dense) {
    features.insert(features.end(), listed, listed + n);
    const size_t before = values.size();
    values.resize(before + n);
    for (size_t p = 0; p < n; ++p) {
      values[before + p] = dense[listed[p]];
      dense[listed[p]] = 0;
    }
  }

  // Reserves memory for all vectors, judged by those that are done.
  void reserve_for(size_t done, size_t all) {
    const size_t expected = features.size() / done * all;
    if (expected <= features.capacity()) return;
    features.reserve(expected + expected / 8);
    values.reserve(expected + expected / 8);
  }

 private:
  std::vector<int32_t> buffer_features_;
  std::vector<float> buffer_values_;
};

// ---- ancestors of classes -------------------------------------------------------------------------------------------

// For every class its ancestors, from the root down, and δ of all units. Classes with the same ancestors stand side by side.
struct Ancestors {
  const Pattern &units;
  const SparseVectors &deltas;

  size_t count(size_t k) const { return units.length(k); }
};

// The sum of δ over the ancestors of one class after the other. Every few ancestors the sum so far is kept, and the next class
// begins with the last of these that it has in common.
class ParentWeights {
 public:
  explicit ParentWeights(size_t n_features) : sum_(n_features) {}
  const float *of(const Ancestors &ancestors, size_t k) {
    const size_t n = ancestors.count(k);
    if (n == 0) return nullptr;
    const int32_t *units = ancestors.units.begin(k);
    size_t same = 0;
    while (same < n && same < units_.size() && units[same] == units_[same]) ++same;
    is_new_ = same < n || n < units_.size();
    units_.assign(units, units + n);
    if (!is_new_) return sum_.data();
    const size_t first = same / kKept * kKept;
    if (first == 0) std::fill(sum_.begin(), sum_.end(), 0.0f);
    else std::copy(kept_[first / kKept].begin(), kept_[first / kKept].end(), sum_.begin());
    for (size_t p = first; p < n; ++p) {
      ancestors.deltas.of(static_cast<size_t>(units[p])).add_to(sum_.data());
      if ((p + 1) % kKept == 0) keep((p + 1) / kKept);
    }
    return sum_.data();
  }
  bool is_new() const { return is_new_; }  // whether the last sum differs from the one before

 private:
  static constexpr size_t kKept = 4;
  Large<float> sum_;
  std::vector<Large<float>> kept_;  // number m: the sum over the first m · kKept ancestors
  std::vector<int32_t> units_;
  bool is_new_ = false;

  void keep(size_t m) {
    while (kept_.size() <= m) kept_.emplace_back();
    kept_[m] = sum_;
  }
};

// ---- one class at a time --------------------------------------------------------------------------------------------

struct SolverLimits {
  double tolerance;
  size_t max_passes;
  uint64_t seed;
};

// Dual ascent on the listed classes, with the weights of their parents fixed, until each has a relative duality gap within the
// tolerance on its own pairs; writes the dual variables and a certificate for each class.
void solve_classes_in_place(const Documents &X, LossKind loss, const Pairs &pairs, const float *document_weights,
                            const Ancestors &ancestors, const int32_t *classes, size_t n_classes, const SolverLimits &limits,
                            Certificate *certificates);

// Problems that are solved side by side, as many as a vector has lanes.
constexpr size_t kLanes = 8;

// folds, costs: by lane, the fold whose documents it leaves out, and its factor of the costs. place_of: by document, its row among
// those held out, -1 for none. fold_of: by such a row. n_scores: the largest number of lanes that leave the same fold out.
struct FoldLanes {
  const uint8_t *folds;
  const float *costs;
  const int32_t *place_of;
  size_t n_documents;
  const uint8_t *fold_of;
  size_t n_held_out;
  size_t n_scores;
};

// For each pair of the listed classes, the scores of its document by the lanes that leave it out, in their order, from the dual
// variables of a solution on all documents on; NaN where there is none. Pairs far beyond the margin keep their score in the
// solution. held_out: the documents as they are scored, with the same features.
void cross_fit_classes_in_place(const Documents &X, const Rows &held_out, LossKind loss, const Pairs &pairs,
                                const float *document_weights, const FoldLanes &how, const int32_t *classes, size_t n_classes,
                                const SolverLimits &limits, float *scores);

// How features of the rows become features of the model: feature f of the model is feature positions[f] of the rows.
struct FeatureOrder {
  const int32_t *positions;
  size_t n_features;
};

// scale · u of the classes first .. last. Feature 0 of the rows is written as the bias, too. Weights below `threshold` of a
// class's largest are left out.
void assemble_class_weights_in_place(const Rows &X, const Pairs &pairs, const double *scale, const FeatureOrder &order,
                                     float threshold, size_t first, size_t last, double *bias, VectorList &result);

// The listed vectors in the features of the model.
void reorder_features_in_place(const SparseVectors &vectors, const int32_t *units, size_t n_units, const FeatureOrder &order,
                               double *bias, VectorList &result);

// u of the classes first .. last, over all features of their documents.
void sum_class_vectors(const Rows &X, const Pairs &pairs, size_t first, size_t last, VectorList &result);

// ---- all classes of a tree ------------------------------------------------------------------------------------------

// Units of a forest in preorder, and one partition of its classes: partitions are traversed side by side. In a DAG, a join is a
// unit without weights of its own: everything below it has, beside the units on its path, those that the join adds.
struct TreePartition {
  size_t n_units, n_classes;
  const int32_t *parent;      // -1 above a root
  const int32_t *class_of;    // -1 for an inner unit
  const float *n_partitions;  // how many partitions have a class at or below the unit; 0 where its δ is fixed
  const uint8_t *is_visited;  // whether this partition has one
  Pattern joins;              // units × units: what a join adds; nothing for other units

  bool is_join(size_t unit) const { return joins.length(unit) > 0; }
  std::vector<uint8_t> is_added() const {
    std::vector<uint8_t> found(n_units, 0);
    for (size_t p = 0; p < joins.n_entries(); ++p) found[static_cast<size_t>(joins.begin(0)[p])] = 1;
    return found;
  }
};

// For every inner unit some documents of the classes right below it (units × documents), and their products with each other.
struct SiblingProducts {
  Pattern documents;
  const int64_t *offsets;
  const float *products;
};

// is_active: one flag for each pair. slack: by class, how far beyond its bound a pair must lie to become inactive.
struct ActiveSet {
  uint8_t *is_active;
  float *slack;
  size_t n_pairs, n_classes;
};

struct TreePasses {
  size_t sibling_passes, class_passes;
  uint64_t seed;
};

// Some passes over the active pairs of every class of a partition. δ of every inner unit changes in place; for a unit of several
// partitions the result has what this partition adds to it. class_vectors: u of the classes, null to compute them at each visit.
void update_tree_duals_in_place(const Documents &X, LossKind loss, const TreePartition &tree, const SparseVectors &deltas,
                                const Pairs &pairs, const SparseVectors *class_vectors, const float *document_weights,
                                const SiblingProducts &siblings, const ActiveSet &active, const TreePasses &passes,
                                VectorList &result);

// For every listed unit, the features of the documents of the classes below it, rising; without values. is_listed: by unit; only
// inner units that no other partition visits.
void list_tree_features(const Rows &X, const TreePartition &tree, const Pairs &pairs, const uint8_t *is_listed,
                        VectorList &result);

// δ of every inner unit of a partition, computed from the dual variables below it. deltas: zeros, with the listed features or
// with all; a unit of several partitions has all, and the result has the part of this one.
void assemble_tree_deltas_in_place(const Rows &X, const TreePartition &tree, const SparseVectors &deltas, const Pairs &pairs,
                                   VectorList &result);

// Fills in the products of the units first .. last. offsets: where the products of each unit start.
void multiply_siblings_in_place(const Rows &X, const Pattern &documents, const int64_t *offsets, size_t first, size_t last,
                                float *products);

// ---- pairs and classes that can matter ------------------------------------------------------------------------------

struct FoundPairs {
  std::vector<int32_t> rows, classes;
  void add(size_t row, size_t c) {
    rows.push_back(static_cast<int32_t>(row));
    classes.push_back(static_cast<int32_t>(c));
  }
};

// exact: whether pairs that 8 bits cannot decide are scored in float. max_pairs: found for one class at most.
struct ScreeningLimits {
  float threshold;
  bool exact;
  size_t max_pairs;
};

// Of the pairs of a row and a listed class that are not among `pairs`, those whose score may lie above the threshold. losses: by
// class, what all of them cost at most. The result has those with the highest scores of each class.
void screen_classes_in_place(const Rows &X, LossKind loss, const Pairs &pairs, const float *document_weights,
                             const Ancestors &ancestors, const double *scale, const int32_t *classes, size_t n_classes,
                             const ScreeningLimits &limits, double *losses, FoundPairs &found);

// Candidate classes of rows, found in an index (features × classes) of the largest weights of every class. start: by class, what
// is added to the product of index and row.

// rows × n_candidates: the classes with the highest scores, of those that have a feature of the row in the index, in order of
// number; -1 where there are fewer. A row's own classes (rows × classes) are left out.
void find_negative_candidates_in_place(const Rows &X, const Rows &index, const float *start, const Pattern &own,
                                       size_t n_candidates, int32_t *candidates);

// The same with a row's own classes, and the score of each; -inf where there are fewer.
void find_candidates_in_place(const Rows &X, const Rows &index, const float *start, size_t n_candidates, int32_t *candidates,
                              float *scores);

// The same of all classes, whether they have a feature of the row or not.
void find_top_classes_in_place(const Rows &X, const Rows &index, const float *start, size_t n_candidates,
                               int32_t *candidates, float *scores);

// rows × n_candidates: exact scores of candidates, given δ of units (units × features) and the path of every class (classes ×
// units); a candidate of -1 gets none. Features rise in rows and in deltas.
void score_candidates_in_place(const Rows &X, const Rows &deltas, const double *bias, const Pattern &paths,
                               const int32_t *candidates, size_t n_candidates, float *scores);

}  // namespace ramify
