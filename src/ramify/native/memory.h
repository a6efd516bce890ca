// Large arrays on large pages: tables with random access would otherwise spend their time on address translation.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace ramify {

constexpr size_t kLargePage = size_t{1} << 21, kLarge = size_t{1} << 20;

template <class T>
struct LargePages {
  using value_type = T;

  LargePages() = default;
  template <class Other>
  LargePages(const LargePages<Other> &) {}

  T *allocate(size_t n) {
    const size_t bytes = n * sizeof(T);
#if defined(__SANITIZE_ADDRESS__)  // exactly as much as was asked for, so that nothing beyond can be read unnoticed
    void *exact = nullptr;
    if (posix_memalign(&exact, 64, bytes)) throw std::bad_alloc();
    return static_cast<T *>(exact);
#else
    const bool is_large = bytes >= kLarge;
    const size_t page = is_large ? kLargePage : 64;
    void *memory = std::aligned_alloc(page, (bytes + page - 1) / page * page);
    if (!memory) throw std::bad_alloc();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (is_large) madvise(memory, (bytes + page - 1) / page * page, MADV_HUGEPAGE);  // a hint: small pages work, too
#endif
    return static_cast<T *>(memory);
#endif
  }
  void deallocate(T *memory, size_t) { std::free(memory); }
};

template <class T, class Other>
bool operator==(const LargePages<T> &, const LargePages<Other> &) { return true; }
template <class T, class Other>
bool operator!=(const LargePages<T> &, const LargePages<Other> &) { return false; }

// Aligned to a cache line, whatever its size.
template <class T>
using Large = std::vector<T, LargePages<T>>;

}  // namespace ramify
