// Division that leaves a remainder, and powers.
#include <bit>
#include <cmath>

#include "base/check.h"
#include "cpu/elementwise/pointwise.h"
#include "cpu/isa.h"
#include "cpu/simd/arith.h"
#include "cpu/simd/erf.h"

namespace rl::avx512 {
void pow_loop(DType type, char* const* data, const int64_t* strides, int64_t n, const LoopParams& params);
}

namespace rl::RL_ISA {
namespace {

template <class T> RL_INLINE T pow_of(T x, T y) {
#ifdef __FMA__
  return pow(x, y);
#else
  if constexpr (std::is_same_v<T, float>) return pow(x, y);
  else return std::pow(x, y);
#endif
}
constexpr auto kPow = [](auto x, auto y) { return pow_of(x, y); };

#ifdef RL_OVERLAY

}  // namespace

void pow_loop(DType type, char* const* data, const int64_t* strides, int64_t n, const LoopParams& params) {
  if (type == DType::Float32) loop2<kPow, float, false>(data, strides, n, params);
  else loop2<kPow, double, false>(data, strides, n, params);
}

#else

template <class T> RL_INLINE void check_divisor(T y) {
  if (__builtin_expect(y == 0, 0)) fail(ErrorKind::Runtime, "ZeroDivisionError");
}
// Dividing by -1 is negation: the lowest value divided by it would trap.
template <class T> RL_INLINE bool is_minus_one(T y) { return std::is_signed_v<T> && y == static_cast<T>(-1); }
template <class T> RL_INLINE T negate(T x) { return static_cast<T>(promoted_t<T>(0) - static_cast<promoted_t<T> >(x)); }

template <class T> RL_INLINE T trunc_div(T x, T y) {
  check_divisor(y);
  return is_minus_one(y) ? negate(x) : static_cast<T>(x / y);
}
template <class T> RL_INLINE T floor_div(T x, T y) {
  check_divisor(y);
  if (is_minus_one(y)) return negate(x);
  const T q = static_cast<T>(x / y);
  return std::is_signed_v<T> && x % y != 0 && (x < 0) != (y < 0) ? static_cast<T>(q - 1) : q;
}
template <class T> RL_INLINE T fmod_int(T x, T y) {
  check_divisor(y);
  return is_minus_one(y) ? T(0) : static_cast<T>(x % y);
}
template <class T> RL_INLINE T remainder_int(T x, T y) {
  const T r = fmod_int(x, y);
  return r != 0 && (r < 0) != (y < 0) ? static_cast<T>(r + y) : r;
}

// From m = fmod(x, y), which has the sign of x, the remainder with the sign of y and the quotient rounded down.
template <class T> RL_INLINE T remainder_of(T m, T y) { return (m != 0) & ((y < 0) != (m < 0)) ? m + y : m; }
template <class T> RL_INLINE T floor_of(T m, T x, T y) {
  T q = (x - m) / y;
  q = (m != 0) & ((y < 0) != (m < 0)) ? q - 1 : q;
  T f = floor_(q);
  f = q - f > T(0.5) ? f + 1 : f;
  f = q != 0 ? f : with_sign(T(0), x / y);
  return y == 0 ? x / y : f;
}
// fmod for quotients below 2^22, by one fused multiplication: the rest is exact, and the quotient off by at most one.
template <class T> RL_INLINE T fmod_reduced(T x, T y) {
  const T q = std::trunc(x / y), r = fma(-q, y, x);
  const T back = (r != 0) & ((r < 0) != (x < 0)) ? r + with_sign(y, x) : r;
  return with_sign(back, x);
}

enum class Part { Fmod, Remainder, Floor };
template <Part kPart, class T> RL_INLINE T part_of(T m, T x, T y) {
  return kPart == Part::Fmod ? m : kPart == Part::Remainder ? remainder_of(m, y) : floor_of(m, x, y);
}
template <Part kPart, class T> [[gnu::flatten]] void divide_flat(char* const* data, int64_t n, const LoopParams&) {
  constexpr int64_t kBlock = 256;
  auto* out = reinterpret_cast<T*>(data[0]);
  auto* x = reinterpret_cast<const T*>(data[1]);
  auto* y = reinterpret_cast<const T*>(data[2]);
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t last = first + kBlock < n ? first + kBlock : n;
    int far = 1;
#ifdef __FMA__
    far = 0;
    constexpr T kLow = std::numeric_limits<T>::min() * 4, kHigh = std::numeric_limits<T>::max();
    for (int64_t i = first; i < last; ++i) {
      far |= !((abs_(x[i] / y[i]) < T(0x1p22)) & (abs_(y[i]) <= kHigh) & (abs_(y[i]) >= kLow));
    }
#endif
    if (far) {
      for (int64_t i = first; i < last; ++i) out[i] = part_of<kPart>(std::fmod(x[i], y[i]), x[i], y[i]);
    } else {
#pragma GCC ivdep
      for (int64_t i = first; i < last; ++i) out[i] = part_of<kPart>(fmod_reduced(x[i], y[i]), x[i], y[i]);
    }
  }
}
template <Part kPart, class T>
void divide_loop(char* const* data, const int64_t* strides, int64_t n, const LoopParams& params) {
  static constexpr uint8_t kSizes[] = {sizeof(T), sizeof(T), sizeof(T)};
  const bool flat = strides[0] == sizeof(T) && strides[1] == sizeof(T) && strides[2] == sizeof(T);
  if (flat || n == 1) return divide_flat<kPart, T>(data, n, params);
  run_blocks(&divide_flat<kPart, T>, kSizes, 3, data, strides, n, params);
}
template <Part kPart> void divide_floats(LoopTable& t, Pointwise op) {
  t.at(op, DType::Float32) = &divide_loop<kPart, float>;
  t.at(op, DType::Float64) = &divide_loop<kPart, double>;
  put_half<&divide_loop<kPart, float>, 2, true>(t, op);
}
template <auto F> void binary_signed(LoopTable& t, Pointwise op) {
  binary<F, uint8_t, int8_t, int16_t, int32_t, int64_t>(t, op);
}

#ifdef __AVX2__
// Integers below 2^50 divide as doubles: a quotient of two of them that is not whole lies further from the next whole
// number than it is rounded by, so that what is cut or rounded down of it is exact, and the rest, too.
constexpr double kIntMagic = 0x1.8p52;
constexpr int64_t kIntBits = 0x4338000000000000, kIntNear = int64_t{1} << 50;
RL_INLINE double int_to_double(int64_t x) { return std::bit_cast<double>(x + kIntBits) - kIntMagic; }
RL_INLINE int64_t double_to_int(double x) { return std::bit_cast<int64_t>(x + kIntMagic) - kIntBits; }
RL_INLINE bool is_far(int64_t x) { return static_cast<uint64_t>(x + kIntNear) >= static_cast<uint64_t>(2 * kIntNear); }

enum class IntPart { Trunc, Floor, Fmod, Remainder };
template <IntPart kPart, class T> RL_INLINE T int_part_of(T x, T y) {
  switch (kPart) {
    case IntPart::Trunc: return trunc_div(x, y);
    case IntPart::Floor: return floor_div(x, y);
    case IntPart::Fmod: return fmod_int(x, y);
    default: return remainder_int(x, y);
  }
}
template <IntPart kPart, class T>
[[gnu::flatten]] void divide_ints_flat(char* const* data, int64_t n, const LoopParams&) {
  constexpr int64_t kBlock = 256;
  auto* out = reinterpret_cast<T*>(data[0]);
  auto* x = reinterpret_cast<const T*>(data[1]);
  auto* y = reinterpret_cast<const T*>(data[2]);
  constexpr bool kDown = kPart == IntPart::Floor || kPart == IntPart::Remainder;
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t last = first + kBlock < n ? first + kBlock : n;
    int64_t far = 0;  // or a divisor of 0
    for (int64_t i = first; i < last; ++i) far |= y[i] == 0;
    if constexpr (sizeof(T) == 8)
      for (int64_t i = first; i < last; ++i) far |= is_far(x[i]) | is_far(y[i]);
    if (far) {
      for (int64_t i = first; i < last; ++i) out[i] = int_part_of<kPart>(x[i], y[i]);
      continue;
    }
#pragma GCC ivdep
    for (int64_t i = first; i < last; ++i) {
      double a, b;
      if constexpr (sizeof(T) == 8) a = int_to_double(x[i]), b = int_to_double(y[i]);
      else a = x[i], b = y[i];
      const double q = kDown ? std::floor(a / b) : std::trunc(a / b);
      constexpr bool kQuotient = kPart == IntPart::Trunc || kPart == IntPart::Floor;
      out[i] = static_cast<T>(double_to_int(kQuotient ? q : a - q * b));
    }
  }
}
template <IntPart kPart, class T>
void divide_ints_loop(char* const* data, const int64_t* strides, int64_t n, const LoopParams& params) {
  static constexpr uint8_t kSizes[] = {sizeof(T), sizeof(T), sizeof(T)};
  const bool flat = strides[0] == sizeof(T) && strides[1] == sizeof(T) && strides[2] == sizeof(T);
  if (n < 1) return;
  if (flat || n == 1) return divide_ints_flat<kPart, T>(data, n, params);
  run_blocks(&divide_ints_flat<kPart, T>, kSizes, 3, data, strides, n, params);
}
template <IntPart kPart> void divide_ints(LoopTable& t, Pointwise op) {
  t.at(op, DType::Int32) = &divide_ints_loop<kPart, int32_t>;
  t.at(op, DType::Int64) = &divide_ints_loop<kPart, int64_t>;
}
#endif

// The quotient of reduced-precision types is rounded to the reduced-precision type before its fraction is cut.
template <class H> void trunc_div_half(char* const* data, const int64_t* strides, int64_t n, const LoopParams& params) {
  constexpr Loop kDiv = &loop2<[](auto x, auto y) { return x / y; }, float, false>;
  constexpr Loop kTrunc = &loop1<[](auto x) { return std::trunc(x); }, float>;
  constexpr bool kBfloat = std::is_same_v<H, bfloat16>;
  run_half(kDiv, kBfloat, true, 2, data, strides, n, params);
  char* again[] = {data[0], data[0]};
  const int64_t steps[] = {strides[0], strides[0]};
  run_half(kTrunc, kBfloat, true, 1, again, steps, n, params);
}

// Negative exponents: 1 and -1 have integer powers, the others round to 0.
template <class T> RL_INLINE T pow_int(T x, T n) {
  if (std::is_signed_v<T> && n < 0) {
    if (x == 1) return T(1);
    if (is_minus_one(x)) return n % 2 ? x : T(1);
    return T(0);
  }
  T power = 1;
  for (auto e = static_cast<std::make_unsigned_t<T> >(n); e; e = static_cast<decltype(e)>(e >> 1)) {
    if (e & 1) power = mul_(power, x);
    x = mul_(x, x);
  }
  return power;
}
template <class T> void pow_loop(char* const* data, const int64_t* strides, int64_t n, const LoopParams& params) {
  if (n > 0 && strides[2] == 0) {
    const T e = *reinterpret_cast<const T*>(data[2]);
    if (e == T(2)) return loop1<[](auto x) { return mul_(x, x); }, T>(data, strides, n, params);
    if (e == T(3)) return loop1<[](auto x) { return mul_(mul_(x, x), x); }, T>(data, strides, n, params);
    // Roots are exact to the last bit, and of -inf they are NaN.
    if (e == T(0.5)) return loop1<[](auto x) { return std::sqrt(x); }, T>(data, strides, n, params);
    if (e == T(-0.5)) return loop1<[](auto x) { return 1 / std::sqrt(x); }, T>(data, strides, n, params);
    if (e == T(-1)) return loop1<[](auto x) { return 1 / x; }, T>(data, strides, n, params);
    if (e == T(-2)) return loop1<[](auto x) { return 1 / mul_(x, x); }, T>(data, strides, n, params);
  }
  if (has_avx512()) avx512::pow_loop(dtype_of<T>::value, data, strides, n, params);
  else loop2<kPow, T, false>(data, strides, n, params);
}

template <class T> RL_INLINE T gcd(T x, T y) {
  using U = std::make_unsigned_t<T>;
  U a = static_cast<U>(std::is_signed_v<T> && x < 0 ? negate(x) : x);
  U b = static_cast<U>(std::is_signed_v<T> && y < 0 ? negate(y) : y);
  while (a != 0) {
    const U r = static_cast<U>(b % a);
    b = a;
    a = r;
  }
  return static_cast<T>(b);
}
template <class T> RL_INLINE T lcm(T x, T y) {
  const T g = gcd(x, y);
  if (g == 0) return T(0);
  using W = decltype(x + 0);  // narrow types overflow only when the result is stored
  const W m = mul_(static_cast<W>(is_minus_one(g) ? negate(x) : x / g), static_cast<W>(y));
  return static_cast<T>(m < 0 ? negate(m) : m);
}

}  // namespace

void put_divide(LoopTable& t) {
  using enum Pointwise;
  binary_signed<[](auto x, auto y) { return trunc_div(x, y); }>(t, TruncDiv);
  binary_signed<[](auto x, auto y) { return floor_div(x, y); }>(t, FloorDiv);
  binary_signed<[](auto x, auto y) { return fmod_int(x, y); }>(t, Fmod);
  binary_signed<[](auto x, auto y) { return remainder_int(x, y); }>(t, Remainder);
#ifdef __AVX2__
  divide_ints<IntPart::Trunc>(t, TruncDiv);
  divide_ints<IntPart::Floor>(t, FloorDiv);
  divide_ints<IntPart::Fmod>(t, Fmod);
  divide_ints<IntPart::Remainder>(t, Remainder);
#endif
  binary_floats<[](auto x, auto y) { return std::trunc(x / y); }>(t, TruncDiv);
  t.at(TruncDiv, DType::Float16) = &trunc_div_half<float16>;
  t.at(TruncDiv, DType::BFloat16) = &trunc_div_half<bfloat16>;
  divide_floats<Part::Floor>(t, FloorDiv);
  divide_floats<Part::Fmod>(t, Fmod);
  divide_floats<Part::Remainder>(t, Remainder);

  binary_signed<[](auto x, auto y) { return pow_int(x, y); }>(t, Pow);
  t.at(Pow, DType::Float32) = &pow_loop<float>;
  t.at(Pow, DType::Float64) = &pow_loop<double>;
  put_half<&pow_loop<float>, 2, true>(t, Pow);
  binary_signed<[](auto x, auto y) { return gcd(x, y); }>(t, Gcd);
  binary_signed<[](auto x, auto y) { return lcm(x, y); }>(t, Lcm);
}

#endif

}  // namespace rl::RL_ISA
