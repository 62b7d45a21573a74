// The operations of reduce_run.h. merge and map are written once for scalars and vectors.
#pragma once
#include <cmath>
#include <limits>

#include "backend/reduce.h"
#include "base/check.h"
#include "cpu/reduce_run.h"

namespace rl::RL_ISA {

template <class T> inline constexpr bool is_real_float = __is_same(T, float) || __is_same(T, double);

// Integers add and multiply modulo 2^64.
template <class T> [[gnu::always_inline]] inline T wrap_add(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else return a + b;
}
template <class T> [[gnu::always_inline]] inline T wrap_mul(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else return a * b;
}

template <class A, class P = A, bool vector = is_real_float<A>> struct Op {
  using Acc = A;
  using Part = P;
  static constexpr bool kVector = vector, kOrders = false;
  A finish(A a) const { return a; }
};

template <class A> struct SumOp : Op<A> {
  template <class X> [[gnu::always_inline]] X map(X x) const { return x; }
  template <class X> [[gnu::always_inline]] X merge(X a, X b) const { return wrap_add(a, b); }
  A empty() const { return A(0); }
};
// Sums of integers: P is wide enough for a block.
template <class P> struct IntSumOp : Op<int64_t, P> {
  template <class X> [[gnu::always_inline]] P map(X x) const { return static_cast<P>(x); }
  template <class X> [[gnu::always_inline]] X merge(X a, X b) const { return wrap_add(a, b); }
  int64_t empty() const { return 0; }
};
template <class A> struct NanSumOp : SumOp<A> {
  template <class X> [[gnu::always_inline]] X map(X x) const { return x == x ? x : X{}; }
};
template <class A> struct MeanOp : SumOp<A> {
  double count;
  explicit MeanOp(double n) : count(n) {}
  A finish(A a) const {
    if constexpr (is_complex_v<A>) return a / static_cast<typename A::value_type>(count);
    else return a / static_cast<A>(count);
  }
};
template <class A> struct ProdOp : Op<A> {
  template <class X> [[gnu::always_inline]] A map(X x) const
    requires std::is_integral_v<A>
  {
    return static_cast<A>(x);
  }
  template <class X> [[gnu::always_inline]] X map(X x) const
    requires(!std::is_integral_v<A>)
  {
    return x;
  }
  template <class X> [[gnu::always_inline]] X merge(X a, X b) const { return wrap_mul(a, b); }
  A empty() const { return A(1); }
};

// A NaN on either side wins: the comparison with NaN is false, so b is taken unless a itself is NaN.
template <class A> struct MaxOp : Op<A> {
  static constexpr bool kOrders = true;
  template <class X> [[gnu::always_inline]] X map(X x) const { return x; }
  template <class X> [[gnu::always_inline]] X merge_numbers(X a, X b) const { return a > b ? a : b; }
  template <class X> [[gnu::always_inline]] X merge(X a, X b) const {
    X m = merge_numbers(a, b);
    if constexpr (std::is_integral_v<X>) return m;
    else return a == a ? m : a;
  }
  A empty() const { return std::numeric_limits<A>::lowest(); }
};
template <class A> struct MinOp : Op<A> {
  static constexpr bool kOrders = true;
  template <class X> [[gnu::always_inline]] X map(X x) const { return x; }
  template <class X> [[gnu::always_inline]] X merge_numbers(X a, X b) const { return a < b ? a : b; }
  template <class X> [[gnu::always_inline]] X merge(X a, X b) const {
    X m = merge_numbers(a, b);
    if constexpr (std::is_integral_v<X>) return m;
    else return a == a ? m : a;
  }
  A empty() const { return std::numeric_limits<A>::max(); }
};

struct AnyOp : Op<uint8_t, uint8_t, false> {
  template <class X> [[gnu::always_inline]] uint8_t map(X x) const { return x != X(0); }
  template <class X> [[gnu::always_inline]] X merge(X a, X b) const { return a | b; }
  uint8_t empty() const { return 0; }
};
struct AllOp : Op<uint8_t, uint8_t, false> {
  template <class X> [[gnu::always_inline]] uint8_t map(X x) const { return x != X(0); }
  template <class X> [[gnu::always_inline]] X merge(X a, X b) const { return a & b; }
  uint8_t empty() const { return 1; }
};
struct CountOp : Op<int64_t, int32_t, false> {
  template <class X> [[gnu::always_inline]] int32_t map(X x) const { return x != X(0); }
  template <class X> [[gnu::always_inline]] X merge(X a, X b) const { return a + b; }
  int64_t empty() const { return 0; }
};

// Norms. A is the real accumulator; elements are A or complex<A>.
template <class X> [[gnu::always_inline]] inline auto magnitude(X x) {
  if constexpr (is_complex_v<X>) return std::abs(x);
  else return x < X{} ? -x : x;
}
template <class A, bool vector> struct Norm1Op : Op<A, A, vector> {
  template <class X> [[gnu::always_inline]] auto map(X x) const { return magnitude(x); }
  template <class X> [[gnu::always_inline]] X merge(X a, X b) const { return a + b; }
  A empty() const { return A(0); }
};
template <class A, bool vector> struct SquaresOp : Norm1Op<A, vector> {
  template <class X> [[gnu::always_inline]] auto map(X x) const {
    if constexpr (is_complex_v<X>) return x.real() * x.real() + x.imag() * x.imag();
    else return x * x;
  }
};
template <class A, bool vector> struct Norm2Op : SquaresOp<A, vector> {
  A finish(A a) const { return std::sqrt(a); }
};
template <class A> struct Norm0Op : Op<A, A, false> {
  template <class X> [[gnu::always_inline]] A map(X x) const { return x != X(0) ? A(1) : A(0); }
  template <class X> [[gnu::always_inline]] X merge(X a, X b) const { return a + b; }
  A empty() const { return A(0); }
};
template <class A, bool vector> struct NormInfOp : MaxOp<A> {
  static constexpr bool kVector = vector;
  template <class X> [[gnu::always_inline]] auto map(X x) const { return magnitude(x); }
  A empty() const { return A(0); }
};
template <class A, bool vector> struct NormNegInfOp : MinOp<A> {
  static constexpr bool kVector = vector;
  template <class X> [[gnu::always_inline]] auto map(X x) const { return magnitude(x); }
  A empty() const { return std::numeric_limits<A>::infinity(); }
};
template <class A> struct NormPOp : Norm0Op<A> {
  A p;
  explicit NormPOp(double power) : p(static_cast<A>(power)) {}
  template <class X> [[gnu::always_inline]] A map(X x) const { return std::pow(magnitude(x), p); }
  A finish(A a) const { return std::pow(a, 1 / p); }
};

// The one sum a result is the mean of.
inline double reduced_count(const View& out, const View& in) {
  double n = 1;
  for (int i = 0; i < in.ndim; ++i)
    if (out.sizes[i] != in.sizes[i]) n *= static_cast<double>(in.sizes[i]);
  return n;
}

template <class A> StoreResults<A> store_real(DType out) {
  switch (out) {
    case DType::Float16: return store_results<A, float16>;
    case DType::BFloat16: return store_results<A, bfloat16>;
    case DType::Float32: return store_results<A, float>;
    default: return store_results<A, double>;
  }
}
inline StoreResults<int64_t> store_int64(DType out) {
  switch (out) {
    case DType::Bool: return store_results<int64_t, bool>;
    case DType::UInt8: return store_results<int64_t, uint8_t>;
    case DType::Int8: return store_results<int64_t, int8_t>;
    case DType::Int16: return store_results<int64_t, int16_t>;
    case DType::Int32: return store_results<int64_t, int32_t>;
    default: return store_results<int64_t, int64_t>;
  }
}
inline StoreResults<uint8_t> store_bool(DType out) {
  return out == DType::UInt8 ? store_results<uint8_t, uint8_t> : store_results<uint8_t, bool>;
}

// One file per group of types; false when the group has no such operation.
bool reduce_float(Reduce op, const View& out, const View& in, double p);
bool reduce_half(Reduce op, const View& out, const View& in, double p);
bool reduce_int(Reduce op, const View& out, const View& in);
bool reduce_complex(Reduce op, const View& out, const View& in, double p);

}  // namespace rl::RL_ISA
