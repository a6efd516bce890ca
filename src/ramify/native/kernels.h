// The hot loops of Ramify. Kernels take plain arrays, hold no state, and trust what they are given:
// checks belong to the Python functions that call them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "linear.h"
#include "memory.h"

// One build serves machines with and without wide vectors; the loader picks the widest clone that runs.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__)  // it needs ifuncs
#define RAMIFY_WIDE_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define RAMIFY_WIDE_CLONES
#endif

namespace ramify {

// A growing set of label rows in compressed form: row r holds nodes[offsets[r] .. offsets[r + 1]).
struct LabelRows {
  std::vector<int64_t> offsets{0};
  std::vector<int32_t> nodes;
};

// Adds every ancestor of every node of every row; nodes of a row come out sorted and once each.
LabelRows close_upward(const int64_t *offsets, const int32_t *nodes, size_t n_rows, const int64_t *parent_offsets,
                       const int32_t *parent_nodes, size_t n_nodes);

// Keeps the nodes of each row that have no child in the row; rows must be closed upward.
LabelRows keep_most_specific(const int64_t *offsets, const int32_t *nodes, size_t n_rows,
                             const int64_t *parent_offsets, const int32_t *parent_nodes, size_t n_nodes);

// Keeps the nodes of each row that have no parent in the row; rows need not be closed.
LabelRows keep_most_general(const int64_t *offsets, const int32_t *nodes, size_t n_rows, const int64_t *parent_offsets,
                            const int32_t *parent_nodes, size_t n_nodes);

// scores[r, c] = bias[c] + sum over the non-zeros (f, x) of row r of x * weights[f, c], summed in double precision.
void score_rows_in_place(const int64_t *offsets, const int32_t *features, const float *values, size_t n_rows,
                         const float *weights, const double *bias, size_t n_classes, double *scores);

// The same for sparse weights, feature by feature, that are changes from the unit above: a unit gets the sum over its path.
// Parents come first.
void score_units_in_place(const int64_t *offsets, const int32_t *features, const float *values, size_t n_rows,
                          const int64_t *by_feature, const int32_t *units, const float *weights, const int32_t *parent,
                          const double *bias, size_t n_units, double *scores);

// ---- decisions ------------------------------------------------------------------------------------------------------

// Scores over a forest that are to be made consistent. penalties: of every node, for lying above all its children; infinite
// where it must not. weights: 0 where a score does not count. levels: how many values scores are rounded to; 0 for all.
struct IsotonicProblem {
  size_t n_nodes;
  const int32_t *parent;  // -1 for roots; parents come first
  const double *weights, *penalties;
  size_t levels;
};

// Per document the y with the least sum of weight * |score - y| and penalty * (y - largest y of the children), where no child
// is above its parent. NaN scores do not count; a tree without any score stays NaN.
template <typename T>
void smooth_trees_in_place(const IsotonicProblem &problem, const T *scores, size_t n_documents, T *smoothed);

// Per document the label set with the least expected H-loss, given the probability of each node if its parent is true.
// Where by_sign, a node is taken from 1/2 on, whatever it costs. NaN counts as 0.
template <typename T>
LabelRows minimize_h_loss(const T *probabilities, size_t n_documents, const int32_t *parent, const double *costs,
                          const uint8_t *by_sign, size_t n_nodes);

// Gives one node of each row of probabilities what is wanted, as far as that can be; what lies beside and below it is multiplied
// so that sums hold. left: of what lies beside the way down, the least that stays there. raising: whether nodes above may rise.
void move_nodes_in_place(double *P, size_t n_rows, const int32_t *parent, size_t n_nodes, const int32_t *nodes,
                         const double *wanted, double left, bool raising);

// ---- words --------------------------------------------------------------------------------------------------------

// How often each word occurs in the documents of each unit: word by word, units rising. totals: of all words, by unit.
struct WordCounts {
  const int64_t *offsets;
  const int32_t *units;
  const double *values, *totals;
  size_t n_words;
};

// For every unit the units from itself up to the top.
struct Paths {
  const int64_t *offsets;
  const int32_t *units;
};

// Documents as words with counts, each with a weight, and with the units that it belongs to and how many times.
struct TaggedRows {
  const int64_t *offsets;
  const int32_t *words;
  const float *values;
  const double *weights;
  const int64_t *tag_offsets;
  const int32_t *tags;
  const int32_t *tag_times;
};

struct Listed {
  const int64_t *offsets;
  const int32_t *items;
};

// For each listed unit the weights of the estimates along its path, and of the uniform one, under which the words of its
// documents are likeliest, by expectation and maximization. An estimate leaves out what the unit below it counted, and the
// document in question if told so. Ends when no weights can make the words likelier by more than the tolerance, in nats a
// word. After ten steps, or after so many that they read plain_words, come Newton's, which end at the same likelihood. expected:
// words ascribed to each estimate before, which count too.
// weights: as long as the paths, plus one a unit.
void fit_mixtures_in_place(const WordCounts &counts, const Paths &paths, const TaggedRows &rows, const Listed &documents,
                           const int32_t *units, size_t n_units, bool leave_one_out, double tolerance, size_t most_steps,
                           double plain_words, const double *expected, double *weights, int32_t *steps);

// scores[r, k] = priors[k] + sum over the words of row r of times * ln(what the path of units[k] says of the word).
// factors: weight / data of every estimate, placed as the weights are.
void score_mixtures_in_place(const WordCounts &counts, const Paths &paths, const double *factors, const int32_t *units,
                             size_t n_units, const double *priors, const int64_t *offsets, const int32_t *words,
                             const float *values, size_t n_rows, size_t n_all_units, double *scores);

// ---- linear models --------------------------------------------------------------------------------------------------

// One sparse vector a unit: its features and values lie from start to end.
struct Vectors {
  const int64_t *start, *end;
  const int32_t *features;
  const float *values;

  void add_to(size_t unit, float *w) const {
    for (int64_t p = start[unit]; p < end[unit]; ++p) w[features[p]] += values[p];
  }
};

// Sparse vectors as they come.
struct WalkResult {
  std::vector<int64_t> units, ends;
  Large<int32_t> features;
  Large<float> values;

  // What is not zero, added to a buffer without a branch and then copied.
  void keep(size_t unit, const float *dense, size_t n_features) {
    kept_features_.resize(n_features + 1);
    kept_values_.resize(n_features + 1);
    size_t n = 0;
    for (size_t f = 0; f < n_features; ++f) {
      kept_features_[n] = static_cast<int32_t>(f);
      kept_values_[n] = dense[f];
      n += dense[f] != 0;
    }
    features.insert(features.end(), kept_features_.begin(), kept_features_.begin() + static_cast<std::ptrdiff_t>(n));
    values.insert(values.end(), kept_values_.begin(), kept_values_.begin() + static_cast<std::ptrdiff_t>(n));
    units.push_back(static_cast<int64_t>(unit));
    ends.push_back(static_cast<int64_t>(features.size()));
  }

  // All of the listed features of a dense vector, which are then 0 there.
  void take(const int32_t *listed, size_t n, float *dense) {
    features.insert(features.end(), listed, listed + n);
    const size_t before = values.size();
    values.resize(before + n);
    for (size_t p = 0; p < n; ++p) {
      values[before + p] = dense[listed[p]];
      dense[listed[p]] = 0;
    }
  }

  // Makes room for the rest of some vectors, of which so many are done.
  void expect(size_t done, size_t all) {
    const size_t room = features.size() / done * all;
    if (room <= features.capacity()) return;
    features.reserve(room + room / 8);
    values.reserve(room + room / 8);
  }

 private:
  std::vector<int32_t> kept_features_;
  std::vector<float> kept_values_;
};

// For every class the units above it, from the root down, and the deltas of all units. Classes that have the same units
// above them stand side by side.
struct Above {
  const int64_t *offsets;
  const int32_t *units;
  const Vectors &deltas;

  size_t count(size_t k) const { return static_cast<size_t>(offsets[k + 1] - offsets[k]); }
  bool same(size_t k, size_t other) const {
    return count(k) == count(other) &&
           std::equal(units + offsets[k], units + offsets[k + 1], units + offsets[other]);
  }
};

// The sum of the deltas above a class; made anew only where the class before had other units above it.
class PathWeights {
 public:
  explicit PathWeights(size_t n_features) : sum_(n_features) {}
  const float *of(const Above &above, size_t k) {
    if (above.count(k) == 0) return nullptr;
    is_new_ = !has_last_ || !above.same(k, last_);
    if (is_new_) {
      std::fill(sum_.begin(), sum_.end(), 0.0f);
      for (int64_t p = above.offsets[k]; p < above.offsets[k + 1]; ++p)
        above.deltas.add_to(static_cast<size_t>(above.units[p]), sum_.data());
    }
    has_last_ = true, last_ = k;
    return sum_.data();
  }
  bool is_new() const { return is_new_; }  // whether the last sum is another than the one before

 private:
  Large<float> sum_;
  size_t last_ = 0;
  bool has_last_ = false, is_new_ = false;
};

// Raises the dual of the listed classes, with the weights above them held fixed, until each has a relative duality gap
// within the tolerance on its own pairs; writes the dual variables, and what is certain of each class.
void solve_classes_in_place(const Rows &X, LossKind loss, const Pairs &pairs, const float *document_weights,
                            const Above &above, const int32_t *classes, size_t n_classes, double tolerance,
                            size_t max_passes, uint64_t seed, Certificate *certificates);

// u = stretch · Σ α y x of the classes first .. last, as sparse vectors; feature f of them is feature place[f] of the rows.
// Feature 0 of the rows is written as the bias, too. Weights below `least` of a class's largest are left out.
void gather_classes(const Rows &X, const Pairs &pairs, const double *stretch, const int32_t *place, size_t n_places,
                    float least, size_t first, size_t last, double *bias, WalkResult &result);

// Some sparse vectors in the same way, as they are.
void arrange_vectors(const Vectors &vectors, const int32_t *units, size_t n_units, size_t n_features, const int32_t *place,
                     size_t n_places, double *bias, WalkResult &result);

// Units of a forest in preorder: inner units, and classes as leaves.
struct Tree {
  size_t n_units;
  const int32_t *parent;    // -1 above a root
  const int32_t *class_of;  // -1 for an inner unit
  const float *share;       // how many walks pass the unit
  const uint8_t *visited;   // whether this walk does
};

// For every inner unit some documents of the classes right below it, and the products of these with each other.
struct Siblings {
  const int64_t *offsets;
  const int32_t *documents;
  const int64_t *product_offsets;
  const float *products;
};

// Sparse vectors that steps change: δ of the inner units, or u of some neighbouring classes.
struct HeldVector {
  const int32_t *features = nullptr;
  float *values = nullptr;
  size_t size = 0;

  explicit operator bool() const { return features; }  // whether it is held at all

  void add_to(float *w) const {
    for (size_t p = 0; p < size; ++p) w[features[p]] += values[p];
  }
};

struct Held {
  const int64_t *start, *end;
  const int32_t *features;
  float *values;
  size_t first = 0;  // of the numbers

  HeldVector of(size_t number) const {
    if (start == end) return {};
    const int64_t from = start[number - first];
    return {features + from, values + from, static_cast<size_t>(end[number - first] - from)};
  }
};

// u of the classes first .. last, over all features that their documents have.
void hold_classes(const Rows &X, const Pairs &pairs, size_t first, size_t last, WalkResult &result);

// Fills in the products of the units first .. last.
void multiply_siblings(const Rows &X, const Siblings &siblings, size_t first, size_t last, float *products);

// Some passes over the awake pairs of every class that the walk visits. The delta of every inner unit changes in place; for a
// shared one the result has what this walk adds to it. u of the classes may be held or not.
void ascend_tree_in_place(const Rows &X, size_t n_rows, LossKind loss, const Tree &tree, const Held &deltas, const Pairs &pairs,
                          const Held &held, const float *document_weights, const Siblings &siblings, uint8_t *awake, float *slack,
                          size_t group_passes, size_t passes, uint64_t seed, WalkResult &result);

// The delta of every inner unit that the walk visits, made anew from the dual variables below it, over all features that the
// documents of the classes below have; of a shared unit what this walk has of it, over all features.
void gather_tree(const Rows &X, const Tree &tree, const Pairs &pairs, WalkResult &result);

// The same into deltas that were gathered before, for the same pairs, and whose values are now 0.
void regather_tree_in_place(const Rows &X, const Tree &tree, const Held &deltas, const Pairs &pairs, WalkResult &result);

constexpr size_t kBlock = 32;  // classes that are scored together
constexpr size_t kAhead = 12;  // how many features ahead their lines are fetched

struct Found {
  std::vector<int32_t> rows, classes;
  void add(size_t row, size_t c) {
    rows.push_back(static_cast<int32_t>(row));
    classes.push_back(static_cast<int32_t>(c));
  }
};

// Of the pairs of a row and a listed class that are not among the known ones, those whose score may lie above the
// threshold: what all of them cost at most, by class, and for every class the worst `most` of them. To look closely is to score
// in full whatever 8 bits cannot decide.
void screen_classes(const Rows &X, size_t n_rows, const Pairs &pairs, const Above &above, const double *stretch,
                    const int32_t *classes, size_t n_classes, float threshold, bool closely, size_t most, LossKind loss,
                    const float *document_weights, Found &found, double *losses);

// By feature: the classes that have it in their signatures, and with which weight.
struct Signatures {
  const int64_t *offsets;
  const int32_t *classes;
  const float *weights;
  size_t n_classes;
};

// rows × n_nearest: the classes whose start plus product of signature and row is largest, of those that share a feature with
// the row, in order of number; -1 where none. A row's own classes are left out.
void nearest_classes(const Rows &X, size_t first, size_t last, const Signatures &index, const float *start,
                     const int64_t *own_offsets, const int32_t *own, size_t n_nearest, int32_t *nearest);

// rows × width: the classes whose start plus product of signature and row is largest, of those that share a feature with the
// row, in order of number, and that sum for each; -1 and -inf where none.
void near_classes(const Rows &X, size_t first, size_t last, const Signatures &index, const float *start, size_t width,
                  int32_t *near, float *nearness);

// The same of all classes, whether they share a feature with the row or not.
void likely_classes(const Rows &X, size_t first, size_t last, const Signatures &index, const float *start,
                    size_t width, int32_t *likely, float *likelihood);

// rows × n_candidates: the scores of some classes for each row, given the units on the path of every class; a candidate of
// -1 gets none. The features of rows and of deltas rise.
void score_candidates(const Rows &X, size_t first, size_t last, const Vectors &deltas, const double *bias,
                      size_t n_units, const int64_t *path_offsets, const int32_t *paths, const int32_t *candidates,
                      size_t n_candidates, float *scores);

}  // namespace ramify
