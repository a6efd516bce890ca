// A set of features as bits.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ramify {

// Features in rising order, each once, however often it was added.
class FeatureSet {
 public:
  explicit FeatureSet(size_t n_features) : bits_(n_features / 64 + 1, 0) {}
  void add(size_t f) { bits_[f / 64] |= uint64_t{1} << (f % 64); }

  void add_all(const FeatureSet &other) {
    for (size_t word = 0; word < bits_.size(); ++word) bits_[word] |= other.bits_[word];
  }
  void clear() { std::fill(bits_.begin(), bits_.end(), uint64_t{0}); }

  // Calls `work` on every feature and empties the set.
  template <class Work>
  void drain(Work work) {
    for (size_t word = 0; word < bits_.size(); ++word)
      for (uint64_t &left = bits_[word]; left; left &= left - 1)
        work(word * 64 + static_cast<size_t>(__builtin_ctzll(left)));
  }

 private:
  std::vector<uint64_t> bits_;
};

}  // namespace ramify
