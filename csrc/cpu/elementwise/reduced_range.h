// Loops of functions that have a short form where all arguments are moderate, and a general one for the rest.
// A block at a time is tested and sent to one of them.
#pragma once
#include "cpu/elementwise/pointwise.h"

namespace rl::RL_ISA {

template <auto Near, auto Fast, auto Slow, class T> RL_INLINE void reduced_range_run(char* const* data, int64_t n) {
  constexpr int64_t kBlock = 256;
  auto* out = reinterpret_cast<T*>(data[0]);
  auto* in = reinterpret_cast<const T*>(data[1]);
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t last = first + kBlock < n ? first + kBlock : n;
    int far = 0;
    for (int64_t i = first; i < last; ++i) far |= !Near(in[i]);
    if (far) {
#pragma GCC ivdep
      for (int64_t i = first; i < last; ++i) out[i] = Slow(in[i]);
    } else {
#pragma GCC ivdep
      for (int64_t i = first; i < last; ++i) out[i] = Fast(in[i]);
    }
  }
}
template <auto Near, auto Fast, auto Slow, class T>
[[gnu::flatten]] void reduced_flat(char* const* data, int64_t n, const LoopParams&) {
  reduced_range_run<Near, Fast, Slow, T>(data, n);
}
// Functions whose general form is no loop of vectors: the short one runs over a block, then what was not moderate, by
// its argument and by the result, is done again.
template <auto Near, auto Fast, auto Slow, class T> RL_INLINE void patched_run(char* const* data, int64_t n) {
  constexpr int64_t kBlock = 256;
  auto* out = reinterpret_cast<T*>(data[0]);
  auto* in = reinterpret_cast<const T*>(data[1]);
  T x[kBlock];
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t count = n - first < kBlock ? n - first : kBlock;
    T* y = out + first;
    for (int64_t i = 0; i < count; ++i) x[i] = in[first + i];
    int far = 0;
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) y[i] = Fast(x[i]);
    for (int64_t i = 0; i < count; ++i) far |= !Near(x[i], y[i]);
    if (!far) continue;
    for (int64_t i = 0; i < count; ++i) {
      if (!Near(x[i], y[i])) y[i] = Slow(x[i]);
    }
  }
}
template <auto Near, auto Fast, auto Slow, class T>
[[gnu::flatten]] void patched_flat(char* const* data, int64_t n, const LoopParams&) {
  patched_run<Near, Fast, Slow, T>(data, n);
}
template <FlatLoop kFlat, class T>
void reduced_range_loop(char* const* data, const int64_t* strides, int64_t n, const LoopParams& params) {
  static constexpr uint8_t kSizes[] = {sizeof(T), sizeof(T)};
  if (n == 1 || (strides[0] == sizeof(T) && strides[1] == sizeof(T))) return kFlat(data, n, params);
  run_blocks(kFlat, kSizes, 2, data, strides, n, params);
}
template <FlatLoop kFloat, FlatLoop kDouble> void put_reduced_range(LoopTable& t, Pointwise op) {
  t.at(op, DType::Float32) = &reduced_range_loop<kFloat, float>;
  t.at(op, DType::Float64) = &reduced_range_loop<kDouble, double>;
  put_half<&reduced_range_loop<kFloat, float>, 1, true>(t, op);
}
template <auto Near, auto Fast, auto Slow> void reduced_range_floats(LoopTable& t, Pointwise op) {
  put_reduced_range<&reduced_flat<Near, Fast, Slow, float>, &reduced_flat<Near, Fast, Slow, double>>(t, op);
}
// As reduced_range_floats, for patched_run.
template <auto Near, auto Fast, auto Slow> void patched_floats(LoopTable& t, Pointwise op) {
  put_reduced_range<&patched_flat<Near, Fast, Slow, float>, &patched_flat<Near, Fast, Slow, double>>(t, op);
}

// e^x as exp_inside, one step shorter: no NaN either.
template <class T> RL_INLINE T exp_reduced(T x) {
  using F = FloatTraits<T>;
  const T t = fma(x, static_cast<T>(1.44269504088896340736), F::kMagic), n = t - F::kMagic;
  const T r = fma(-n, F::kLn2Lo, fma(-n, F::kLn2Hi, x));
  return from_bits<T>(to_bits(exp_of_rest(r)) + (to_bits(t) << F::kMantissa));
}
template <class T> RL_INLINE bool exp_in_range(T x) { return abs_(x) < (sizeof(T) == 4 ? T(86) : T(700)); }

// log x for normal x: no subnormals, zeros, infinities, negative values or NaNs.
template <class T> RL_INLINE T log_reduced(T x) {
  using F = FloatTraits<T>;
  const bits_t<T> b = to_bits(x) + (F::kOne - F::kSqrtHalf);
  constexpr bits_t<T> kMask = (bits_t<T>(1) << F::kMantissa) - 1;
  constexpr T kBase = sizeof(T) == 4 ? T(0x1p23) : T(0x1p52);
  constexpr T kBias = kBase + (sizeof(T) == 4 ? T(127) : T(1023));
  const T k = from_bits<T>((b >> F::kMantissa) | to_bits(kBase)) - kBias;
  const T f = from_bits<T>((b & kMask) + F::kSqrtHalf) - T(1);
  return fma(k, F::kLn2Hi, f + fma(k, F::kLn2Lo, log_of_rest(f)));
}
// 2^k (1 + f) = x as log_split, for the same.
template <class T> RL_INLINE LogSplit<T> log_split_reduced(T x) {
  using F = FloatTraits<T>;
  const bits_t<T> b = to_bits(x) + (F::kOne - F::kSqrtHalf);
  constexpr bits_t<T> kMask = (bits_t<T>(1) << F::kMantissa) - 1;
  constexpr T kBase = sizeof(T) == 4 ? T(0x1p23) : T(0x1p52);
  constexpr T kBias = kBase + (sizeof(T) == 4 ? T(127) : T(1023));
  const T k = from_bits<T>((b >> F::kMantissa) | to_bits(kBase)) - kBias;
  const T f = from_bits<T>((b & kMask) + F::kSqrtHalf) - T(1);
  return {k, f, log_of_rest(f)};
}
template <class T> RL_INLINE T log2_reduced(T x) {
  auto [k, f, log_f] = log_split_reduced(x);
  return log2_of(k, f, log_f);
}
template <class T> RL_INLINE T log10_reduced(T x) {
  auto [k, f, log_f] = log_split_reduced(x);
  return log10_of(k, f, log_f);
}
template <class T> RL_INLINE bool log_in_range(T x) { return (x >= std::numeric_limits<T>::min()) & (x < kInf<T>); }

}  // namespace rl::RL_ISA
