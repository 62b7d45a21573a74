// What integers are multiplied and added as, and the GEMVs of them.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cpu/isa.h"

namespace rl::avx512 {
template <class T, class U>
void int_gemv(const T* matrix, int64_t rs, int64_t cs, const U* x, int64_t n, int64_t k, U* sums);
}

namespace rl::RL_ISA {
namespace {

// What GEMMs accumulate in: it wraps, and its lower bits are the result's. Processors multiply no vectors of bytes.
template <class T> struct wrap {
  using type = std::conditional_t<sizeof(T) == 1, uint16_t, std::make_unsigned_t<T>>;
};
template <> struct wrap<bool> {
  using type = uint8_t;
};

// Unsigned and not promoted: arithmetic in it wraps.
template <class T> using accumulator_t = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T> inline constexpr bool is_integer = std::is_integral_v<T>;
template <class T> T times(T x, T y) {
  if constexpr (std::is_same_v<T, bool>) return x && y;
  else if constexpr (is_integer<T>)
    return static_cast<T>(static_cast<accumulator_t<T>>(x) * static_cast<accumulator_t<T>>(y));
  else return x * y;
}
template <class T> T plus(T x, T y) {
  if constexpr (std::is_same_v<T, bool>) return x || y;
  else if constexpr (is_integer<T>)
    return static_cast<T>(static_cast<accumulator_t<T>>(x) + static_cast<accumulator_t<T>>(y));
  else return x + y;
}

// sums (n) = matrix (n, k) @ x, whose rows or columns have unit stride.
template <class T, class U> [[gnu::always_inline]] inline void int_gemv_of(const T* matrix, int64_t rs, int64_t cs,
                                                                           const U* x, int64_t n, int64_t k, U* sums) {
  auto added = [](U sum, T a, U b) {
    if constexpr (std::is_same_v<T, bool>) return static_cast<U>(sum | (static_cast<U>(a) & b));
    else return plus(sum, times(static_cast<U>(a), b));
  };
  if (cs == 1) {
    for (int64_t i = 0; i < n; ++i) {
      U sum = 0;
      for (int64_t p = 0; p < k; ++p) sum = added(sum, matrix[i * rs + p], x[p]);
      sums[i] = sum;
    }
    return;
  }
  std::memset(sums, 0, static_cast<size_t>(n) * sizeof(U));
  for (int64_t p = 0; p < k; ++p) {
    const T* column = matrix + p * cs;
    const U factor = x[p];
    if (rs == 1) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) sums[i] = added(sums[i], column[i], factor);
    } else {
      for (int64_t i = 0; i < n; ++i) sums[i] = added(sums[i], column[i * rs], factor);
    }
  }
}

}  // namespace
}  // namespace rl::RL_ISA
