// Arithmetic that has one machine instruction or so per element: sums, products, quotients, bits.
#include "cpu/elementwise/pointwise.h"
#include "cpu/isa.h"
#include "cpu/simd/arith.h"

namespace rl::RL_ISA {
namespace {

using c64 = std::complex<float>;
using c128 = std::complex<double>;

constexpr auto kAdd = [](auto x, auto y) { return static_cast<decltype(x)>(x + y); };
constexpr auto kSub = [](auto x, auto y) { return static_cast<decltype(x)>(x - y); };
constexpr auto kAddScaled = [](auto x, auto y, const auto& p) { return mul_add(p.s0, y, x); };
constexpr auto kSubScaled = [](auto x, auto y, const auto& p) {
  if constexpr (std::is_floating_point_v<decltype(x)>) return fma(-p.s0, y, x);
  else return static_cast<decltype(x)>(x - mul_(p.s0, y));
};
constexpr auto kMul = [](auto x, auto y) { return mul_(x, y); };

template <class T> RL_INLINE T maximum(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    const T m = x < y ? y : x;  // x when either is NaN, and of two zeros
    return y != y ? y : m;
  } else {
    return x > y ? x : y;
  }
}
template <class T> RL_INLINE T minimum(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    const T m = x > y ? y : x;
    return y != y ? y : m;
  } else {
    return x < y ? x : y;
  }
}

constexpr auto kDiv = [](auto x, auto y) { return x / y; };
constexpr auto kMax = [](auto x, auto y) { return maximum(x, y); };
constexpr auto kMin = [](auto x, auto y) { return minimum(x, y); };
constexpr auto kSquare = [](auto x) { return x * x; };
constexpr auto kReciprocal = [](auto x) { return 1 / x; };

#ifdef RL_OVERLAY

template <auto Plain, auto Scaled, class H>
void scaled_half(char* const* data, const int64_t* strides, int64_t n, const LoopParams& params) {
  if (params.s0.get<float>() == 1.0f) return half_loop<Plain, H, 2>(data, strides, n, params);
  half_loop<Scaled, H, 2>(data, strides, n, params);
}
template <auto Plain, auto Scaled> void put_scaled(LoopTable& t, Pointwise op) {
  t.at(op, DType::BFloat16) = &scaled_half<Plain, Scaled, bfloat16>;
  t.at(op, DType::Float16) = &scaled_half<Plain, Scaled, float16>;
}

}  // namespace

// fp16 and bf16 that need not go through blocks of floats, and extrema of int64, which have an instruction.
void put_arith(LoopTable& t) {
  using enum Pointwise;
  put_scaled<kAdd, kAddScaled>(t, Add);
  put_scaled<kSub, kSubScaled>(t, Sub);
  binary_half<kMul>(t, Mul);
  binary_half<kDiv>(t, Div);
  binary_half<kMax>(t, Maximum);
  binary_half<kMin>(t, Minimum);
  unary_half<kSquare>(t, Square);
  unary_half<kReciprocal>(t, Reciprocal);
  for (Pointwise op : {Maximum, Fmax}) t.at(op, DType::Int64) = &loop2<kMax, int64_t, false>;
  for (Pointwise op : {Minimum, Fmin}) t.at(op, DType::Int64) = &loop2<kMin, int64_t, false>;
}

#else

// The factor is nearly always 1.
template <auto Plain, auto Scaled, class T>
void scaled_loop(char* const* data, const int64_t* strides, int64_t n, const LoopParams& params) {
  if (params.s0.get<T>() == T(1)) return loop2<Plain, T>(data, strides, n, params);
  loop2<Scaled, T>(data, strides, n, params);
}
template <auto Plain, auto Scaled> void put_scaled(LoopTable& t, Pointwise op) {
  t.at(op, DType::UInt8) = t.at(op, DType::Int8) = &scaled_loop<Plain, Scaled, uint8_t>;
  t.at(op, DType::Int16) = t.at(op, DType::UInt16) = &scaled_loop<Plain, Scaled, uint16_t>;
  t.at(op, DType::Int32) = t.at(op, DType::UInt32) = &scaled_loop<Plain, Scaled, uint32_t>;
  t.at(op, DType::Int64) = t.at(op, DType::UInt64) = &scaled_loop<Plain, Scaled, uint64_t>;
  t.at(op, DType::Float32) = &scaled_loop<Plain, Scaled, float>;
  t.at(op, DType::Float64) = &scaled_loop<Plain, Scaled, double>;
  t.at(op, DType::Complex64) = &scaled_loop<Plain, Scaled, c64>;
  t.at(op, DType::Complex128) = &scaled_loop<Plain, Scaled, c128>;
  t.at(op, DType::Complex32) = &loop_complex_half<&scaled_loop<Plain, Scaled, c64>, 2, 2>;
  put_half<&scaled_loop<Plain, Scaled, float>, 2, true>(t, op);
}
// Operations that do not care about the sign of an integer are made once per width.
template <auto F> void binary_integers(LoopTable& t, Pointwise op) {
  t.at(op, DType::UInt8) = t.at(op, DType::Int8) = &loop2<F, uint8_t>;
  t.at(op, DType::Int16) = t.at(op, DType::UInt16) = &loop2<F, uint16_t>;
  t.at(op, DType::Int32) = t.at(op, DType::UInt32) = &loop2<F, uint32_t>;
  t.at(op, DType::Int64) = t.at(op, DType::UInt64) = &loop2<F, uint64_t>;
}
template <auto F> void unary_integers(LoopTable& t, Pointwise op) {
  t.at(op, DType::UInt8) = t.at(op, DType::Int8) = &loop1<F, uint8_t>;
  t.at(op, DType::Int16) = t.at(op, DType::UInt16) = &loop1<F, uint16_t>;
  t.at(op, DType::Int32) = t.at(op, DType::UInt32) = &loop1<F, uint32_t>;
  t.at(op, DType::Int64) = t.at(op, DType::UInt64) = &loop1<F, uint64_t>;
}

// x << n and x >> n for any n: what is shifted out is gone.
template <class T> RL_INLINE T shift_left(T x, T n) {
  using U = std::make_unsigned_t<T>;
  constexpr U kWidth = sizeof(T) * 8;
  return static_cast<U>(n) >= kWidth
             ? T(0)
             : static_cast<T>(static_cast<promoted_t<T> >(x) << (static_cast<U>(n) & (kWidth - 1)));
}
template <class T> RL_INLINE T shift_right(T x, T n) {
  using U = std::make_unsigned_t<T>;
  constexpr U kWidth = sizeof(T) * 8;
  constexpr U kMost = std::is_signed_v<T> ? kWidth - 1 : kWidth;
  if (static_cast<U>(n) >= kMost) return std::is_signed_v<T> ? static_cast<T>(x >> (kWidth - 1)) : T(0);
  return static_cast<T>(x >> n);
}

constexpr auto kAnd = [](auto x, auto y) { return static_cast<decltype(x)>(x & y); };
constexpr auto kOr = [](auto x, auto y) { return static_cast<decltype(x)>(x | y); };
constexpr auto kXor = [](auto x, auto y) { return static_cast<decltype(x)>(x ^ y); };

void put_bits(LoopTable& t) {
  using enum Pointwise;
  binary_integers<kAnd>(t, BitwiseAnd);
  binary_integers<kOr>(t, BitwiseOr);
  binary_integers<kXor>(t, BitwiseXor);
  t.at(BitwiseAnd, DType::Bool) = t.at(BitwiseAnd, DType::UInt8);
  t.at(BitwiseOr, DType::Bool) = t.at(BitwiseOr, DType::UInt8);
  t.at(BitwiseXor, DType::Bool) = t.at(BitwiseXor, DType::UInt8);
  unary_integers<[](auto x) { return static_cast<decltype(x)>(~x); }>(t, BitwiseNot);
  t.at(BitwiseNot, DType::Bool) = &loop1<[](auto x) { return static_cast<uint8_t>(x == 0); }, uint8_t>;
  binary<[](auto x, auto y) { return shift_left(x, y); }, uint8_t, int8_t, int16_t, int32_t, int64_t>(t, ShiftLeft);
  binary<[](auto x, auto y) { return shift_right(x, y); }, uint8_t, int8_t, int16_t, int32_t, int64_t>(t, ShiftRight);
}
void put_extrema(LoopTable& t) {
  using enum Pointwise;
  binary<kMax, uint8_t, int8_t, int16_t, int32_t, int64_t>(t, Maximum);
  binary<kMin, uint8_t, int8_t, int16_t, int32_t, int64_t>(t, Minimum);
  binary_floats<kMax>(t, Maximum);
  binary_floats<kMin>(t, Minimum);
  t.at(Maximum, DType::Bool) = &loop2<kOr, uint8_t>;
  t.at(Minimum, DType::Bool) = &loop2<kAnd, uint8_t>;
  for (int d = 0; d < kDTypes; ++d) {  // without NaNs there is no difference
    t.at(Fmax, static_cast<DType>(d)) = t.at(Maximum, static_cast<DType>(d));
    t.at(Fmin, static_cast<DType>(d)) = t.at(Minimum, static_cast<DType>(d));
  }
  binary_floats<[](auto x, auto y) { return x != x ? y : (x < y ? y : x); }>(t, Fmax);
  binary_floats<[](auto x, auto y) { return x != x ? y : (x > y ? y : x); }>(t, Fmin);
}
void put_signs_and_powers(LoopTable& t) {
  using enum Pointwise;
  unary_integers<[](auto x) { return static_cast<decltype(x)>(0 - x); }>(t, Neg);
  unary_floats<[](auto x) { return -x; }>(t, Neg);
  unary_complex<[](auto x) { return -x; }>(t, Neg);
  unary<[](auto x) { return static_cast<decltype(x)>(x < 0 ? 0u - x : x); }, int8_t, int16_t, int32_t, int64_t>(t, Abs);
  unary_floats<[](auto x) { return abs_(x); }>(t, Abs);
  t.at(Abs, DType::UInt8) = t.at(Copy, DType::UInt8);
  // Signs of reduced-precision types are a bit of theirs.
  constexpr auto kFlip = [](auto x) { return static_cast<decltype(x)>(x ^ 0x8000); };
  constexpr auto kClear = [](auto x) { return static_cast<decltype(x)>(x & 0x7fff); };
  t.at(Neg, DType::Float16) = t.at(Neg, DType::BFloat16) = &loop1<kFlip, int16_t>;
  t.at(Abs, DType::Float16) = t.at(Abs, DType::BFloat16) = &loop1<kClear, int16_t>;
  unary_floats<kSquare>(t, Square);
  unary_complex<[](auto x) { return mul_(x, x); }>(t, Square);
  unary_integers<[](auto x) { return mul_(x, x); }>(t, Square);
  unary_floats<kReciprocal>(t, Reciprocal);
  unary_complex<[](auto x) { return div_(decltype(x)(1), x); }>(t, Reciprocal);

  constexpr auto kSign = [](auto x) { return static_cast<decltype(x)>((x > 0) - (x < 0)); };
  unary<kSign, int8_t, int16_t, int32_t, int64_t>(t, Sign);
  unary<[](auto x) { return static_cast<uint8_t>(x != 0); }, uint8_t>(t, Sign);
  t.at(Sign, DType::Bool) = t.at(Copy, DType::Bool);
  unary_floats<[](auto x) {
    using T = decltype(x);
    const T above = (x > 0) ? T(1) : T(0), below = x < 0 ? T(1) : T(0);
    return above - below;
  }>(t, Sign);
  for (int d = 0; d < kDTypes; ++d) t.at(Sgn, static_cast<DType>(d)) = t.at(Sign, static_cast<DType>(d));
}

}  // namespace

void put_arith(LoopTable& t) {
  using enum Pointwise;
  put_scaled<kAdd, kAddScaled>(t, Add);
  put_scaled<kSub, kSubScaled>(t, Sub);
  t.at(Add, DType::Bool) =
      &loop2<[](auto x, auto y, const auto& p) { return static_cast<uint8_t>(x | (p.s0 & y)); }, uint8_t>;

  binary_integers<kMul>(t, Mul);
  binary_floats<kMul>(t, Mul);
  binary_complex<kMul, true>(t, Mul);
  t.at(Mul, DType::Bool) = &loop2<kAnd, uint8_t>;

  binary_floats<kDiv>(t, Div);
  binary_complex<[](auto x, auto y) { return div_(x, y); }, true>(t, Div);
  put_bits(t);
  put_extrema(t);
  put_signs_and_powers(t);
}

#endif

}  // namespace rl::RL_ISA
