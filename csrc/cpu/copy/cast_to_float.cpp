#ifdef __F16C__
#include <immintrin.h>
#endif

#include "base/float8.h"
#include "cpu/simd/cast.h"

namespace rl::RL_ISA {

namespace {

void half_to_float(void* out, const void* in, int64_t n) {
  float* o = static_cast<float*>(out);
  const float16* x = static_cast<const float16*>(in);
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(o + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
#endif
  for (; i < n; ++i) o[i] = x[i];
}

void float_to_half(void* out, const void* in, int64_t n) {
  float16* o = static_cast<float16*>(out);
  const float* x = static_cast<const float*>(in);
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(o + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), 0));
#endif
  for (; i < n; ++i) o[i] = float16(x[i]);
}

// Reduced-precision types meet the others as floats: `kParts` floats for each element.
template <int kParts> void from_half(void* out, const void* in, int64_t n, Cast then, int64_t out_size) {
  alignas(64) float staged[1024];
  constexpr int64_t kChunk = 1024 / kParts;
  for (int64_t i = 0; i < n; i += kChunk) {
    int64_t m = n - i < kChunk ? n - i : kChunk;
    half_to_float(staged, static_cast<const float16*>(in) + i * kParts, m * kParts);
    then(static_cast<char*>(out) + i * out_size, staged, m);
  }
}
template <int kParts> void to_half(void* out, const void* in, int64_t n, Cast first, int64_t in_size) {
  alignas(64) float staged[1024];
  constexpr int64_t kChunk = 1024 / kParts;
  for (int64_t i = 0; i < n; i += kChunk) {
    int64_t m = n - i < kChunk ? n - i : kChunk;
    first(staged, static_cast<const char*>(in) + i * in_size, m);
    float_to_half(static_cast<float16*>(out) + i * kParts, staged, m * kParts);
  }
}

constexpr DType widened(DType t) {
  return t == DType::Float16 ? DType::Float32 : t == DType::Complex32 ? DType::Complex64 : t;
}
constexpr bool is_half_based(DType t) { return t == DType::Float16 || t == DType::Complex32; }

Cast between_avx512(DType to, DType from) {
  return is_float(to) || is_complex(to) ? cast_to_float(to, from) : cast_to_integer(to, from);
}

template <DType from> void half_source(void* out, const void* in, int64_t n, DType to) {
  constexpr int kParts = from == DType::Complex32 ? 2 : 1;
  from_half<kParts>(out, in, n, between_avx512(to, widened(from)), itemsize(to));
}
template <DType to> void half_target(void* out, const void* in, int64_t n, DType from) {
  constexpr int kParts = to == DType::Complex32 ? 2 : 1;
  to_half<kParts>(out, in, n, between_avx512(widened(to), from), itemsize(from));
}
template <DType to, DType from> void through_float(void* out, const void* in, int64_t n) {
  if constexpr (is_half_based(from) && is_half_based(to)) {  // the bits stay, the imaginary part comes or goes
    const float16* x = static_cast<const float16*>(in);
    float16* o = static_cast<float16*>(out);
    constexpr int kIn = from == DType::Complex32 ? 2 : 1, kOut = to == DType::Complex32 ? 2 : 1;
    for (int64_t i = 0; i < n; ++i) {
      o[kOut * i] = x[kIn * i];
      if (kOut == 2) o[kOut * i + 1].bits = 0;
    }
  } else if constexpr (is_half_based(from)) {
    half_source<from>(out, in, n, to);
  } else {
    half_target<to>(out, in, n, from);
  }
}

template <DType half> Cast from_half_to(DType to) {
  switch (to) {
#define X(name, type) \
  case DType::name: return &through_float<DType::name, half>;
    RL_DTYPES(X)
    RL_STORAGE_DTYPES(X)
#undef X
    default: return nullptr;
  }
}
template <DType half> Cast to_half_from(DType from) {
  switch (from) {
#define X(name, type) \
  case DType::name: return &through_float<half, DType::name>;
    RL_DTYPES(X)
    RL_STORAGE_DTYPES(X)
#undef X
    default: return nullptr;
  }
}

// float8 meets the others as floats, too. One function for all of them: they are few, and seldom in a hurry.
void cast_float8(void* out, const void* in, int64_t n, DType to, DType from) {
  alignas(64) float staged[1024];
  const Cast first = is_float8(from) || from == DType::Float32 ? nullptr : cast_between(DType::Float32, from);
  const Cast then = is_float8(to) || to == DType::Float32 ? nullptr : cast_between(to, DType::Float32);
  const float* values = is_float8(from) ? float8_values(from) : nullptr;
  for (int64_t i = 0; i < n; i += 1024) {
    const int64_t m = n - i < 1024 ? n - i : 1024;
    const char* x = static_cast<const char*>(in) + i * itemsize(from);
    char* o = static_cast<char*>(out) + i * itemsize(to);
    if (values)
      for (int64_t k = 0; k < m; ++k) staged[k] = values[static_cast<uint8_t>(x[k])];
    else if (first) first(staged, x, m);
    else __builtin_memcpy(staged, x, static_cast<size_t>(m) * sizeof(float));
    if (is_float8(to))
      for (int64_t k = 0; k < m; ++k) o[k] = static_cast<char>(to_float8(staged[k], to));
    else if (then) then(o, staged, m);
    else __builtin_memcpy(o, staged, static_cast<size_t>(m) * sizeof(float));
  }
}
template <DType to, DType from> void float8_run(void* out, const void* in, int64_t n) {
  cast_float8(out, in, n, to, from);
}
#define RL_FLOAT8(X) X(Float8_e4m3fn, ) X(Float8_e4m3fnuz, ) X(Float8_e5m2, ) X(Float8_e5m2fnuz, ) X(Float8_e8m0fnu, )
template <DType float8> Cast between_float8(DType other, bool back) {
  switch (other) {
#define X(name, type) \
  case DType::name: return back ? &float8_run<DType::name, float8> : &float8_run<float8, DType::name>;
    RL_DTYPES(X)
    RL_STORAGE_DTYPES(X)
    RL_FLOAT8(X)
#undef X
    default: fail_without_kernel(other, "copy_");
  }
}
Cast float8_cast(DType to, DType from) {
  const bool back = is_float8(from);
  const DType other = back ? to : from;
  switch (back ? from : to) {
#define X(name, type) \
  case DType::name: return between_float8<DType::name>(other, back);
    RL_FLOAT8(X)
#undef X
    default: return nullptr;
  }
}

// Integers of one width share their bits; a bool is the integer 0 or 1.
bool same_bits(DType to, DType from) {
  if (to == from) return true;
  if (itemsize(to) != itemsize(from) || to == DType::Bool) return false;
  return is_integral(to) && is_integral(from, true);
}

}  // namespace

Cast cast_to_float(DType to, DType from) {
  switch (to) {
    case DType::BFloat16: return cast_from<bfloat16>(from);
    case DType::Float32: return cast_from<float>(from);
    case DType::Float64: return cast_from<double>(from);
    case DType::Complex64: return cast_from<std::complex<float>>(from);
    case DType::Complex128: return cast_from<std::complex<double>>(from);
    default: return nullptr;
  }
}

Cast cast_between(DType to, DType from) {
  if (!has_cpp_type(to) || !has_cpp_type(from)) {
    if (to == from) return nullptr;
    if (is_float8(to) || is_float8(from)) return float8_cast(to, from);
    fail_without_kernel(has_cpp_type(to) ? from : to, "copy_");
  }
  if (same_bits(to, from)) return nullptr;
  if (from == DType::Float16) return to == DType::Float32 ? &half_to_float : from_half_to<DType::Float16>(to);
  if (to == DType::Float16) return from == DType::Float32 ? &float_to_half : to_half_from<DType::Float16>(from);
  if (from == DType::Complex32) return from_half_to<DType::Complex32>(to);
  if (to == DType::Complex32) return to_half_from<DType::Complex32>(from);
  return between_avx512(to, from);
}

}  // namespace rl::RL_ISA
