// The door between Python and the kernels: arrays in, arrays out, the interpreter lock released in between.
#include "arrays.h"
#include "kernels.h"

using namespace nb::literals;

void bind_terms(nb::module_ &m);
void bind_boosting(nb::module_ &m);
void bind_joint(nb::module_ &m);
void bind_bayes(nb::module_ &m);

using LabelKernel = ramify::LabelRows (*)(const int64_t *, const int32_t *, size_t, const int64_t *, const int32_t *,
                                          size_t);

template <LabelKernel kernel>
static nb::tuple on_label_rows(In<int64_t> offsets, In<int32_t> nodes, In<int64_t> parent_offsets,
                               In<int32_t> parent_nodes) {
  ramify::LabelRows rows;
  {
    nb::gil_scoped_release unlocked;
    rows = kernel(offsets.data(), nodes.data(), offsets.size() - 1, parent_offsets.data(), parent_nodes.data(),
                  parent_offsets.size() - 1);
    rows.nodes.shrink_to_fit();
  }
  return nb::make_tuple(to_numpy(std::move(rows.offsets)), to_numpy(std::move(rows.nodes)));
}

static ramify::Rows rows_of(In<int64_t> &offsets, In<int32_t> &features, In<float> &values, In<float> &squared_norms,
                            size_t n_features) {
  return {offsets.data(), features.data(), values.data(), squared_norms.data(), n_features};
}

static ramify::Pairs pairs_of(In<int64_t> &offsets, In<int32_t> &documents, In<int64_t> &n_positive,
                              In<float> &cost_positive, In<float> &cost_negative, Out<float> &alphas) {
  return {offsets.data(),       documents.data(),     n_positive.data(),
          cost_positive.data(), cost_negative.data(), alphas.data()};
}

static ramify::Vectors vectors_of(In<int64_t> &start, In<int64_t> &end, In<int32_t> &features, In<float> &values) {
  return {start.data(), end.data(), features.data(), values.data()};
}

static ramify::Held held_of(In<int64_t> &start, In<int64_t> &end, In<int32_t> &features, Out<float> &values, size_t first = 0) {
  return {start.data(), end.data(), features.data(), values.data(), first};
}

static ramify::Tree tree_of(In<int32_t> &parent, In<int32_t> &class_of, In<float> &share, In<uint8_t> &visited) {
  return {parent.size(), parent.data(), class_of.data(), share.data(), visited.data()};
}

static nb::tuple to_tuple(ramify::WalkResult &&result) {
  return nb::make_tuple(to_numpy(std::move(result.units)), to_numpy(std::move(result.ends)),
                        to_numpy(std::move(result.features)), to_numpy(std::move(result.values)));
}

static ramify::WordCounts word_counts_of(In<int64_t> &offsets, In<int32_t> &units, In<double> &values, In<double> &totals) {
  return {offsets.data(), units.data(), values.data(), totals.data(), offsets.size() - 1};
}

template <typename T>
static void smooth_trees_in_place(In<int32_t> parent, In<double> weights, In<double> penalties, size_t levels,
                                  InMatrix<T> scores, OutMatrix<T> smoothed) {
  nb::gil_scoped_release unlocked;
  ramify::smooth_trees_in_place({parent.size(), parent.data(), weights.data(), penalties.data(), levels}, scores.data(),
                                scores.shape(0), smoothed.data());
}

template <typename T>
static nb::tuple minimize_h_loss(InMatrix<T> probabilities, In<int32_t> parent, In<double> costs, In<uint8_t> by_sign) {
  ramify::LabelRows rows;
  {
    nb::gil_scoped_release unlocked;
    rows = ramify::minimize_h_loss(probabilities.data(), probabilities.shape(0), parent.data(), costs.data(),
                                   by_sign.data(), parent.size());
  }
  return nb::make_tuple(to_numpy(std::move(rows.offsets)), to_numpy(std::move(rows.nodes)));
}

template <typename T>
static void def_decisions(nb::module_ &m) {
  m.def("smooth_trees_in_place", &smooth_trees_in_place<T>, "parent"_a.noconvert(), "weights"_a.noconvert(),
        "penalties"_a.noconvert(), "levels"_a, "scores"_a.noconvert(), "smoothed"_a.noconvert());
  m.def("minimize_h_loss", &minimize_h_loss<T>, "probabilities"_a.noconvert(), "parent"_a.noconvert(),
        "costs"_a.noconvert(), "by_sign"_a.noconvert());
}

// noconvert: an array of another type is refused, never copied behind the caller's back.
NB_MODULE(_core, m) {
  bind_terms(m);
  bind_boosting(m);
  bind_joint(m);
  bind_bayes(m);
  m.def("fit_mixtures_in_place",
        [](In<int64_t> word_offsets, In<int32_t> word_units, In<double> word_counts, In<double> totals,
           In<int64_t> path_offsets, In<int32_t> paths, In<int64_t> offsets, In<int32_t> words, In<float> values,
           In<double> document_weights, In<int64_t> tag_offsets, In<int32_t> tags, In<int32_t> tag_times,
           In<int64_t> document_offsets, In<int32_t> documents, In<int32_t> units, bool leave_one_out, double tolerance,
           size_t most_steps, double plain_words, In<double> expected, Out<double> weights, Out<int32_t> steps) {
          nb::gil_scoped_release unlocked;
          ramify::fit_mixtures_in_place(
              word_counts_of(word_offsets, word_units, word_counts, totals), {path_offsets.data(), paths.data()},
              {offsets.data(), words.data(), values.data(), document_weights.data(), tag_offsets.data(), tags.data(),
               tag_times.data()},
              {document_offsets.data(), documents.data()}, units.data(), units.size(), leave_one_out, tolerance, most_steps, plain_words,
              expected.data(), weights.data(), steps.data());
        });
  m.def("score_mixtures_in_place",
        [](In<int64_t> word_offsets, In<int32_t> word_units, In<double> word_counts, In<double> totals,
           In<int64_t> path_offsets, In<int32_t> paths, In<double> factors, In<int32_t> units, In<double> priors,
           In<int64_t> offsets, In<int32_t> words, In<float> values, OutMatrix<double> scores) {
          nb::gil_scoped_release unlocked;
          ramify::score_mixtures_in_place(word_counts_of(word_offsets, word_units, word_counts, totals),
                                          {path_offsets.data(), paths.data()}, factors.data(), units.data(), units.size(),
                                          priors.data(), offsets.data(), words.data(), values.data(), offsets.size() - 1,
                                          totals.size(), scores.data());
        });
  m.doc() = "Ramify's compiled kernels; see kernels.h for what each computes.";
  const auto label_kernel = [&m](const char *name, auto function) {
    m.def(name, function, "offsets"_a.noconvert(), "nodes"_a.noconvert(), "parent_offsets"_a.noconvert(),
          "parent_nodes"_a.noconvert());
  };
  label_kernel("close_upward", &on_label_rows<ramify::close_upward>);
  label_kernel("keep_most_specific", &on_label_rows<ramify::keep_most_specific>);
  label_kernel("keep_most_general", &on_label_rows<ramify::keep_most_general>);
  m.def(
      "move_nodes_in_place",
      [](OutMatrix<double> P, In<int32_t> parent, In<int32_t> nodes, In<double> wanted, double left, bool raising) {
        nb::gil_scoped_release unlocked;
        ramify::move_nodes_in_place(P.data(), P.shape(0), parent.data(), parent.size(), nodes.data(), wanted.data(), left, raising);
      },
      "P"_a.noconvert(), "parent"_a.noconvert(), "nodes"_a.noconvert(), "wanted"_a.noconvert(), "left"_a, "raising"_a);
  def_decisions<float>(m);
  def_decisions<double>(m);
  m.def(
      "score_rows_in_place",
      [](In<int64_t> offsets, In<int32_t> features, In<float> values, InMatrix<float> weights, In<double> bias,
         OutMatrix<double> scores) {
        nb::gil_scoped_release unlocked;
        ramify::score_rows_in_place(offsets.data(), features.data(), values.data(), offsets.size() - 1, weights.data(),
                                    bias.data(), bias.size(), scores.data());
      },
      "offsets"_a.noconvert(), "features"_a.noconvert(), "values"_a.noconvert(), "weights"_a.noconvert(), "bias"_a.noconvert(), "scores"_a.noconvert());
  m.def("score_units_in_place",
        [](In<int64_t> offsets, In<int32_t> features, In<float> values, In<int64_t> by_feature, In<int32_t> units,
           In<float> weights, In<int32_t> parent, In<double> bias, OutMatrix<double> scores) {
          nb::gil_scoped_release unlocked;
          ramify::score_units_in_place(offsets.data(), features.data(), values.data(), offsets.size() - 1,
                                       by_feature.data(), units.data(), weights.data(), parent.data(), bias.data(),
                                       bias.size(), scores.data());
        });
  m.def("solve_classes_in_place",
        [](In<int64_t> offsets, In<int32_t> features, In<float> values, In<float> squared_norms, size_t n_features,
           int loss, In<int64_t> pair_offsets, In<int32_t> documents, In<int64_t> n_positive, In<float> cost_positive,
           In<float> cost_negative, Out<float> alphas, In<float> document_weights, In<int64_t> above_offsets,
           In<int32_t> above, In<int64_t> start, In<int64_t> end, In<int32_t> delta_features, In<float> delta_values,
           In<int32_t> classes, double tolerance, size_t max_passes, uint64_t seed, OutMatrix<double> certificates) {
          nb::gil_scoped_release unlocked;
          const ramify::Vectors deltas = vectors_of(start, end, delta_features, delta_values);
          ramify::solve_classes_in_place(
              rows_of(offsets, features, values, squared_norms, n_features), static_cast<ramify::LossKind>(loss),
              pairs_of(pair_offsets, documents, n_positive, cost_positive, cost_negative, alphas),
              document_weights.data(), {above_offsets.data(), above.data(), deltas}, classes.data(), classes.size(),
              tolerance, max_passes, seed,
              reinterpret_cast<ramify::Certificate *>(certificates.data()));
        });
  m.def("gather_classes",
        [](In<int64_t> offsets, In<int32_t> features, In<float> values, In<float> squared_norms, size_t n_features,
           In<int64_t> pair_offsets, In<int32_t> documents, In<int64_t> n_positive, In<float> cost_positive,
           In<float> cost_negative, Out<float> alphas, In<double> stretch, In<int32_t> place, float least,
           size_t first, size_t last, Out<double> bias) {
          ramify::WalkResult result;
          {
            nb::gil_scoped_release unlocked;
            ramify::gather_classes(rows_of(offsets, features, values, squared_norms, n_features),
                                   pairs_of(pair_offsets, documents, n_positive, cost_positive, cost_negative, alphas),
                                   stretch.data(), place.data(), place.size(), least, first, last, bias.data(), result);
          }
          return to_tuple(std::move(result));
        });
  m.def("arrange_vectors",
        [](In<int64_t> start, In<int64_t> end, In<int32_t> features, In<float> values, In<int32_t> units, size_t n_features,
           In<int32_t> place, Out<double> bias) {
          ramify::WalkResult result;
          {
            nb::gil_scoped_release unlocked;
            ramify::arrange_vectors(vectors_of(start, end, features, values), units.data(), units.size(), n_features,
                                    place.data(), place.size(), bias.data(), result);
          }
          return to_tuple(std::move(result));
        });
  m.def("ascend_tree_in_place",
        [](In<int64_t> offsets, In<int32_t> features, In<float> values, In<float> squared_norms, size_t n_features,
           int loss, In<int32_t> parent, In<int32_t> class_of, In<float> share, In<uint8_t> visited, In<int64_t> start,
           In<int64_t> end, In<int32_t> delta_features, Out<float> delta_values, In<int64_t> pair_offsets,
           In<int32_t> documents, In<int64_t> n_positive, In<float> cost_positive, In<float> cost_negative,
           Out<float> alphas, size_t first, In<int64_t> held_offsets, In<int32_t> held_features, Out<float> held_values,
           In<float> document_weights, In<int64_t> sibling_offsets, In<int32_t> sibling_documents,
           In<int64_t> product_offsets, In<float> products, Out<uint8_t> awake, Out<float> slack, size_t group_passes,
           size_t passes, uint64_t seed) {
          ramify::WalkResult result;
          {
            nb::gil_scoped_release unlocked;
            ramify::ascend_tree_in_place(
                rows_of(offsets, features, values, squared_norms, n_features), squared_norms.size(),
                static_cast<ramify::LossKind>(loss), tree_of(parent, class_of, share, visited),
                held_of(start, end, delta_features, delta_values),
                pairs_of(pair_offsets, documents, n_positive, cost_positive, cost_negative, alphas),
                {held_offsets.data(), held_offsets.data() + (held_offsets.size() > 1), held_features.data(), held_values.data(),
                 first},
                document_weights.data(),
                {sibling_offsets.data(), sibling_documents.data(), product_offsets.data(), products.data()},
                awake.data(), slack.data(), group_passes, passes, seed, result);
          }
          return to_tuple(std::move(result));
        });
  m.def("hold_classes",
        [](In<int64_t> offsets, In<int32_t> features, In<float> values, In<float> squared_norms, size_t n_features,
           In<int64_t> pair_offsets, In<int32_t> documents, In<int64_t> n_positive, In<float> cost_positive,
           In<float> cost_negative, Out<float> alphas, size_t first, size_t last) {
          ramify::WalkResult result;
          result.ends.push_back(0);
          {
            nb::gil_scoped_release unlocked;
            ramify::hold_classes(rows_of(offsets, features, values, squared_norms, n_features),
                                 pairs_of(pair_offsets, documents, n_positive, cost_positive, cost_negative, alphas), first,
                                 last, result);
          }
          return nb::make_tuple(to_numpy(std::move(result.ends)), to_numpy(std::move(result.features)),
                                to_numpy(std::move(result.values)));
        });
  m.def("multiply_siblings",
        [](In<int64_t> offsets, In<int32_t> features, In<float> values, In<float> squared_norms, size_t n_features,
           In<int64_t> sibling_offsets, In<int32_t> sibling_documents, In<int64_t> product_offsets, size_t first,
           size_t last, Out<float> products) {
          nb::gil_scoped_release unlocked;
          ramify::multiply_siblings(
              rows_of(offsets, features, values, squared_norms, n_features),
              {sibling_offsets.data(), sibling_documents.data(), product_offsets.data(), nullptr}, first, last,
              products.data());
        });
  m.def("gather_tree",
        [](In<int64_t> offsets, In<int32_t> features, In<float> values, In<float> squared_norms, size_t n_features,
           In<int32_t> parent, In<int32_t> class_of, In<float> share, In<uint8_t> visited, In<int64_t> pair_offsets,
           In<int32_t> documents, In<int64_t> n_positive, In<float> cost_positive, In<float> cost_negative,
           Out<float> alphas) {
          ramify::WalkResult result;
          {
            nb::gil_scoped_release unlocked;
            ramify::gather_tree(rows_of(offsets, features, values, squared_norms, n_features),
                                tree_of(parent, class_of, share, visited),
                                pairs_of(pair_offsets, documents, n_positive, cost_positive, cost_negative, alphas),
                                result);
          }
          return to_tuple(std::move(result));
        });
  m.def("regather_tree_in_place",
        [](In<int64_t> offsets, In<int32_t> features, In<float> values, In<float> squared_norms, size_t n_features,
           In<int32_t> parent, In<int32_t> class_of, In<float> share, In<uint8_t> visited, In<int64_t> start,
           In<int64_t> end, In<int32_t> delta_features, Out<float> delta_values, In<int64_t> pair_offsets,
           In<int32_t> documents, In<int64_t> n_positive, In<float> cost_positive, In<float> cost_negative,
           Out<float> alphas) {
          ramify::WalkResult result;
          {
            nb::gil_scoped_release unlocked;
            ramify::regather_tree_in_place(rows_of(offsets, features, values, squared_norms, n_features),
                                           tree_of(parent, class_of, share, visited),
                                           held_of(start, end, delta_features, delta_values),
                                           pairs_of(pair_offsets, documents, n_positive, cost_positive, cost_negative, alphas),
                                           result);
          }
          return to_tuple(std::move(result));
        });
  m.def("screen_classes",
        [](In<int64_t> offsets, In<int32_t> features, In<float> values, In<float> squared_norms, size_t n_features,
           In<int64_t> pair_offsets, In<int32_t> documents, In<int64_t> n_positive, In<float> cost_positive,
           In<float> cost_negative, Out<float> alphas, In<int64_t> above_offsets, In<int32_t> above, In<int64_t> start,
           In<int64_t> end, In<int32_t> delta_features, In<float> delta_values, In<double> stretch,
           In<int32_t> classes, float threshold, bool closely, size_t most, int loss, In<float> document_weights, Out<double> losses) {
          ramify::Found found;
          {
            nb::gil_scoped_release unlocked;
            const ramify::Vectors deltas = vectors_of(start, end, delta_features, delta_values);
            ramify::screen_classes(
                rows_of(offsets, features, values, squared_norms, n_features), squared_norms.size(),
                pairs_of(pair_offsets, documents, n_positive, cost_positive, cost_negative, alphas),
                {above_offsets.data(), above.data(), deltas}, stretch.data(), classes.data(), classes.size(), threshold, closely, most,
                static_cast<ramify::LossKind>(loss), document_weights.data(), found, losses.data());
          }
          return nb::make_tuple(to_numpy(std::move(found.rows)), to_numpy(std::move(found.classes)));
        });
  m.def("nearest_classes",
        [](In<int64_t> offsets, In<int32_t> features, In<float> values, In<float> squared_norms, size_t n_features,
           size_t first, size_t last, In<int64_t> index_offsets, In<int32_t> classes, In<float> weights,
           size_t n_classes, In<float> start, In<int64_t> own_offsets, In<int32_t> own, OutMatrix<int32_t> nearest) {
          nb::gil_scoped_release unlocked;
          ramify::nearest_classes(rows_of(offsets, features, values, squared_norms, n_features), first, last,
                                  {index_offsets.data(), classes.data(), weights.data(), n_classes}, start.data(), own_offsets.data(), own.data(), nearest.shape(1),
                                  nearest.data() + first * nearest.shape(1));
        });
  m.def("near_classes",
        [](In<int64_t> offsets, In<int32_t> features, In<float> values, In<float> squared_norms, size_t n_features,
           size_t first, size_t last, In<int64_t> index_offsets, In<int32_t> classes, In<float> weights,
           size_t n_classes, In<float> start, OutMatrix<int32_t> found, OutMatrix<float> sums) {
          nb::gil_scoped_release unlocked;
          const size_t width = found.shape(1);
          ramify::near_classes(rows_of(offsets, features, values, squared_norms, n_features), first, last,
                       {index_offsets.data(), classes.data(), weights.data(), n_classes}, start.data(), width,
                       found.data() + first * width, sums.data() + first * width);
        });
  m.def("likely_classes",
        [](In<int64_t> offsets, In<int32_t> features, In<float> values, In<float> squared_norms, size_t n_features,
           size_t first, size_t last, In<int64_t> index_offsets, In<int32_t> classes, In<float> weights,
           size_t n_classes, In<float> start, OutMatrix<int32_t> found, OutMatrix<float> sums) {
          nb::gil_scoped_release unlocked;
          const size_t width = found.shape(1);
          ramify::likely_classes(rows_of(offsets, features, values, squared_norms, n_features), first, last,
                       {index_offsets.data(), classes.data(), weights.data(), n_classes}, start.data(), width,
                       found.data() + first * width, sums.data() + first * width);
        });
  m.def("score_candidates",
        [](In<int64_t> offsets, In<int32_t> features, In<float> values, In<float> squared_norms, size_t n_features,
           size_t first, size_t last, In<int64_t> delta_offsets, In<int32_t> delta_features, In<float> delta_values,
           In<double> bias, In<int64_t> path_offsets, In<int32_t> paths, InMatrix<int32_t> candidates,
           OutMatrix<float> scores) {
          nb::gil_scoped_release unlocked;
          ramify::score_candidates(
              rows_of(offsets, features, values, squared_norms, n_features), first, last,
              {delta_offsets.data(), delta_offsets.data() + 1, delta_features.data(), delta_values.data()}, bias.data(),
              bias.size(), path_offsets.data(), paths.data(), candidates.data(), candidates.shape(1), scores.data());
        });
}
