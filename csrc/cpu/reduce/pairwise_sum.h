// Sums of runs of elements: eight or more partial sums side by side, blocks added in double.
#pragma once
#include <cstdint>
#include <type_traits>

#include "base/dtype.h"
#include "cpu/isa.h"
#include "cpu/simd/vec.h"

namespace rl::RL_ISA {
namespace {

inline constexpr int kSums = 16;

// The sum of the lanes, pairwise.
template <class C> [[gnu::always_inline]] inline C fold(C* lanes) {
#pragma GCC unroll 4
  for (int w = kSums / 2; w > 0; w /= 2)
    for (int l = 0; l < w; ++l) lanes[l] += lanes[l + w];
  return lanes[0];
}

// The sum of f(i) for i in [0, n); C is float or double.
template <class C, class F> [[gnu::always_inline]] inline double sum_of(int64_t n, F&& f) {
  double total = 0;
  for (int64_t i = 0; i < n;) {
    int64_t end = n - i > 4096 ? i + 4096 : n;
    C sum = 0;
    if (end - i >= kSums) {
      C lanes[kSums] = {};
      for (; i + kSums <= end; i += kSums)
        for (int l = 0; l < kSums; ++l) lanes[l] += f(i + l);
      sum = fold(lanes);
    }
    C rest = 0;
    for (; i < end; ++i) rest += f(i);
    total += rest + sum;
  }
  return total;
}

// One element as a U = C, or as many as a vector U = Vec<C> has.
template <class U, class T> [[gnu::always_inline]] inline U read_as(const T* p) {
  if constexpr (std::is_arithmetic_v<U>) {
    return static_cast<U>(*p);
  } else {
    return load_vec(p);
  }
}
// Two sums at once: f(i, x, y) adds element i to x and y, or as many from i as they have lanes. In vectors of our own:
// the compiler makes none of two sums.
template <class C, class F> [[gnu::always_inline]] inline void two_sums_of(int64_t n, F&& f, double* a, double* b) {
  constexpr int kVectors = kSums / kLanes<C>;
  double ta = 0, tb = 0;
  for (int64_t i = 0; i < n;) {
    const int64_t end = n - i > 4096 ? i + 4096 : n;
    Vec<C> va[kVectors] = {}, vb[kVectors] = {};
    for (; i + kSums <= end; i += kSums)
#pragma GCC unroll 8
      for (int k = 0; k < kVectors; ++k) f(i + k * kLanes<C>, va[k], vb[k]);
    C sa = 0, sb = 0, la[kSums], lb[kSums];
    for (; i < end; ++i) f(i, sa, sb);
    for (int k = 0; k < kVectors; ++k) store_vec(la + k * kLanes<C>, va[k]), store_vec(lb + k * kLanes<C>, vb[k]);
    ta += sa + fold(la), tb += sb + fold(lb);
  }
  *a = ta, *b = tb;
}

// to[i] = f(i, U{}) for i in [0, n): U is the computing type, or a vector of it for as many elements as that has. In
// vectors of our own: the compiler makes none of float16. Roundings to bfloat16 are many steps, which wider registers
// take for a block at a time.
template <class T, class F> [[gnu::always_inline]] inline void map_vectors(int64_t n, T* to, F&& f) {
  using C = compute_t<T>;
  constexpr int64_t kBlock = 512;
  if constexpr (std::is_same_v<T, bfloat16>) {
    alignas(64) float buffer[kBlock];
    for (int64_t first = 0; first < n; first += kBlock) {
      const int64_t count = n - first < kBlock ? n - first : kBlock;
      map_vectors(count, buffer, [&](int64_t i, auto like) { return f(first + i, like); });
      narrow(buffer, to + first, count);
    }
  } else {
    int64_t i = 0;
#pragma GCC unroll 4
    for (; i + kLanes<C> <= n; i += kLanes<C>) store_vec(to + i, f(i, Vec<C>{}));
    for (; i < n; ++i) to[i] = static_cast<T>(f(i, C(0)));
  }
}

template <class F> void visit_float(DType t, F&& f) {
  switch (t) {
    case DType::Float32: return f(type_tag<float>{});
    case DType::Float64: return f(type_tag<double>{});
    case DType::Float16: return f(type_tag<float16>{});
    case DType::BFloat16: return f(type_tag<bfloat16>{});
    default: fail(ErrorKind::NotImplemented, "normalisation: there is no kernel for '", info(t).legacy, "'");
  }
}

template <class C> C* data_or_null(const View* v) { return v ? v->as<C>() : nullptr; }

}  // namespace
}  // namespace rl::RL_ISA
