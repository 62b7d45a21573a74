// Conversion of n contiguous elements between any two types.
#pragma once
#include <cstdint>

#include "base/dtype.h"
#include "cpu/isa.h"

namespace rl::RL_ISA {

using Cast = void (*)(void* out, const void* in, int64_t n);

// Null when the bytes can be copied as they are (equal types, or types of the same integers).
Cast cast_between(DType to, DType from);

// The rows of that table, in two files to keep each quick to compile; `from` and `to` are not reduced-precision types.
Cast cast_to_integer(DType to, DType from);
Cast cast_to_float(DType to, DType from);

// One element as torch converts it. Values that do not fit follow the x86 instructions.
template <class To, class From> inline To cast_one(From v) {
  if constexpr (is_half_v<From>) {
    return cast_one<To>(static_cast<float>(v));
  } else if constexpr (is_complex_v<From>) {
    if constexpr (is_complex_v<To>) {
      using R = typename To::value_type;
      return To(static_cast<R>(v.real()), static_cast<R>(v.imag()));
    } else if constexpr (__is_same(To, bool)) {
      return (v.real() != 0) | (v.imag() != 0);
    } else {
      return cast_one<To>(v.real());
    }
  } else if constexpr (is_complex_v<To>) {
    return To(cast_one<typename To::value_type>(v), 0);
  } else if constexpr (__is_same(To, bool)) {
    return v != 0;
  } else if constexpr (__is_same(To, bfloat16) && !__is_same(From, float) && !__is_same(From, double)) {
    uint32_t u = std::bit_cast<uint32_t>(static_cast<float>(v));  // an integer is never NaN
    To r;
    r.bits = static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
    return r;
  } else if constexpr (is_half_v<To>) {
    return To(static_cast<float>(v));
  } else if constexpr (__is_same(From, float) || __is_same(From, double)) {
    if constexpr (__is_same(To, uint64_t)) {
      constexpr From kHalf = static_cast<From>(9223372036854775808.0);
      return v >= kHalf ? static_cast<uint64_t>(static_cast<int64_t>(v - kHalf)) ^ (uint64_t{1} << 63)
                        : static_cast<uint64_t>(static_cast<int64_t>(v));
    } else if constexpr (__is_same(To, uint32_t) || (__is_same(To, uint8_t) && __is_same(From, double))) {
      return static_cast<To>(static_cast<int64_t>(v));
    } else if constexpr (sizeof(To) < 4) {
      return static_cast<To>(static_cast<int32_t>(v));
    } else {
      return static_cast<To>(v);
    }
  } else {
    return static_cast<To>(v);
  }
}

// Floats of int64: AVX2 converts 32 bits only, which is what nearly all of them fit.
template <class To> void cast_from_int64(To* __restrict o, const int64_t* __restrict x, int64_t n) {
  constexpr int64_t kBlock = 64;
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    int32_t low[kBlock];
    int64_t beyond = 0;
    for (int64_t j = 0; j < kBlock; ++j) low[j] = static_cast<int32_t>(x[i + j]);
    for (int64_t j = 0; j < kBlock; ++j) beyond |= x[i + j] ^ low[j];
    if (beyond) {
      for (int64_t j = 0; j < kBlock; ++j) o[i + j] = static_cast<To>(x[i + j]);
    } else {
      for (int64_t j = 0; j < kBlock; ++j) o[i + j] = static_cast<To>(low[j]);
    }
  }
  for (; i < n; ++i) o[i] = static_cast<To>(x[i]);
}

template <class To, class From> void cast_run(void* out, const void* in, int64_t n) {
  To* __restrict o = static_cast<To*>(out);
  const From* __restrict x = static_cast<const From*>(in);
  if constexpr (__is_same(From, int64_t) && (__is_same(To, float) || __is_same(To, double)))
    return cast_from_int64(o, x, n);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = cast_one<To>(x[i]);
}

// The function for a source type known at run time.
template <class To> Cast cast_from(DType from) {
  switch (from) {
    case DType::Bool:
    case DType::UInt8: return &cast_run<To, uint8_t>;
    case DType::Int8: return &cast_run<To, int8_t>;
    case DType::Int16: return &cast_run<To, int16_t>;
    case DType::Int32: return &cast_run<To, int32_t>;
    case DType::Int64: return &cast_run<To, int64_t>;
    case DType::UInt16: return &cast_run<To, uint16_t>;
    case DType::UInt32: return &cast_run<To, uint32_t>;
    case DType::UInt64: return &cast_run<To, uint64_t>;
    case DType::BFloat16: return &cast_run<To, bfloat16>;
    case DType::Float32: return &cast_run<To, float>;
    case DType::Float64: return &cast_run<To, double>;
    case DType::Complex64: return &cast_run<To, std::complex<float>>;
    case DType::Complex128: return &cast_run<To, std::complex<double>>;
    default: return nullptr;
  }
}

}  // namespace rl::RL_ISA
