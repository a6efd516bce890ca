// What learning mixture weights and scoring with them share.
#pragma once
#include "kernels.h"

namespace ramify {

// The value of a unit in a sorted sparse row; 0 where it is not there.
template <typename T>
inline double value_of(const int64_t *offsets, const int32_t *units, const T *values, size_t row, int32_t unit) {
  const int32_t *first = units + offsets[row], *last = units + offsets[row + 1];
  const int32_t *found = std::lower_bound(first, last, unit);
  return found != last && *found == unit ? static_cast<double>(values[found - units]) : 0.0;
}

// The natural logarithm of positive numbers, in place, to some 1e-14.
void take_logs(double *x, size_t n);

}  // namespace ramify
