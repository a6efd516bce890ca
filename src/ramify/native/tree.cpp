// Coordinate ascent on the joint dual of the classes of a tree, whose weights are tied along paths.
//
// w_n = Σ δ_v over the path from the root to n, and δ_v = Σ u_n over the classes n at and below v. A step on one dual
// variable of class n moves u_n, hence δ of the whole path; on w_n it acts with the length of the path as its curvature.
// The tree is walked from the root down with one dense vector of weights for each level. Changes below a node add up in one
// more vector, and reach the levels above when the walk leaves the node; so every class sees all steps before it.
//
// Several walks may share the work, each on classes of its own. A unit that s walks pass counts with weight s in each: the
// sum of s changes, squared, is at most s times the sum of their squares, so together they never lower the dual.
#include <functional>

#include "kernels.h"

namespace ramify {

namespace {

struct Walk {
  const Rows &X;
  const Tree &tree;
  const Vectors &deltas;
  WalkResult &result;
  std::vector<std::vector<float>> weights, changes;  // by level: weights; changes of u below it since the walk came
  std::vector<size_t> path;                          // the unit at each level above 0, which is the zero above all roots
  std::vector<float> reach{0};                       // by level: the sum of the shares on the path
  bool keeps = true;                                 // whether something changes, so that results are kept

  Walk(const Rows &X, const Tree &tree, const Vectors &deltas, WalkResult &result)
      : X(X), tree(tree), deltas(deltas), result(result) {
    weights.emplace_back(X.n_features, 0.0f);
    changes.emplace_back(X.n_features, 0.0f);
  }

  size_t level() const { return path.size(); }
  float *here() { return weights[level()].data(); }

  void enter(size_t unit) {
    if (weights.size() <= level() + 1) {
      weights.emplace_back();
      changes.emplace_back(X.n_features, 0.0f);
    }
    weights[level() + 1] = weights[level()];
    path.push_back(unit);
    reach.push_back(reach.back() + tree.share[unit]);
    deltas.add_to(unit, here());
  }

  // The changes below a unit go one level up, and its new δ (for a shared unit: the change alone) into the result.
  void leave() {
    const size_t unit = path.back(), d = level();
    path.pop_back();
    reach.pop_back();
    if (!keeps) return;
    float *change = changes[d].data(), *above = changes[d - 1].data(), *w = here();
    const float factor = reach.back();
    for (size_t f = 0; f < X.n_features; ++f) {
      above[f] += change[f];
      w[f] += factor * change[f];
    }
    if (tree.share[unit] <= 1) deltas.add_to(unit, change);
    result.keep(unit, change, X.n_features);
    std::fill(change, change + X.n_features, 0.0f);
  }

  void walk_to(size_t unit) {
    while (!path.empty() && static_cast<int64_t>(path.back()) != tree.parent[unit]) leave();
  }

  // Work on the weights of a class: those of the level, in place, with u of the class added and taken away again. Where
  // steps moved them by path length · change, the level is left with its own part of that.
  template <class Work>
  void with_class(const Class &c, Work work) {
    add_pairs(X, c, here());
    work(here());
    add_pairs(X, c, here(), -1.0f);
  }

  // What dual variables changed since `before`, to the changes of the level, and times `factor` to its weights.
  void spread(const Class &c, const std::vector<float> &before, float factor) {
    for (size_t j = 0; j < c.n_pairs; ++j) {
      const float moved = (c.alphas[j] - before[j]) * c.sign(j);
      if (moved == 0) continue;
      const auto row = static_cast<size_t>(c.documents[j]);
      add_row(X, row, moved, changes[level()].data());
      if (factor != 0) add_row(X, row, moved * factor, here());
    }
  }
};

// ---- siblings together ----------------------------------------------------------------------------------------------
// A document of one class is a near negative of its siblings, and their weights share everything but the last step of the
// path; class after class, such documents are pushed to and fro. So documents of a group of siblings are settled first,
// each in all classes of the group at once, on their scores and their products with each other alone.

struct Meeting {  // a document of the group with one of its classes
  uint32_t column, pair;
};

class Group {
 public:
  Group(Walk &walk, const Siblings &siblings, size_t unit, std::vector<int32_t> &slot)
      : walk_(walk), documents_(siblings.documents + siblings.offsets[unit]),
        n_(static_cast<size_t>(siblings.offsets[unit + 1] - siblings.offsets[unit])),
        products_(siblings.products + siblings.product_offsets[unit]), slot_(slot) {}

  template <class Loss>
  void settle(std::vector<Class> &classes, size_t passes, Random &random) {
    const size_t k = classes.size();
    meet(classes);
    scores_.assign(n_ * k, 0.0f);
    for (size_t c = 0; c < k; ++c)
      walk_.with_class(classes[c], [&](const float *w) {
        for (size_t i = 0; i < n_; ++i) scores_[i * k + c] = dot(walk_.X, static_cast<size_t>(documents_[i]), w);
      });
    Active all(n_);
    std::vector<float> move(k);
    for (size_t pass = 0; pass < passes; ++pass) {
      all.shuffle(random);
      for (uint32_t i : all.order) visit<Loss>(i, classes, move);
    }
  }

 private:
  Walk &walk_;
  const int32_t *documents_;
  size_t n_;
  const float *products_;
  std::vector<int32_t> &slot_;
  std::vector<std::vector<Meeting>> meetings_;
  std::vector<float> scores_;  // documents × classes

  void meet(const std::vector<Class> &classes) {
    for (size_t i = 0; i < n_; ++i) slot_[static_cast<size_t>(documents_[i])] = static_cast<int32_t>(i);
    meetings_.assign(n_, {});
    for (size_t c = 0; c < classes.size(); ++c)
      for (size_t j = 0; j < classes[c].n_pairs; ++j) {
        const int32_t i = slot_[static_cast<size_t>(classes[c].documents[j])];
        if (i >= 0 && classes[c].upper(j) > 0)
          meetings_[static_cast<size_t>(i)].push_back({static_cast<uint32_t>(c), static_cast<uint32_t>(j)});
      }
    for (size_t i = 0; i < n_; ++i) slot_[static_cast<size_t>(documents_[i])] = -1;
  }

  // A few rounds over the classes of one document; then the scores of all documents follow.
  template <class Loss>
  void visit(size_t i, std::vector<Class> &classes, std::vector<float> &move) {
    const size_t k = classes.size();
    const float reach = walk_.reach.back(), norm = products_[i * n_ + i];
    if (norm <= 0) return;
    std::fill(move.begin(), move.end(), 0.0f);
    float common = 0, largest = 0;
    for (int round = 0; round < 3; ++round)
      for (const Meeting &m : meetings_[i]) {
        Class &c = classes[m.column];
        const float y = c.sign(m.pair), alpha = c.alphas[m.pair];
        const float score = scores_[i * k + m.column] + norm * (common + move[m.column]);
        const float better = Loss::best(alpha, y * score, c.upper(m.pair), (reach + 1) * norm);
        const float change = y * (better - alpha);
        c.alphas[m.pair] = better;
        move[m.column] += change;
        common += reach * change;
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

template <class Loss>
void ascend_class(Walk &walk, Class &c, uint8_t *awake, float &slack, size_t passes, uint64_t seed) {
  Active active(c.n_pairs);
  active.size = 0;
  for (size_t j = 0; j < c.n_pairs; ++j)
    if (awake[j]) active.order[active.size++] = static_cast<uint32_t>(j);
  const std::vector<float> before(c.alphas, c.alphas + c.n_pairs);
  Random random(seed);
  walk.with_class(c, [&](float *w) {
    for (size_t pass = 0; pass < passes; ++pass)
      slack = 0.25f * ascend<Loss>(walk.X, c, walk.reach.back() + 1, slack, active, random, w,
                                   pass == 0 ? &walk.result.sums : nullptr);
  });
  std::fill(awake, awake + c.n_pairs, uint8_t{0});
  for (size_t k = 0; k < active.size; ++k) awake[active.order[k]] = 1;
  walk.spread(c, before, 0);
}

template <class Loss>
void look_at_class(Walk &walk, const Class &c) {
  walk.with_class(c, [&](const float *w) {
    for (size_t j = 0; j < c.n_pairs; ++j) {
      const float z = c.sign(j) * dot(walk.X, static_cast<size_t>(c.documents[j]), w);
      if (c.upper(j) > 0) walk.result.sums.add<Loss>(c.alphas[j], z, c.upper(j));
    }
  });
}

template <class Loss>
void settle_siblings(Walk &walk, const Pairs &pairs, const float *document_weights, const Siblings &siblings,
                     size_t unit, size_t passes, uint64_t seed, std::vector<int32_t> &slot) {
  if (siblings.offsets[unit] == siblings.offsets[unit + 1] || passes == 0) return;
  std::vector<Class> classes;
  std::vector<std::vector<float>> before;
  for (size_t u = unit + 1; u < walk.tree.n_units && walk.tree.parent[u] == static_cast<int32_t>(unit); ++u) {
    if (walk.tree.class_of[u] < 0) break;
    if (!walk.tree.visited[u]) continue;
    classes.push_back(pairs.of(static_cast<size_t>(walk.tree.class_of[u]), document_weights));
    before.emplace_back(classes.back().alphas, classes.back().alphas + classes.back().n_pairs);
  }
  if (classes.size() < 2) return;
  Random random(seed + unit);
  Group(walk, siblings, unit, slot).settle<Loss>(classes, passes, random);
  for (size_t k = 0; k < classes.size(); ++k) walk.spread(classes[k], before[k], walk.reach.back());
}

template <class Work>
void for_each_class(Walk &walk, const Pairs &pairs, const float *document_weights, Work work,
                    const std::function<void(size_t)> &on_entry = {}) {
  for (size_t unit = 0; unit < walk.tree.n_units; ++unit) {
    if (!walk.tree.visited[unit]) continue;
    walk.walk_to(unit);
    if (walk.tree.class_of[unit] < 0) {
      walk.enter(unit);
      if (on_entry) on_entry(unit);
    } else {
      const auto k = static_cast<size_t>(walk.tree.class_of[unit]);
      Class c = pairs.of(k, document_weights);
      work(k, c);
    }
  }
  while (!walk.path.empty()) walk.leave();
}

}  // namespace

void ascend_tree_in_place(const Rows &X, size_t n_rows, LossKind loss, const Tree &tree, const Vectors &deltas, const Pairs &pairs,
                          const float *document_weights, const Siblings &siblings, uint8_t *awake, float *slack,
                          size_t group_passes, size_t passes, uint64_t seed, WalkResult &result) {
  Walk walk(X, tree, deltas, result);
  std::vector<int32_t> slot(n_rows, -1);
  const auto ascend_one = [&](size_t k, Class &c) {
    with_loss(loss, [&](auto kind) {
      ascend_class<decltype(kind)>(walk, c, awake + pairs.offsets[k], slack[k], passes, seed + k);
    });
  };
  const auto settle = [&](size_t unit) {
    with_loss(loss, [&](auto kind) {
      settle_siblings<decltype(kind)>(walk, pairs, document_weights, siblings, unit, group_passes, seed, slot);
    });
  };
  for_each_class(walk, pairs, document_weights, ascend_one, settle);
}

void multiply_siblings(const Rows &X, const Siblings &siblings, size_t first, size_t last, float *products) {
  std::vector<float> dense(X.n_features, 0.0f);
  for (size_t unit = first; unit < last; ++unit) {
    const int32_t *documents = siblings.documents + siblings.offsets[unit];
    const auto n = static_cast<size_t>(siblings.offsets[unit + 1] - siblings.offsets[unit]);
    float *matrix = products + siblings.product_offsets[unit];
    for (size_t i = 0; i < n; ++i) {
      const auto row = static_cast<size_t>(documents[i]);
      add_row(X, row, 1.0f, dense.data());
      for (size_t j = 0; j <= i; ++j)
        matrix[i * n + j] = matrix[j * n + i] = dot(X, static_cast<size_t>(documents[j]), dense.data());
      for (size_t p = 0; p < X.length(row); ++p) dense[static_cast<size_t>(X.features_of(row)[p])] = 0;
    }
  }
}

void look_at_tree(const Rows &X, LossKind loss, const Tree &tree, const Vectors &deltas, const Pairs &pairs,
                  const float *document_weights, Sums &sums) {
  WalkResult result;
  Walk walk(X, tree, deltas, result);
  walk.keeps = false;
  for_each_class(walk, pairs, document_weights, [&](size_t, Class &c) {
    with_loss(loss, [&](auto kind) { look_at_class<decltype(kind)>(walk, c); });
  });
  sums = result.sums;
}

void gather_tree(const Rows &X, const Tree &tree, const Pairs &pairs, WalkResult &result) {
  const std::vector<int64_t> nowhere(tree.n_units, 0);
  const Vectors none{nowhere.data(), nowhere.data(), nullptr, nullptr};
  Walk walk(X, tree, none, result);
  for_each_class(walk, pairs, nullptr, [&](size_t, Class &c) {
    add_pairs(X, c, walk.changes[walk.level()].data());
  });
}

}  // namespace ramify
