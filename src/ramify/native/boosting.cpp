// AdaBoost.MH over the presence of terms.
//
// A round multiplies the weight of a pair of document and class by a factor that depends on the class, on whether the label is
// right, and on whether the document has the pivot. So the factor of documents without the pivot is a scale of the class,
// and only the documents that have it are touched: their changes are added to the sums of their terms. A weight is
// scale[class, sign] * base[document, class]; sums are those of the bases.
#include "boosting.h"

#include <algorithm>
#include <cmath>

#include "dispatch.h"
#include "memory.h"

namespace ramify {
namespace {

constexpr size_t kLanes = 4;
constexpr double kTie = 1e-9;        // terms whose criterion is within this of the least are tied: the first is chosen
constexpr double kNoGain = 1e-12;    // a round that lowers the sum of the weights by less gains nothing
constexpr double kShrunk = 1.0 / 8;  // sums of a class that fell so far are computed again, before rounding shows,
constexpr double kRelevant = 1e-2;   // if their peak weighs so much
constexpr double kHuge = 1e100;      // no scale goes beyond this, or below its inverse

using Doubles = Large<double>;

// Bases summed over the documents of a term, per class: of right and of wrong labels. Lanes beyond the classes are 0.
struct Sums {
  Doubles yes, no;
  void assign(size_t n) { yes.assign(n, 0.0), no.assign(n, 0.0); }
};

// Per class, padded: the scale of a base of each sign, and the sums over all documents.
struct Classes {
  Doubles yes_scale, no_scale, joint_scale, yes_total, no_total, yes_peak, no_peak;
};

struct RealCriterion {
  // sum over classes of sqrt(yes * no), where the term is present and where it is absent, doubled
  static inline void add(double *sum, const double *yes, const double *no, const Classes &c, size_t j) {
    for (size_t l = 0; l < kLanes; ++l) {
      const double present = std::sqrt(std::max(yes[l] * no[l], 0.0));
      const double absent = std::max(c.yes_total[j + l] - yes[l], 0.0) * std::max(c.no_total[j + l] - no[l], 0.0);
      sum[l] += 2 * c.joint_scale[j + l] * (present + std::sqrt(absent));
    }
  }
  static double finish(double sum) { return sum; }
};

struct AbstainingCriterion {
  // where the term is present, the square roots; where it is absent, the weight as it is
  static inline void add(double *sum, const double *yes, const double *no, const Classes &c, size_t j) {
    for (size_t l = 0; l < kLanes; ++l) {
      const double present = std::sqrt(std::max(yes[l] * no[l], 0.0));
      const double unchanged = c.yes_scale[j + l] * (c.yes_total[j + l] - yes[l]) + c.no_scale[j + l] * (c.no_total[j + l] - no[l]);
      sum[l] += 2 * c.joint_scale[j + l] * present + unchanged;
    }
  }
  static double finish(double sum) { return sum; }
};

struct DiscreteCriterion {
  // the weight of the lighter sign, where the term is present and where it is absent
  static inline void add(double *sum, const double *yes, const double *no, const Classes &c, size_t j) {
    for (size_t l = 0; l < kLanes; ++l) {
      const double yes_absent = c.yes_scale[j + l] * std::max(c.yes_total[j + l] - yes[l], 0.0);
      const double no_absent = c.no_scale[j + l] * std::max(c.no_total[j + l] - no[l], 0.0);
      const double yes_present = c.yes_scale[j + l] * std::max(yes[l], 0.0), no_present = c.no_scale[j + l] * std::max(no[l], 0.0);
      sum[l] += std::min(yes_present, no_present) + std::min(yes_absent, no_absent);
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
RAMIFY_WIDE_CLONES void evaluate_real(const Sums &sums, const Classes &c, size_t n_terms, size_t width, double *z) {
  for (size_t k = 0; k < n_terms; ++k)
    z[k] = criterion_of<RealCriterion>(sums.yes.data() + k * width, sums.no.data() + k * width, c, width);
}
RAMIFY_WIDE_CLONES void evaluate_abstaining(const Sums &sums, const Classes &c, size_t n_terms, size_t width, double *z) {
  for (size_t k = 0; k < n_terms; ++k)
    z[k] = criterion_of<AbstainingCriterion>(sums.yes.data() + k * width, sums.no.data() + k * width, c, width);
}
RAMIFY_WIDE_CLONES void evaluate_discrete(const Sums &sums, const Classes &c, size_t n_terms, size_t width, double *z) {
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
  Booster(const BoostProblem &problem, BoostVariant variant, double epsilon, double *weights)
      : problem_(problem), variant_(variant), epsilon_(epsilon), base_(weights),
        width_((problem.n_classes() + kLanes - 1) / kLanes * kLanes), z_(problem.n_terms()), change_(width_) {
    sums_.assign(problem.n_terms() * width_);
    for (Doubles *part : {&all_.yes_scale, &all_.no_scale, &all_.joint_scale}) part->assign(width_, 1.0);
    all_.yes_total.assign(width_, 0.0), all_.no_total.assign(width_, 0.0);
    for (Doubles *part : {&pivot_yes_, &pivot_no_, &absent_, &present_}) part->assign(width_, 0.0);
    for (size_t d = 0; d < problem.n_documents(); ++d) {
      const double *row = base_ + d * problem.n_classes();
      std::copy(row, row + problem.n_classes(), change_.begin());
      add_changes(d);
    }
    all_.yes_peak = all_.yes_total, all_.no_peak = all_.no_total;
  }

  // One round; false where it would gain nothing.
  bool run(size_t round, const BoostRounds &rounds) {
    const size_t pivot = find_pivot(), m = problem_.n_classes();
    read_sums(pivot);
    vote();
    if (!problem_.n_terms()) present_ = absent_;  // without terms both votes are the same
    const double normalizer = normalizer_of_votes();
    if (!(normalizer < 1 - kNoGain)) return false;
    rounds.pivots[round] = static_cast<int32_t>(pivot);
    std::copy(absent_.begin(), absent_.begin() + static_cast<std::ptrdiff_t>(m), rounds.absent + round * m);
    std::copy(present_.begin(), present_.begin() + static_cast<std::ptrdiff_t>(m), rounds.present + round * m);
    rounds.z[round] = criterion();
    rounds.normalizers[round] = normalizer;
    reweigh(pivot, normalizer);
    refresh_shrunk();
    return true;
  }

  // Whether a scale has become so large or small that bases lose digits.
  bool needs_rescaling() const {
    const auto is_far = [](double scale) { return scale > kHuge || scale < 1 / kHuge; };
    return std::any_of(all_.yes_scale.begin(), all_.yes_scale.end(), is_far) ||
           std::any_of(all_.no_scale.begin(), all_.no_scale.end(), is_far);
  }

  // Turns bases into weights that add up to one.
  void finish() {
    double sum = 0;
    for (size_t d = 0; d < problem_.n_documents(); ++d) {
      double *row = base_ + d * problem_.n_classes();
      const int32_t *label = problem_.labels.begin(d), *end = problem_.labels.end(d);
      for (size_t j = 0; j < problem_.n_classes(); ++j) {
        const bool yes = label != end && *label == static_cast<int32_t>(j);
        row[j] *= yes ? all_.yes_scale[j] : all_.no_scale[j];
        label += yes;
        sum += row[j];
      }
    }
    for (size_t i = 0; i < problem_.n_documents() * problem_.n_classes(); ++i) base_[i] /= sum;
  }

 private:
  size_t find_pivot() {
    for (size_t j = 0; j < width_; ++j) all_.joint_scale[j] = std::sqrt(all_.yes_scale[j]) * std::sqrt(all_.no_scale[j]);
    if (!problem_.n_terms()) return 0;
    const auto evaluate = variant_ == BoostVariant::real ? evaluate_real : variant_ == BoostVariant::abstaining ? evaluate_abstaining : evaluate_discrete;
    evaluate(sums_, all_, problem_.n_terms(), width_, z_.data());
    const auto best = std::min_element(z_.begin(), z_.end());  // the first one, where all are NaN
    const auto first = std::find_if(z_.begin(), best, [&](double z) { return z <= *best * (1 + kTie); });
    return static_cast<size_t>(first - z_.begin());
  }

  // The criterion of the pivot.
  double criterion() const {
    const double *yes = pivot_yes_.data(), *no = pivot_no_.data();
    if (variant_ == BoostVariant::real) return criterion_of<RealCriterion>(yes, no, all_, width_);
    if (variant_ == BoostVariant::abstaining) return criterion_of<AbstainingCriterion>(yes, no, all_, width_);
    return criterion_of<DiscreteCriterion>(yes, no, all_, width_);
  }

  // The sums of the pivot. Where all documents of a class have it, they are those of all documents to the last bit, since
  // the same numbers were added in the same order: nothing is left where it is absent, not even rounding.
  void read_sums(size_t pivot) {
    if (!problem_.n_terms()) return;
    std::copy_n(sums_.yes.begin() + static_cast<std::ptrdiff_t>(pivot * width_), width_, pivot_yes_.begin());
    std::copy_n(sums_.no.begin() + static_cast<std::ptrdiff_t>(pivot * width_), width_, pivot_no_.begin());
  }

  double yes_present(size_t j) const { return all_.yes_scale[j] * std::max(pivot_yes_[j], 0.0); }
  double no_present(size_t j) const { return all_.no_scale[j] * std::max(pivot_no_[j], 0.0); }
  double yes_absent(size_t j) const { return all_.yes_scale[j] * std::max(all_.yes_total[j] - pivot_yes_[j], 0.0); }
  double no_absent(size_t j) const { return all_.no_scale[j] * std::max(all_.no_total[j] - pivot_no_[j], 0.0); }

  void vote() {
    if (variant_ == BoostVariant::discrete) return vote_discretely();
    for (size_t j = 0; j < problem_.n_classes(); ++j) {
      present_[j] = real_vote(yes_present(j), no_present(j));
      absent_[j] = variant_ == BoostVariant::abstaining ? 0.0 : real_vote(yes_absent(j), no_absent(j));
    }
  }

  // Half the log-odds; 0 where they are 0 but for rounding.
  double real_vote(double yes, double no) const {
    const double odds = (yes + epsilon_) / (no + epsilon_);
    return std::abs(odds - 1) < kNoGain ? 0.0 : 0.5 * std::log(odds);
  }

  void vote_discretely() {
    double lighter = 0;
    for (size_t j = 0; j < problem_.n_classes(); ++j)
      lighter += std::min(yes_present(j), no_present(j)) + std::min(yes_absent(j), no_absent(j));
    const double alpha = 0.5 * std::log((2 * (1 - lighter) + epsilon_) / (2 * lighter + epsilon_));
    for (size_t j = 0; j < problem_.n_classes(); ++j) {
      present_[j] = yes_present(j) > no_present(j) * (1 + kTie) ? alpha : -alpha;
      absent_[j] = yes_absent(j) > no_absent(j) * (1 + kTie) ? alpha : -alpha;
    }
  }

  double normalizer_of_votes() const {
    double sum = 0;
    for (size_t j = 0; j < problem_.n_classes(); ++j) {
      sum += yes_present(j) * std::exp(-present_[j]) + no_present(j) * std::exp(present_[j]);
      sum += yes_absent(j) * std::exp(-absent_[j]) + no_absent(j) * std::exp(absent_[j]);
    }
    return sum;
  }

  // Absent votes go into the scales; documents with the pivot get the difference.
  void reweigh(size_t pivot, double normalizer) {
    for (size_t j = 0; j < problem_.n_classes(); ++j) {
      all_.yes_scale[j] *= std::exp(-absent_[j]) / normalizer;
      all_.no_scale[j] *= std::exp(absent_[j]) / normalizer;
      present_[j] = std::exp(present_[j] - absent_[j]);  // from here on, the factor of a base whose label is wrong
    }
    if (!problem_.n_terms()) return;
    for (const int32_t *document = problem_.documents.begin(pivot); document != problem_.documents.end(pivot); ++document) {
      const auto d = static_cast<size_t>(*document);
      double *row = base_ + d * problem_.n_classes();
      for (size_t j = 0; j < problem_.n_classes(); ++j) change_[j] = row[j] * present_[j];
      for (const int32_t *label = problem_.labels.begin(d); label != problem_.labels.end(d); ++label) {
        const auto j = static_cast<size_t>(*label);
        change_[j] = row[j] / present_[j];
      }
      for (size_t j = 0; j < problem_.n_classes(); ++j) {
        const double before = row[j];
        row[j] = change_[j];
        change_[j] -= before;
      }
      add_changes(d);
    }
    for (size_t j = 0; j < problem_.n_classes(); ++j) {
      all_.yes_peak[j] = std::max(all_.yes_peak[j], all_.yes_total[j]);
      all_.no_peak[j] = std::max(all_.no_peak[j], all_.no_total[j]);
    }
  }

  void refresh_shrunk() {
    for (size_t j = 0; j < problem_.n_classes(); ++j) {
      if (all_.yes_total[j] < kShrunk * all_.yes_peak[j] && all_.yes_scale[j] * all_.yes_peak[j] > kRelevant)
        refresh(j, true, sums_.yes, all_.yes_total, all_.yes_peak);
      if (all_.no_total[j] < kShrunk * all_.no_peak[j] && all_.no_scale[j] * all_.no_peak[j] > kRelevant)
        refresh(j, false, sums_.no, all_.no_total, all_.no_peak);
    }
  }

  // Sums the bases of one class again, those of right or of wrong labels.
  void refresh(size_t j, bool right, Doubles &sums, Doubles &totals, Doubles &peaks) {
    for (size_t k = 0; k < problem_.n_terms(); ++k) sums[k * width_ + j] = 0;
    totals[j] = 0;
    for (size_t d = 0; d < problem_.n_documents(); ++d) {
      const int32_t *labels = problem_.labels.begin(d), *end = problem_.labels.end(d);
      if (std::binary_search(labels, end, static_cast<int32_t>(j)) != right) continue;
      const double base = base_[d * problem_.n_classes() + j];
      totals[j] += base;
      for (const int32_t *term = problem_.terms.begin(d); term != problem_.terms.end(d); ++term)
        sums[static_cast<size_t>(*term) * width_ + j] += base;
    }
    peaks[j] = totals[j];
  }

  // Adds the changes of one document's bases to the sums over all documents and over those of its terms.
  void add_changes(size_t d) {
    const int32_t *terms = problem_.terms.begin(d);
    const size_t n = problem_.terms.length(d);
    for (const int32_t *label = problem_.labels.begin(d); label != problem_.labels.end(d); ++label) {
      const auto j = static_cast<size_t>(*label);
      all_.yes_total[j] += change_[j];
      for (size_t p = 0; p < n; ++p) sums_.yes[static_cast<size_t>(terms[p]) * width_ + j] += change_[j];
      change_[j] = 0;
    }
    for (size_t j = 0; j < problem_.n_classes(); ++j) all_.no_total[j] += change_[j];
    add_to_rows(terms, n, change_.data(), width_, sums_.no.data());
  }

  const BoostProblem &problem_;
  const BoostVariant variant_;
  const double epsilon_;
  double *base_;
  const size_t width_;
  std::vector<double> z_;
  Doubles change_, pivot_yes_, pivot_no_, absent_, present_;
  Sums sums_;
  Classes all_;
};

}  // namespace

size_t boost_in_place(const BoostProblem &problem, BoostVariant variant, double epsilon, double *weights,
                      const BoostRounds &rounds) {
  size_t done = 0;
  bool is_learning = true;
  while (is_learning && done < rounds.n_rounds) {
    Booster booster(problem, variant, epsilon, weights);
    while (is_learning && done < rounds.n_rounds && !booster.needs_rescaling()) {
      is_learning = booster.run(done, rounds);
      done += is_learning;
    }
    booster.finish();
  }
  return done;
}

}  // namespace ramify
