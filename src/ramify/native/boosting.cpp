// AdaBoost.MH over the presence of terms.
//
// A round multiplies the weight of a pair of document and class by a factor that depends on the class, on whether the label is
// right, and on whether the document has the pivot. So the factor of documents without the pivot is kept apart, once a class,
// and only the documents that have it are touched: their changes are added to the sums of their terms. A weight is
// scale[class, sign] * base[document, class]; sums are those of the bases.
#include "boosting.h"

#include <cmath>

namespace ramify {
namespace {

constexpr size_t kLanes = 4;
constexpr double kTie = 1e-9;        // terms whose criterion is so near to the least are as good as the best
constexpr double kNothing = 1e-12;   // a round that takes less than this off the weights teaches nothing
constexpr double kFallen = 1.0 / 8;  // sums of a class that fell so far are made anew, before rounding shows,
constexpr double kMatters = 1e-2;    // if what they fell from weighs so much
constexpr double kHuge = 1e100;      // no scale goes beyond this, or below its inverse

using Doubles = Large<double>;

// Bases summed over the documents of a term, per class: of right and of wrong labels. Lanes beyond the classes are 0.
struct Sums {
  Doubles yes, no;
  void assign(size_t n) { yes.assign(n, 0.0), no.assign(n, 0.0); }
};

// Per class, padded: what a base of each sign counts, and the sums over all documents.
struct Classes {
  Doubles yes_scale, no_scale, joint_scale, yes_total, no_total, yes_peak, no_peak;
};

struct RealCriterion {
  // sum over classes of sqrt(yes * no), where the term is and where it is not, doubled
  static inline void add(double *sum, const double *yes, const double *no, const Classes &c, size_t j) {
    for (size_t l = 0; l < kLanes; ++l) {
      const double here = std::sqrt(std::max(yes[l] * no[l], 0.0));
      const double there = std::max(c.yes_total[j + l] - yes[l], 0.0) * std::max(c.no_total[j + l] - no[l], 0.0);
      sum[l] += 2 * c.joint_scale[j + l] * (here + std::sqrt(there));
    }
  }
  static double finish(double sum) { return sum; }
};

struct AbstainingCriterion {
  // where the term is, the square roots; elsewhere the weight stays
  static inline void add(double *sum, const double *yes, const double *no, const Classes &c, size_t j) {
    for (size_t l = 0; l < kLanes; ++l) {
      const double here = std::sqrt(std::max(yes[l] * no[l], 0.0));
      const double elsewhere = c.yes_scale[j + l] * (c.yes_total[j + l] - yes[l]) + c.no_scale[j + l] * (c.no_total[j + l] - no[l]);
      sum[l] += 2 * c.joint_scale[j + l] * here + elsewhere;
    }
  }
  static double finish(double sum) { return sum; }
};

struct DiscreteCriterion {
  // the weight of the lighter sign, where the term is and where it is not: what is left of one without rounding
  static inline void add(double *sum, const double *yes, const double *no, const Classes &c, size_t j) {
    for (size_t l = 0; l < kLanes; ++l) {
      const double yes_there = c.yes_scale[j + l] * std::max(c.yes_total[j + l] - yes[l], 0.0);
      const double no_there = c.no_scale[j + l] * std::max(c.no_total[j + l] - no[l], 0.0);
      const double yes_here = c.yes_scale[j + l] * std::max(yes[l], 0.0), no_here = c.no_scale[j + l] * std::max(no[l], 0.0);
      sum[l] += std::min(yes_here, no_here) + std::min(yes_there, no_there);
    }
  }
  static double finish(double sum) { return 2 * std::sqrt(std::max(0.0, sum * (1 - sum))); }
};

template <class Criterion>
inline double criterion_of(const double *yes, const double *no, const Classes &c, size_t width) {
  double sum[kLanes] = {};
  for (size_t j = 0; j < width; j += kLanes) Criterion::add(sum, yes + j, no + j, c, j);
  return Criterion::finish((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

// The criterion of every term.
RAMIFY_WIDE_CLONES void judge_real(const Sums &sums, const Classes &c, size_t n_terms, size_t width, double *z) {
  for (size_t k = 0; k < n_terms; ++k)
    z[k] = criterion_of<RealCriterion>(sums.yes.data() + k * width, sums.no.data() + k * width, c, width);
}
RAMIFY_WIDE_CLONES void judge_abstaining(const Sums &sums, const Classes &c, size_t n_terms, size_t width, double *z) {
  for (size_t k = 0; k < n_terms; ++k)
    z[k] = criterion_of<AbstainingCriterion>(sums.yes.data() + k * width, sums.no.data() + k * width, c, width);
}
RAMIFY_WIDE_CLONES void judge_discrete(const Sums &sums, const Classes &c, size_t n_terms, size_t width, double *z) {
  for (size_t k = 0; k < n_terms; ++k)
    z[k] = criterion_of<DiscreteCriterion>(sums.yes.data() + k * width, sums.no.data() + k * width, c, width);
}

RAMIFY_WIDE_CLONES void add_to_rows(const int32_t *terms, size_t n, const double *change, size_t width, double *rows) {
  for (size_t p = 0; p < n; ++p) {
    double *row = rows + static_cast<size_t>(terms[p]) * width;
    for (size_t j = 0; j < width; ++j) row[j] += change[j];
  }
}

class Booster {
 public:
  Booster(const BoostProblem &problem, Variant variant, double epsilon, double *weights)
      : problem_(problem), variant_(variant), epsilon_(epsilon), base_(weights),
        width_((problem.n_classes + kLanes - 1) / kLanes * kLanes), z_(problem.n_terms), change_(width_) {
    sums_.assign(problem.n_terms * width_);
    for (Doubles *part : {&all_.yes_scale, &all_.no_scale, &all_.joint_scale}) part->assign(width_, 1.0);
    all_.yes_total.assign(width_, 0.0), all_.no_total.assign(width_, 0.0);
    for (Doubles *part : {&here_yes_, &here_no_, &absent_, &present_}) part->assign(width_, 0.0);
    for (size_t d = 0; d < problem.n_documents; ++d) {
      const double *row = base_ + d * problem.n_classes;
      std::copy(row, row + problem.n_classes, change_.begin());
      add_changes(d);
    }
    all_.yes_peak = all_.yes_total, all_.no_peak = all_.no_total;
  }

  // One round; false where it would teach nothing.
  bool run(size_t round, const BoostRounds &rounds) {
    const size_t pivot = find_pivot(), m = problem_.n_classes;
    look_at(pivot);
    vote();
    if (!problem_.n_terms) present_ = absent_;  // nobody knows what the presence of a term would mean
    const double normalizer = normalizer_of_votes();
    if (!(normalizer < 1 - kNothing)) return false;
    rounds.pivots[round] = static_cast<int32_t>(pivot);
    std::copy(absent_.begin(), absent_.begin() + static_cast<std::ptrdiff_t>(m), rounds.absent + round * m);
    std::copy(present_.begin(), present_.begin() + static_cast<std::ptrdiff_t>(m), rounds.present + round * m);
    rounds.z[round] = criterion();
    rounds.normalizers[round] = normalizer;
    reweigh(pivot, normalizer);
    refresh_fallen();
    return true;
  }

  // Whether bases and scales have gone too far apart.
  bool is_worn() const {
    const auto is_far = [](double scale) { return scale > kHuge || scale < 1 / kHuge; };
    return std::any_of(all_.yes_scale.begin(), all_.yes_scale.end(), is_far) ||
           std::any_of(all_.no_scale.begin(), all_.no_scale.end(), is_far);
  }

  // Turns bases into weights that add up to one.
  void finish() {
    double sum = 0;
    for (size_t d = 0; d < problem_.n_documents; ++d) {
      double *row = base_ + d * problem_.n_classes;
      const int32_t *label = problem_.labels + problem_.label_offsets[d], *end = problem_.labels + problem_.label_offsets[d + 1];
      for (size_t j = 0; j < problem_.n_classes; ++j) {
        const bool yes = label != end && *label == static_cast<int32_t>(j);
        row[j] *= yes ? all_.yes_scale[j] : all_.no_scale[j];
        label += yes;
        sum += row[j];
      }
    }
    for (size_t i = 0; i < problem_.n_documents * problem_.n_classes; ++i) base_[i] /= sum;
  }

 private:
  size_t find_pivot() {
    for (size_t j = 0; j < width_; ++j) all_.joint_scale[j] = std::sqrt(all_.yes_scale[j]) * std::sqrt(all_.no_scale[j]);
    if (!problem_.n_terms) return 0;
    const auto judge = variant_ == Variant::real ? judge_real : variant_ == Variant::abstaining ? judge_abstaining : judge_discrete;
    judge(sums_, all_, problem_.n_terms, width_, z_.data());
    const auto best = std::min_element(z_.begin(), z_.end());  // of which the first stands, where none can be compared
    const auto first = std::find_if(z_.begin(), best, [&](double z) { return z <= *best * (1 + kTie); });
    return static_cast<size_t>(first - z_.begin());
  }

  // Of the pivot.
  double criterion() const {
    const double *yes = here_yes_.data(), *no = here_no_.data();
    if (variant_ == Variant::real) return criterion_of<RealCriterion>(yes, no, all_, width_);
    if (variant_ == Variant::abstaining) return criterion_of<AbstainingCriterion>(yes, no, all_, width_);
    return criterion_of<DiscreteCriterion>(yes, no, all_, width_);
  }

  // The sums of the pivot. Where all documents of a class have it, they are those of all documents to the last bit, since
  // the same numbers were added in the same order: nothing is left elsewhere, not even rounding.
  void look_at(size_t pivot) {
    if (!problem_.n_terms) return;
    std::copy_n(sums_.yes.begin() + static_cast<std::ptrdiff_t>(pivot * width_), width_, here_yes_.begin());
    std::copy_n(sums_.no.begin() + static_cast<std::ptrdiff_t>(pivot * width_), width_, here_no_.begin());
  }

  double yes_here(size_t j) const { return all_.yes_scale[j] * std::max(here_yes_[j], 0.0); }
  double no_here(size_t j) const { return all_.no_scale[j] * std::max(here_no_[j], 0.0); }
  double yes_there(size_t j) const { return all_.yes_scale[j] * std::max(all_.yes_total[j] - here_yes_[j], 0.0); }
  double no_there(size_t j) const { return all_.no_scale[j] * std::max(all_.no_total[j] - here_no_[j], 0.0); }

  void vote() {
    if (variant_ == Variant::discrete) return vote_discretely();
    for (size_t j = 0; j < problem_.n_classes; ++j) {
      present_[j] = real_vote(yes_here(j), no_here(j));
      absent_[j] = variant_ == Variant::abstaining ? 0.0 : real_vote(yes_there(j), no_there(j));
    }
  }

  // Half the log-odds; 0 where they are 0 but for rounding.
  double real_vote(double yes, double no) const {
    const double odds = (yes + epsilon_) / (no + epsilon_);
    return std::abs(odds - 1) < kNothing ? 0.0 : 0.5 * std::log(odds);
  }

  void vote_discretely() {
    double lighter = 0;
    for (size_t j = 0; j < problem_.n_classes; ++j)
      lighter += std::min(yes_here(j), no_here(j)) + std::min(yes_there(j), no_there(j));
    const double alpha = 0.5 * std::log((2 * (1 - lighter) + epsilon_) / (2 * lighter + epsilon_));
    for (size_t j = 0; j < problem_.n_classes; ++j) {
      present_[j] = yes_here(j) > no_here(j) * (1 + kTie) ? alpha : -alpha;
      absent_[j] = yes_there(j) > no_there(j) * (1 + kTie) ? alpha : -alpha;
    }
  }

  double normalizer_of_votes() const {
    double sum = 0;
    for (size_t j = 0; j < problem_.n_classes; ++j) {
      sum += yes_here(j) * std::exp(-present_[j]) + no_here(j) * std::exp(present_[j]);
      sum += yes_there(j) * std::exp(-absent_[j]) + no_there(j) * std::exp(absent_[j]);
    }
    return sum;
  }

  // Absent votes go into the scales; documents with the pivot get the difference.
  void reweigh(size_t pivot, double normalizer) {
    for (size_t j = 0; j < problem_.n_classes; ++j) {
      all_.yes_scale[j] *= std::exp(-absent_[j]) / normalizer;
      all_.no_scale[j] *= std::exp(absent_[j]) / normalizer;
      present_[j] = std::exp(present_[j] - absent_[j]);  // from now on, the factor of a base whose label is wrong
    }
    if (!problem_.n_terms) return;
    for (int64_t p = problem_.by_term[pivot]; p < problem_.by_term[pivot + 1]; ++p) {
      const auto d = static_cast<size_t>(problem_.documents[p]);
      double *row = base_ + d * problem_.n_classes;
      for (size_t j = 0; j < problem_.n_classes; ++j) change_[j] = row[j] * present_[j];
      for (int64_t q = problem_.label_offsets[d]; q < problem_.label_offsets[d + 1]; ++q) {
        const auto j = static_cast<size_t>(problem_.labels[q]);
        change_[j] = row[j] / present_[j];
      }
      for (size_t j = 0; j < problem_.n_classes; ++j) {
        const double before = row[j];
        row[j] = change_[j];
        change_[j] -= before;
      }
      add_changes(d);
    }
    for (size_t j = 0; j < problem_.n_classes; ++j) {
      all_.yes_peak[j] = std::max(all_.yes_peak[j], all_.yes_total[j]);
      all_.no_peak[j] = std::max(all_.no_peak[j], all_.no_total[j]);
    }
  }

  void refresh_fallen() {
    for (size_t j = 0; j < problem_.n_classes; ++j) {
      if (all_.yes_total[j] < kFallen * all_.yes_peak[j] && all_.yes_scale[j] * all_.yes_peak[j] > kMatters)
        refresh(j, true, sums_.yes, all_.yes_total, all_.yes_peak);
      if (all_.no_total[j] < kFallen * all_.no_peak[j] && all_.no_scale[j] * all_.no_peak[j] > kMatters)
        refresh(j, false, sums_.no, all_.no_total, all_.no_peak);
    }
  }

  // Sums the bases of one class anew, those of right or of wrong labels.
  void refresh(size_t j, bool right, Doubles &sums, Doubles &totals, Doubles &peaks) {
    for (size_t k = 0; k < problem_.n_terms; ++k) sums[k * width_ + j] = 0;
    totals[j] = 0;
    for (size_t d = 0; d < problem_.n_documents; ++d) {
      const int32_t *labels = problem_.labels + problem_.label_offsets[d], *end = problem_.labels + problem_.label_offsets[d + 1];
      if (std::binary_search(labels, end, static_cast<int32_t>(j)) != right) continue;
      const double base = base_[d * problem_.n_classes + j];
      totals[j] += base;
      for (int64_t p = problem_.offsets[d]; p < problem_.offsets[d + 1]; ++p)
        sums[static_cast<size_t>(problem_.terms[p]) * width_ + j] += base;
    }
    peaks[j] = totals[j];
  }

  // Adds the changes of one document's bases to the sums over all documents and over those of its terms.
  void add_changes(size_t d) {
    const int32_t *terms = problem_.terms + problem_.offsets[d];
    const auto n = static_cast<size_t>(problem_.offsets[d + 1] - problem_.offsets[d]);
    for (int64_t q = problem_.label_offsets[d]; q < problem_.label_offsets[d + 1]; ++q) {
      const auto j = static_cast<size_t>(problem_.labels[q]);
      all_.yes_total[j] += change_[j];
      for (size_t p = 0; p < n; ++p) sums_.yes[static_cast<size_t>(terms[p]) * width_ + j] += change_[j];
      change_[j] = 0;
    }
    for (size_t j = 0; j < problem_.n_classes; ++j) all_.no_total[j] += change_[j];
    add_to_rows(terms, n, change_.data(), width_, sums_.no.data());
  }

  const BoostProblem &problem_;
  const Variant variant_;
  const double epsilon_;
  double *base_;
  const size_t width_;
  std::vector<double> z_;
  Doubles change_, here_yes_, here_no_, absent_, present_;
  Sums sums_;
  Classes all_;
};

}  // namespace

size_t boost_in_place(const BoostProblem &problem, Variant variant, double epsilon, size_t n_rounds, double *weights,
                      const BoostRounds &rounds) {
  size_t done = 0;
  bool goes_on = true;
  while (goes_on && done < n_rounds) {
    Booster booster(problem, variant, epsilon, weights);
    while (goes_on && done < n_rounds && !booster.is_worn()) {
      goes_on = booster.run(done, rounds);
      done += goes_on;
    }
    booster.finish();
  }
  return done;
}

}  // namespace ramify
