// Coordinate ascent on the joint dual of the classes of a tree, whose weights are tied along paths.
//
// w_n = Σ δ_v over the path from the root to n, and δ_v = Σ u_n over the classes n at and below v. A step on one dual
// variable of class n moves u_n, hence δ of the whole path; on w_n it acts with the length of the path as its curvature.
// The tree is walked from the root down with one dense vector of weights for each level. Changes below a node add up in one
// more vector, and reach the levels above when the walk leaves the node; so every class sees all steps before it.
//
// u of a class is held as a sparse vector over all features that its documents have: adding it up from the documents at every
// visit would cost more than the visit. Sums of differences lose a few last digits on the way, so whoever needs to be certain
// gathers δ from the dual variables anew.
//
// Several walks may share the work, each on classes of its own. A unit that s walks pass counts with weight s in each: the
// sum of s changes, squared, is at most s times the sum of their squares, so together they never lower the dual. A unit with
// weight 0 is held as it is: its δ is part of the weights below it, and what happens there does not change it.
#include "kernels.h"

namespace ramify {

namespace {

struct Walk {
  const Rows &X;
  const Tree &tree;
  const Held &deltas;
  WalkResult &result;
  std::vector<Large<float>> weights, changes;  // by level: weights; changes of u below it since the walk came
  std::vector<size_t> path;                    // the unit at each level above 0, which is the zero above all roots
  std::vector<float> reach{0};                 // by level: the sum of the shares on the path

  Walk(const Rows &X, const Tree &tree, const Held &deltas, WalkResult &result)
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
    deltas.of(unit).add_to(here());
  }

  // The changes below a unit go one level up and into its δ; those of a shared unit into the result.
  void leave() {
    const size_t unit = path.back(), d = level();
    path.pop_back();
    reach.pop_back();
    float *change = changes[d].data(), *above = changes[d - 1].data(), *w = here();
    const bool is_shared = tree.share[unit] > 1;
    if (is_shared) result.keep(unit, change, X.n_features);
    const HeldVector delta = deltas.of(unit);
    for (size_t p = 0; p < delta.size; ++p) {
      const auto f = static_cast<size_t>(delta.features[p]);
      above[f] += change[f];
      w[f] += reach.back() * change[f];
      if (!is_shared && tree.share[unit] > 0) delta.values[p] += change[f];
      change[f] = 0;
    }
  }

  void walk_to(size_t unit) {
    while (!path.empty() && static_cast<int64_t>(path.back()) != tree.parent[unit]) leave();
  }
};

// A class's u in the weights of the walk's level, and out again: from where it is held, or added up from its documents.
class Visit {
 public:
  explicit Visit(Walk &walk) : walk_(walk), moved_(walk.X.n_features, 0.0f) {}

  void begin(const Class &c, const HeldVector &u) {
    alphas_.assign(c.alphas, c.alphas + c.n_pairs);
    float *w = walk_.here();
    if (!u) return add_pairs(walk_.X, c, w);
    before_.resize(u.size);
    for (size_t p = 0; p < u.size; ++p) {
      float &weight = w[u.features[p]];
      before_[p] = weight;
      weight += u.values[p];
    }
  }

  // Takes u away again.
  void end(const Class &c, const HeldVector &u) {
    float *w = walk_.here();
    if (!u) return add_pairs(walk_.X, c, w, -1.0f);
    for (size_t p = 0; p < u.size; ++p) w[u.features[p]] = before_[p];
  }

  // Takes u away after steps that moved weights by path length · change: u, the level and what lies above get their parts.
  void end_moved(const Class &c, const HeldVector &u) {
    float *w = walk_.here(), *changes = walk_.changes[walk_.level()].data();
    if (!u) {
      add_pairs(walk_.X, c, w, -1.0f);
      for_each_change(c, alphas_, [&](size_t row, float change) { add_row(walk_.X, row, change, changes); });
      return;
    }
    const float reach = walk_.reach.back(), part = 1 / (reach + 1);
    for (size_t p = 0; p < u.size; ++p) {
      const auto f = static_cast<size_t>(u.features[p]);
      const float change = part * (w[f] - (before_[p] + u.values[p]));
      u.values[p] += change;
      w[f] = before_[p] + reach * change;
      changes[f] += change;
    }
  }

  // The same after dual variables changed while weights stood still.
  void follow(const Class &c, const std::vector<float> &alphas_before, const HeldVector &u) {
    float *w = walk_.here(), *changes = walk_.changes[walk_.level()].data();
    const float reach = walk_.reach.back();
    bool has_moved = false;
    for_each_change(c, alphas_before, [&](size_t row, float change) {
      has_moved = true;
      if (u) return add_row(walk_.X, row, change, moved_.data());
      add_row(walk_.X, row, change, changes);
      add_row(walk_.X, row, change * reach, w);
    });
    for (size_t p = 0; u && has_moved && p < u.size; ++p) {
      const auto f = static_cast<size_t>(u.features[p]);
      u.values[p] += moved_[f];
      w[f] += reach * moved_[f];
      changes[f] += moved_[f];
      moved_[f] = 0;
    }
  }

 private:
  Walk &walk_;
  Large<float> moved_, before_;
  std::vector<float> alphas_;

  template <class Work>
  static void for_each_change(const Class &c, const std::vector<float> &before, Work work) {
    for (size_t j = 0; j < c.n_pairs; ++j)
      if (c.alphas[j] != before[j]) work(static_cast<size_t>(c.documents[j]), (c.alphas[j] - before[j]) * c.sign(j));
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
  Group(Walk &walk, Visit &visit, const Siblings &siblings, size_t unit, std::vector<int32_t> &slot)
      : walk_(walk), visit_(visit), documents_(siblings.documents + siblings.offsets[unit]),
        n_(static_cast<size_t>(siblings.offsets[unit + 1] - siblings.offsets[unit])),
        products_(siblings.products + siblings.product_offsets[unit]), slot_(slot) {}

  template <class Loss>
  void settle(std::vector<Class> &classes, const std::vector<HeldVector> &held, size_t passes, Random &random) {
    const size_t k = classes.size();
    meet(classes);
    scores_.assign(n_ * k, 0.0f);
    for (size_t c = 0; c < k; ++c) {
      visit_.begin(classes[c], held[c]);
      for (size_t i = 0; i < n_; ++i) scores_[i * k + c] = dot(walk_.X, static_cast<size_t>(documents_[i]), walk_.here());
      visit_.end(classes[c], held[c]);
    }
    Active all(n_);
    std::vector<float> move(k);
    for (size_t pass = 0; pass < passes; ++pass) {
      all.shuffle(random);
      for (uint32_t i : all.order) step<Loss>(i, classes, move);
    }
  }

 private:
  Walk &walk_;
  Visit &visit_;
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
  void step(size_t i, std::vector<Class> &classes, std::vector<float> &move) {
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
void ascend_class(Walk &walk, Visit &visit, Class &c, const HeldVector &u, uint8_t *awake, float &slack, size_t passes,
                  uint64_t seed) {
  Active active(c.n_pairs);
  active.size = 0;
  for (size_t j = 0; j < c.n_pairs; ++j)
    if (awake[j]) active.order[active.size++] = static_cast<uint32_t>(j);
  Random random(seed);
  visit.begin(c, u);
  for (size_t pass = 0; pass < passes; ++pass)
    slack = 0.25f * ascend<Loss>(walk.X, c, walk.reach.back() + 1, slack, active, random, walk.here(), nullptr);
  visit.end_moved(c, u);
  std::fill(awake, awake + c.n_pairs, uint8_t{0});
  for (size_t k = 0; k < active.size; ++k) awake[active.order[k]] = 1;
}

template <class Loss>
void settle_siblings(Walk &walk, Visit &visit, const Pairs &pairs, const Held &held, const float *document_weights,
                     const Siblings &siblings, size_t unit, size_t passes, uint64_t seed, std::vector<int32_t> &slot) {
  if (siblings.offsets[unit] == siblings.offsets[unit + 1] || passes == 0) return;
  std::vector<Class> classes;
  std::vector<HeldVector> vectors;
  std::vector<std::vector<float>> before;
  for (size_t u = unit + 1; u < walk.tree.n_units && walk.tree.parent[u] == static_cast<int32_t>(unit); ++u) {
    if (walk.tree.class_of[u] < 0) break;
    if (!walk.tree.visited[u]) continue;
    const auto k = static_cast<size_t>(walk.tree.class_of[u]);
    classes.push_back(pairs.of(k, document_weights));
    vectors.push_back(held.of(k));
    before.emplace_back(classes.back().alphas, classes.back().alphas + classes.back().n_pairs);
  }
  if (classes.size() < 2) return;
  Random random(seed + unit);
  Group(walk, visit, siblings, unit, slot).settle<Loss>(classes, vectors, passes, random);
  for (size_t k = 0; k < classes.size(); ++k) visit.follow(classes[k], before[k], vectors[k]);
}

}  // namespace

void ascend_tree_in_place(const Rows &X, size_t n_rows, LossKind loss, const Tree &tree, const Held &deltas, const Pairs &pairs,
                          const Held &held, const float *document_weights, const Siblings &siblings, uint8_t *awake, float *slack,
                          size_t group_passes, size_t passes, uint64_t seed, WalkResult &result) {
  Walk walk(X, tree, deltas, result);
  Visit visit(walk);
  std::vector<int32_t> slot(n_rows, -1);
  with_loss(loss, [&](auto kind) {
    using Loss = decltype(kind);
    for (size_t unit = 0; unit < tree.n_units; ++unit) {
      if (!tree.visited[unit]) continue;
      walk.walk_to(unit);
      if (tree.class_of[unit] < 0) {
        walk.enter(unit);
        settle_siblings<Loss>(walk, visit, pairs, held, document_weights, siblings, unit, group_passes, seed, slot);
      } else {
        const auto k = static_cast<size_t>(tree.class_of[unit]);
        Class c = pairs.of(k, document_weights);
        ascend_class<Loss>(walk, visit, c, held.of(k), awake + pairs.offsets[k], slack[k], passes, seed + k);
      }
    }
    while (!walk.path.empty()) walk.leave();
  });
}

void regather_tree_in_place(const Rows &X, const Tree &tree, const Held &deltas, const Pairs &pairs, WalkResult &result) {
  Walk walk(X, tree, deltas, result);
  for (size_t unit = 0; unit < tree.n_units; ++unit) {
    if (!tree.visited[unit]) continue;
    walk.walk_to(unit);
    if (tree.class_of[unit] < 0)
      walk.enter(unit);
    else
      add_pairs(X, pairs.of(static_cast<size_t>(tree.class_of[unit]), nullptr), walk.changes[walk.level()].data());
  }
  while (!walk.path.empty()) walk.leave();
}

void mark_features(const Rows &X, const Class &c, std::vector<uint8_t> &has) {
  for (size_t j = 0; j < c.n_pairs; ++j) {
    const auto row = static_cast<size_t>(c.documents[j]);
    const int32_t *f = X.features_of(row);
    for (size_t p = 0, n = X.length(row); p < n; ++p) has[static_cast<size_t>(f[p])] = 1;
  }
}

void hold_classes(const Rows &X, const Pairs &pairs, size_t first, size_t last, WalkResult &result) {
  Large<float> u(X.n_features, 0.0f);
  std::vector<uint8_t> has(X.n_features, 0);
  std::vector<int32_t> held(X.n_features + 1);
  for (size_t k = first; k < last; ++k) {
    const Class c = pairs.of(k, nullptr);
    add_pairs(X, c, u.data());
    mark_features(X, c, has);
    size_t n = 0;
    for (size_t f = 0; f < X.n_features; ++f) {
      held[n] = static_cast<int32_t>(f);
      n += has[f];
    }
    result.take(held.data(), n, u.data());
    result.ends.push_back(static_cast<int64_t>(result.features.size()));
    std::fill(has.begin(), has.end(), uint8_t{0});
    if ((k - first) % 16 == 0) result.expect(k - first + 1, last - first);
  }
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

// Features and sums of the documents below the units of a path.
struct Gathering {
  Large<float> sum;
  std::vector<uint8_t> has;
  explicit Gathering(size_t n_features) : sum(n_features, 0.0f), has(n_features, 0) {}
};

void gather_tree(const Rows &X, const Tree &tree, const Pairs &pairs, WalkResult &result) {
  std::vector<Gathering> levels(1, Gathering(X.n_features));
  std::vector<size_t> path;
  std::vector<int32_t> held(X.n_features + 1);
  const auto leave = [&] {
    Gathering &here = levels[path.size()], &above = levels[path.size() - 1];
    const bool is_shared = tree.share[path.back()] > 1;
    size_t n = 0;
    for (size_t f = 0; f < X.n_features; ++f) {
      held[n] = static_cast<int32_t>(f);
      n += here.has[f] || is_shared;
    }
    for (size_t p = 0; p < n; ++p) {
      const auto f = static_cast<size_t>(held[p]);
      above.sum[f] += here.sum[f];
      above.has[f] |= here.has[f];
      here.has[f] = 0;
    }
    result.take(held.data(), n, here.sum.data());
    result.units.push_back(static_cast<int64_t>(path.back()));
    result.ends.push_back(static_cast<int64_t>(result.features.size()));
    path.pop_back();
  };
  for (size_t unit = 0; unit < tree.n_units; ++unit) {
    if (!tree.visited[unit]) continue;
    while (!path.empty() && static_cast<int64_t>(path.back()) != tree.parent[unit]) leave();
    if (tree.class_of[unit] < 0) {
      path.push_back(unit);
      if (levels.size() <= path.size()) levels.emplace_back(X.n_features);
      continue;
    }
    const Class c = pairs.of(static_cast<size_t>(tree.class_of[unit]), nullptr);
    add_pairs(X, c, levels[path.size()].sum.data());
    mark_features(X, c, levels[path.size()].has);
  }
  while (!path.empty()) leave();
}

}  // namespace ramify
