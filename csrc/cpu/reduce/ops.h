// The operations of run.h. merge and map are written once for scalars and vectors.
#pragma once
#include <cmath>
#include <limits>

#include "backend/reduce.h"
#include "base/check.h"
#include "cpu/reduce/run.h"
#include "cpu/simd/arith.h"

namespace rl::RL_ISA {

template <class T> inline constexpr bool is_real_float = __is_same(T, float) || __is_same(T, double);

// Integers add and multiply modulo 2^64.
template <class T> [[gnu::always_inline]] inline T wrap_add(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else return a + b;
}
template <class T> [[gnu::always_inline]] inline T wrap_mul(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else if constexpr (is_complex_v<T>) return mul_(a, b);
  else return a * b;
}

// Sums and extremes run on vectors of these.
template <class T> inline constexpr bool is_vector_part = is_real_float<T> || __is_same(T, int64_t);

template <class A, class P = A, bool vector = is_vector_part<A>> struct Op {
  using Acc = A;
  using Part = P;
  static constexpr bool kVector = vector, kOrders = false;
  static constexpr int64_t kRun = kBlock;  // of elements that lie side by side: sums are short, for their accuracy
};

template <class A> struct SumOp : Op<A> {
  static constexpr bool kWidens = std::is_same_v<A, float>;
  template <class X> [[gnu::always_inline]] X map(X x) const { return x; }
  template <class X> [[gnu::always_inline]] X merge(X a, X b) const { return wrap_add(a, b); }
  A empty() const { return A(0); }
};
template <class A> struct SquaresOp : SumOp<A> {
  template <class X> [[gnu::always_inline]] X map(X x) const { return x * x; }
};
template <class A> struct ProdOp : Op<A> {
  static constexpr int64_t kRun = 16 * kBlock;
  template <class X> [[gnu::always_inline]] X map(X x) const { return x; }
  template <class X> [[gnu::always_inline]] X merge(X a, X b) const { return wrap_mul(a, b); }
  A empty() const { return A(1); }
};

// A NaN on either side wins: the comparison with NaN is false, so b is taken unless a itself is NaN.
template <class A> struct MaxOp : Op<A> {
  static constexpr bool kOrders = true;
  static constexpr int64_t kRun = 16 * kBlock;
  template <class X> [[gnu::always_inline]] X map(X x) const { return x; }
  template <class X> [[gnu::always_inline]] X merge_values(X a, X b) const { return a > b ? a : b; }
  template <class X> [[gnu::always_inline]] X merge(X a, X b) const {
    X m = merge_values(a, b);
    if constexpr (std::is_integral_v<X>) return m;
    else return a == a ? m : a;
  }
  A empty() const { return A(0); }
};
template <class A> struct MinOp : MaxOp<A> {
  template <class X> [[gnu::always_inline]] X merge_values(X a, X b) const { return a < b ? a : b; }
  template <class X> [[gnu::always_inline]] X merge(X a, X b) const {
    X m = merge_values(a, b);
    if constexpr (std::is_integral_v<X>) return m;
    else return a == a ? m : a;
  }
  A empty() const { return std::numeric_limits<A>::has_infinity ? std::numeric_limits<A>::infinity() : A(0); }
};

// Truth, on elements that are 0 or 1.
struct AnyOp : Op<uint8_t, uint8_t, false> {
  template <class X> [[gnu::always_inline]] X map(X x) const { return x; }
  template <class X> [[gnu::always_inline]] X merge(X a, X b) const { return a | b; }
  uint8_t empty() const { return 0; }
};
struct AllOp : AnyOp {
  template <class X> [[gnu::always_inline]] X merge(X a, X b) const { return a & b; }
  uint8_t empty() const { return 1; }
};
struct CountOp : Op<int64_t, int32_t, false> {
  [[gnu::always_inline]] int32_t map(uint8_t x) const { return x; }
  template <class X> [[gnu::always_inline]] X merge(X a, X b) const { return a + b; }
  int64_t empty() const { return 0; }
};
struct XorOp : Op<int64_t> {
  template <class X> [[gnu::always_inline]] X map(X x) const { return x; }
  template <class X> [[gnu::always_inline]] X merge(X a, X b) const { return a ^ b; }
  int64_t empty() const { return 0; }
};

// One file per group of types; false when the group has no such operation.
bool reduce_float(Reduce op, const View& out, const View& in, double p);   // and half, and norms of complex64
bool reduce_double(Reduce op, const View& out, const View& in, double p);  // and norms of complex128
bool reduce_int(Reduce op, const View& out, const View& in);               // and bool
bool reduce_truth(Reduce op, const View& out, const View& in);             // Any, All, CountNonzero of every type
bool reduce_complex(Reduce op, const View& out, const View& in);

// The number of elements that make one result.
inline double reduced_count(const View& out, const View& in) {
  double n = 1;
  for (int i = 0; i < in.ndim; ++i)
    if (out.sizes[i] != in.sizes[i]) n *= static_cast<double>(in.sizes[i]);
  return n;
}

}  // namespace rl::RL_ISA
