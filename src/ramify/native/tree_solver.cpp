// Dual coordinate ascent on the joint dual of the classes of a tree, whose weights are tied along paths.
//
// w_n = Σ δ_v over the path from the root to n, and δ_v = Σ u_n over the classes n at and below v. A step on one dual
// variable of class n moves u_n, hence δ of the whole path; on w_n it acts with the length of the path as its curvature.
// The tree is traversed from the root down with one dense vector of weights for each level. Changes below a node add up in one
// more vector, and reach the levels above when the traversal leaves the node; so every class sees all steps before it.
//
// u of a class is stored as a sparse vector over all features of its documents: summing it from the documents at every visit
// would cost more than the visit. Sums of differences lose a few last digits, so a certificate needs δ assembled from the dual
// variables.
//
// Several threads may work at the same time, each on one partition of the classes. A unit of s partitions counts with weight s
// in each: the sum of s changes, squared, is at most s times the sum of their squares, so together they never lower the dual. A
// unit with weight 0 is fixed: its δ is part of the weights below it, and steps there do not change it.
#include <cmath>

#include "tree_traversal.h"

namespace ramify {

namespace {

// Adds u of a class to the weights of its level and takes it out again: u is stored, or summed from the documents.
class ClassVisit {
 public:
  explicit ClassVisit(Traversal &traversal) : traversal_(traversal), moved_(traversal.X.n_columns, 0.0f) {}

  void begin(const Class &c, const SparseVector &u) {
    alphas_.assign(c.alphas, c.alphas + c.n_pairs);
    float *w = traversal_.local_weights();
    if (!u) return add_pairs(traversal_.X, c, w);
    before_.resize(u.size);
    for (size_t p = 0; p < u.size; ++p) {
      float &weight = w[u.features[p]];
      before_[p] = weight;
      weight += u.values[p];
    }
  }

  // Takes u out.
  void end(const Class &c, const SparseVector &u) {
    float *w = traversal_.local_weights();
    if (!u) return add_pairs(traversal_.X, c, w, -1.0f);
    for (size_t p = 0; p < u.size; ++p) w[u.features[p]] = before_[p];
  }

  // Takes u out after steps that moved weights by path length · change: u, this level and those above get their parts.
  void end_moved(const Class &c, const SparseVector &u) {
    float *w = traversal_.local_weights(), *changes = traversal_.local_changes();
    if (!u) {
      add_pairs(traversal_.X, c, w, -1.0f);
      for_each_change(c, alphas_, [&](size_t row, float change) { add_row(traversal_.X, row, change, changes); });
      return;
    }
    const float length = traversal_.path_length.back(), part = 1 / (length + 1);
    for (size_t p = 0; p < u.size; ++p) {
      const auto f = static_cast<size_t>(u.features[p]);
      const float change = part * (w[f] - (before_[p] + u.values[p]));
      u.values[p] += change;
      w[f] = before_[p] + length * change;
      changes[f] += change;
    }
  }

  // The same after dual variables changed while weights stood still.
  void follow(const Class &c, const std::vector<float> &alphas_before, const SparseVector &u) {
    float *w = traversal_.local_weights(), *changes = traversal_.local_changes();
    const float length = traversal_.path_length.back();
    bool has_moved = false;
    for_each_change(c, alphas_before, [&](size_t row, float change) {
      has_moved = true;
      if (u) return add_row(traversal_.X, row, change, moved_.data());
      add_row(traversal_.X, row, change, changes);
      add_row(traversal_.X, row, change * length, w);
    });
    for (size_t p = 0; u && has_moved && p < u.size; ++p) {
      const auto f = static_cast<size_t>(u.features[p]);
      u.values[p] += moved_[f];
      w[f] += length * moved_[f];
      changes[f] += moved_[f];
      moved_[f] = 0;
    }
  }

 private:
  Traversal &traversal_;
  Large<float> moved_, before_;
  std::vector<float> alphas_;

  template <class Work>
  static void for_each_change(const Class &c, const std::vector<float> &before, Work work) {
    for (size_t j = 0; j < c.n_pairs; ++j)
      if (c.alphas[j] != before[j]) work(static_cast<size_t>(c.documents[j]), (c.alphas[j] - before[j]) * c.sign(j));
  }
};

// ---- siblings together ----------------------------------------------------------------------------------------------
// A document of one class is a hard negative of its siblings, and their weights differ only in the last step of the path; class
// after class, such documents would oscillate. So a group of siblings is solved first, each document in all classes of the
// group at once, on scores and products of documents alone.

struct GroupPair {  // a document of the group with one of its classes
  uint32_t column, pair;
};

class SiblingGroup {
 public:
  SiblingGroup(Traversal &traversal, ClassVisit &visit, const SiblingProducts &siblings, size_t unit, std::vector<int32_t> &slot)
      : traversal_(traversal), visit_(visit), documents_(siblings.documents.begin(unit)), n_(siblings.documents.length(unit)),
        products_(siblings.products + siblings.offsets[unit]), slot_(slot) {}

  template <class Loss>
  void solve(std::vector<Class> &classes, const std::vector<SparseVector> &vectors, size_t passes, Random &random) {
    const size_t k = classes.size();
    find_pairs(classes);
    scores_.assign(n_ * k, 0.0f);
    for (size_t c = 0; c < k; ++c) {
      visit_.begin(classes[c], vectors[c]);
      for (size_t i = 0; i < n_; ++i) scores_[i * k + c] = dot(traversal_.X, static_cast<size_t>(documents_[i]), traversal_.local_weights());
      visit_.end(classes[c], vectors[c]);
    }
    ActiveOrder all(n_);
    std::vector<float> move(k);
    for (size_t pass = 0; pass < passes; ++pass) {
      all.shuffle(random);
      for (uint32_t i : all.order) step<Loss>(i, classes, move);
    }
  }

 private:
  Traversal &traversal_;
  ClassVisit &visit_;
  const int32_t *documents_;
  size_t n_;
  const float *products_;
  std::vector<int32_t> &slot_;
  std::vector<std::vector<GroupPair>> group_pairs_;
  std::vector<float> scores_;  // documents × classes

  void find_pairs(const std::vector<Class> &classes) {
    for (size_t i = 0; i < n_; ++i) slot_[static_cast<size_t>(documents_[i])] = static_cast<int32_t>(i);
    group_pairs_.assign(n_, {});
    for (size_t c = 0; c < classes.size(); ++c)
      for (size_t j = 0; j < classes[c].n_pairs; ++j) {
        const int32_t i = slot_[static_cast<size_t>(classes[c].documents[j])];
        if (i >= 0 && classes[c].upper(j) > 0)
          group_pairs_[static_cast<size_t>(i)].push_back({static_cast<uint32_t>(c), static_cast<uint32_t>(j)});
      }
    for (size_t i = 0; i < n_; ++i) slot_[static_cast<size_t>(documents_[i])] = -1;
  }

  // A few rounds over the classes of one document; then the scores of all documents follow.
  template <class Loss>
  void step(size_t i, std::vector<Class> &classes, std::vector<float> &move) {
    const size_t k = classes.size();
    const float length = traversal_.path_length.back(), norm = products_[i * n_ + i];
    if (norm <= 0) return;
    std::fill(move.begin(), move.end(), 0.0f);
    float common = 0, largest = 0;
    for (int round = 0; round < 3; ++round)
      for (const GroupPair &m : group_pairs_[i]) {
        Class &c = classes[m.column];
        const float y = c.sign(m.pair), alpha = c.alphas[m.pair];
        const float score = scores_[i * k + m.column] + norm * (common + move[m.column]);
        const float better = Loss::best(alpha, y * score, c.upper(m.pair), (length + 1) * norm);
        const float change = y * (better - alpha);
        c.alphas[m.pair] = better;
        move[m.column] += change;
        common += length * change;
        largest = std::max(largest, std::fabs(change));
      }
    if (largest == 0) return;
    for (float &m : move) m += common;
    for (size_t j = 0; j < n_; ++j) {
      const float product = products_[i * n_ + j];
      float *scores = scores_.data() + j * k;
      for (size_t c = 0; c < k; ++c) scores[c] += product * move[c];
    }
  }
};

// Classes that share ancestors undo part of each other's steps; steps that are too long for one class make up for it (successive
// over-relaxation, Young 1954).
constexpr float kRelaxation = 1.7f;

// As many passes, up to `most`, as take no more time than adding u to the weights and taking it out.
template <class Loss>
void update_class(const Documents &X, Traversal &traversal, ClassVisit &visit, Class &c, const SparseVector &u,
                  uint8_t *is_active, float &slack, size_t most, uint64_t seed) {
  ActiveOrder active(c.n_pairs);
  active.size = 0;
  size_t n_entries = 1;
  for (size_t j = 0; j < c.n_pairs; ++j) {
    if (!is_active[j]) continue;
    active.order[active.size++] = static_cast<uint32_t>(j);
    n_entries += X.length(static_cast<size_t>(c.documents[j]));
  }
  const size_t passes = std::min(most, std::max(size_t{1}, 6 * u.size / n_entries));
  Random random(seed);
  visit.begin(c, u);
  const float curvature = traversal.path_length.back() + 1;
  for (size_t pass = 0; pass < passes; ++pass)
    slack = 0.25f * run_pass<Loss>(X, c, curvature, slack, active, random, traversal.local_weights(), nullptr,
                                    kRelaxation);
  visit.end_moved(c, u);
  std::fill(is_active, is_active + c.n_pairs, uint8_t{0});
  for (size_t k = 0; k < active.size; ++k) is_active[active.order[k]] = 1;
}

SparseVector vector_of(const SparseVectors *class_vectors, size_t k) {
  return class_vectors ? class_vectors->of(k) : SparseVector{};
}

template <class Loss>
void update_siblings(Traversal &traversal, ClassVisit &visit, const Pairs &pairs, const SparseVectors *class_vectors,
                     const float *document_weights, const SiblingProducts &siblings, size_t unit, const TreePasses &passes,
                     std::vector<int32_t> &slot) {
  if (siblings.documents.length(unit) == 0 || passes.sibling_passes == 0) return;
  const TreePartition &tree = traversal.tree;
  std::vector<Class> classes;
  std::vector<SparseVector> vectors;
  std::vector<std::vector<float>> before;
  for (size_t u = unit + 1; u < tree.n_units && tree.parent[u] == static_cast<int32_t>(unit); ++u) {
    if (tree.class_of[u] < 0) break;
    if (!tree.is_visited[u]) continue;
    const auto k = static_cast<size_t>(tree.class_of[u]);
    classes.push_back(pairs.of(k, document_weights));
    vectors.push_back(vector_of(class_vectors, k));
    before.emplace_back(classes.back().alphas, classes.back().alphas + classes.back().n_pairs);
  }
  if (classes.size() < 2) return;
  Random random(passes.seed + unit);
  SiblingGroup(traversal, visit, siblings, unit, slot).solve<Loss>(classes, vectors, passes.sibling_passes, random);
  for (size_t k = 0; k < classes.size(); ++k) visit.follow(classes[k], before[k], vectors[k]);
}

}  // namespace

void update_tree_duals_in_place(const Documents &X, LossKind loss, const TreePartition &tree, const SparseVectors &deltas,
                                const Pairs &pairs, const SparseVectors *class_vectors, const float *document_weights,
                                const SiblingProducts &siblings, const ActiveSet &active, const TreePasses &passes,
                                VectorList &result) {
  Traversal traversal(X, tree, deltas, result);
  ClassVisit visit(traversal);
  std::vector<int32_t> slot(X.n_rows, -1);
  with_loss(loss, [&](auto kind) {
    using Loss = decltype(kind);
    for (size_t unit = 0; unit < tree.n_units; ++unit) {
      if (!tree.is_visited[unit]) continue;
      traversal.leave_to_parent_of(unit);
      if (tree.class_of[unit] < 0) {
        traversal.enter(unit);
        update_siblings<Loss>(traversal, visit, pairs, class_vectors, document_weights, siblings, unit, passes, slot);
      } else {
        const auto k = static_cast<size_t>(tree.class_of[unit]);
        Class c = pairs.of(k, document_weights);
        update_class<Loss>(X, traversal, visit, c, vector_of(class_vectors, k), active.is_active + pairs.offsets[k],
                           active.slack[k], passes.class_passes, passes.seed + k);
      }
    }
    traversal.leave_all();
  });
}

}  // namespace ramify
