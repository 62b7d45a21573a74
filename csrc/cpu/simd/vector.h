// Registers of elements of any type and width, on the compiler's vector extension: simd::Vec<T, bytes> says what one is
// (Reg: + - * / and comparisons are the extension's own) and what can be done with it. Instructions are named here
// alone, and only where the extension has no way to say them.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "base/dtype.h"
#include "base/half.h"
#include "cpu/isa.h"

namespace rl::RL_ISA::simd {

#define RL_SIMD [[gnu::always_inline]] static inline

// A bit per lane.
template <int kLanes> using mask_bits = std::conditional_t<
    kLanes <= 8, uint8_t,
    std::conditional_t<kLanes <= 16, uint16_t, std::conditional_t<kLanes <= 32, uint32_t, uint64_t>>>;
// The signed integer of a size.
template <size_t kSize> using int_of =
    std::conditional_t<kSize == 1, int8_t,
                       std::conditional_t<kSize == 2, int16_t, std::conditional_t<kSize == 4, int32_t, int64_t>>>;

template <class T, int kBytes> struct SignedReg {
  typedef int_of<sizeof(T)> Reg __attribute__((vector_size(kBytes)));
};

template <class T, int kBytes> struct Vec {
  typedef T Reg __attribute__((vector_size(kBytes)));
  typedef T Loose __attribute__((vector_size(kBytes), aligned(sizeof(T)), may_alias));  // in memory
  using Element = T;
  using Bits = typename SignedReg<T, kBytes>::Reg;                // of integers
  static constexpr int W = kBytes / static_cast<int>(sizeof(T));  // lanes
  using Mask = mask_bits<W>;
  static constexpr Mask kAll = static_cast<Mask>(W == 64 ? ~uint64_t{0} : (uint64_t{1} << (W & 63)) - 1);
  // What has instructions of AVX-512, or of AVX2, with floats or doubles.
#ifdef __AVX512F__
  static constexpr bool kWide = kBytes == 64;
#else
  static constexpr bool kWide = false;
#endif
#ifdef __AVX2__
  static constexpr bool kAvx = kBytes == 32;
#else
  static constexpr bool kAvx = false;
#endif
  static constexpr bool kFloat = std::is_same_v<T, float>, kDouble = std::is_same_v<T, double>;

  RL_SIMD Reg zero() { return Reg{}; }
  RL_SIMD Reg all(T x) {
#ifdef __AVX512F__
    if constexpr (kWide && kFloat) return _mm512_set1_ps(x);
    if constexpr (kWide && kDouble) return _mm512_set1_pd(x);
#endif
    if constexpr (std::is_floating_point_v<T>) return x - Reg{};  // keeps -0
    else return Reg{} + x;
  }
  // The first `count` lanes.
  RL_SIMD Mask first(int64_t count) {
    return static_cast<Mask>(count >= W ? kAll : count <= 0 ? 0 : (uint64_t{1} << count) - 1);
  }
  // Of less than W.
  RL_SIMD Mask first_few(int64_t count) { return static_cast<Mask>((uint64_t{1} << count) - 1); }

  RL_SIMD Reg load(const T* p) { return *reinterpret_cast<const Loose*>(p); }
  RL_SIMD void store(T* p, Reg x) { *reinterpret_cast<Loose*>(p) = x; }
  // Lanes of the mask alone are read and written; the others are `other`, or zero.
  RL_SIMD Reg load(const T* p, Mask m, Reg other) {
#ifdef __AVX512F__
    if constexpr (kWide && kFloat) return _mm512_mask_loadu_ps(other, m, p);
    if constexpr (kWide && kDouble) return _mm512_mask_loadu_pd(other, m, p);
#endif
    if constexpr (!kWide || !(kFloat || kDouble))
      for (int i = 0; i < W; ++i)
        if (m >> i & 1) other[i] = p[i];
    return other;
  }
  RL_SIMD Reg load(const T* p, Mask m) {
#ifdef __AVX512F__
    if constexpr (kWide && kFloat) return _mm512_maskz_loadu_ps(m, p);
    if constexpr (kWide && kDouble) return _mm512_maskz_loadu_pd(m, p);
#endif
    return load(p, m, Reg{});
  }
  RL_SIMD void store(T* p, Reg x, Mask m) {
#ifdef __AVX512F__
    if constexpr (kWide && kFloat) return _mm512_mask_storeu_ps(p, m, x);
    if constexpr (kWide && kDouble) return _mm512_mask_storeu_pd(p, m, x);
#endif
    if constexpr (!kWide || !(kFloat || kDouble))
      for (int i = 0; i < W; ++i)
        if (m >> i & 1) p[i] = x[i];
  }
  // Past the caches, to whole cache lines; a fence follows before another thread may read it.
  RL_SIMD void stream(T* p, Reg x) {
#ifdef __AVX512F__
    if constexpr (kWide) return _mm512_stream_si512(reinterpret_cast<__m512i*>(p), std::bit_cast<__m512i>(x));
#endif
    store(p, x);
  }

  // a * b + c, rounded once where the machine can.
  RL_SIMD Reg fma(Reg a, Reg b, Reg c) {
#ifdef __AVX512F__
    if constexpr (kWide && kFloat) return _mm512_fmadd_ps(a, b, c);
    if constexpr (kWide && kDouble) return _mm512_fmadd_pd(a, b, c);
#endif
#ifdef __FMA__
    if constexpr (kAvx && kFloat) return _mm256_fmadd_ps(a, b, c);
    if constexpr (kAvx && kDouble) return _mm256_fmadd_pd(a, b, c);
#endif
    return a * b + c;
  }
  // c - a * b, likewise.
  RL_SIMD Reg fnma(Reg a, Reg b, Reg c) {
#ifdef __AVX512F__
    if constexpr (kWide && kFloat) return _mm512_fnmadd_ps(a, b, c);
    if constexpr (kWide && kDouble) return _mm512_fnmadd_pd(a, b, c);
#endif
    return fma(-a, b, c);
  }
  // a * b - c, likewise.
  RL_SIMD Reg fms(Reg a, Reg b, Reg c) {
#ifdef __AVX512F__
    if constexpr (kWide && kFloat) return _mm512_fmsub_ps(a, b, c);
    if constexpr (kWide && kDouble) return _mm512_fmsub_pd(a, b, c);
#endif
    return fma(a, b, -c);
  }
  // sum += *x * b, the element read by the instruction itself.
  RL_SIMD void fma_from(Reg& sum, Reg b, const T* x) {
#ifdef __AVX512F__
    if constexpr (kWide && kFloat) {
      asm("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(b), "m"(*x));
      return;
    }
    if constexpr (kWide && kDouble) {
      asm("vfmadd231pd %2%{1to8%}, %1, %0" : "+v"(sum) : "v"(b), "m"(*x));
      return;
    }
#endif
    sum = fma(all(*x), b, sum);
  }
  // Products of the lower, signed halves of 64-bit lanes.
  RL_SIMD Reg multiply_low(Reg a, Reg b) {
    static_assert(sizeof(T) == 8);
#ifdef __AVX512F__
    if constexpr (kWide)
      return std::bit_cast<Reg>(_mm512_mul_epi32(std::bit_cast<__m512i>(a), std::bit_cast<__m512i>(b)));
#endif
#ifdef __AVX2__
    if constexpr (kAvx)
      return std::bit_cast<Reg>(_mm256_mul_epi32(std::bit_cast<__m256i>(a), std::bit_cast<__m256i>(b)));
#endif
    return a * b;
  }
  // The second one where they cannot be compared, as the processor's instructions.
  RL_SIMD Reg min(Reg a, Reg b) {
#ifdef __AVX512F__
    if constexpr (kWide && kFloat) return _mm512_min_ps(a, b);
    if constexpr (kWide && kDouble) return _mm512_min_pd(a, b);
#endif
    return a < b ? a : b;
  }
  RL_SIMD Reg max(Reg a, Reg b) {
#ifdef __AVX512F__
    if constexpr (kWide && kFloat) return _mm512_max_ps(a, b);
    if constexpr (kWide && kDouble) return _mm512_max_pd(a, b);
#endif
    return a > b ? a : b;
  }
  RL_SIMD Reg abs(Reg x) {
#ifdef __AVX512F__
    if constexpr (kWide && kFloat) return _mm512_abs_ps(x);
    if constexpr (kWide && kDouble) return _mm512_abs_pd(x);
#endif
    constexpr auto kSign = static_cast<int_of<sizeof(T)>>(uint64_t{1} << (8 * sizeof(T) - 1));
    return std::bit_cast<Reg>(std::bit_cast<Bits>(x) & ~kSign);
  }
  RL_SIMD Reg sqrt(Reg x) {
#ifdef __AVX512F__
    if constexpr (kWide && kFloat) return _mm512_sqrt_ps(x);
    if constexpr (kWide && kDouble) return _mm512_sqrt_pd(x);
#endif
#ifdef __AVX2__
    if constexpr (kAvx && kFloat) return _mm256_sqrt_ps(x);
    if constexpr (kAvx && kDouble) return _mm256_sqrt_pd(x);
#endif
    if constexpr (!kWide && !kAvx)
      for (int i = 0; i < W; ++i) x[i] = kFloat ? __builtin_sqrtf(x[i]) : static_cast<T>(__builtin_sqrt(x[i]));
    return x;
  }

  // To the nearest whole number, of two to the even one.
  RL_SIMD Reg round(Reg x) {
#ifdef __AVX512F__
    if constexpr (kWide && kFloat) return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT);
    if constexpr (kWide && kDouble) return _mm512_roundscale_pd(x, _MM_FROUND_TO_NEAREST_INT);
#endif
    if constexpr (!kWide)
      for (int i = 0; i < W; ++i) x[i] = static_cast<T>(__builtin_rint(x[i]));
    return x;
  }
  // x * 2^n of whole n in the lanes of the mask, otherwise 0.
  RL_SIMD Reg scale(Mask m, Reg x, Reg n) {
#ifdef __AVX512F__
    if constexpr (kWide && kFloat) return _mm512_maskz_scalef_ps(m, x, n);
    if constexpr (kWide && kDouble) return _mm512_maskz_scalef_pd(m, x, n);
#endif
    if constexpr (!kWide)
      for (int i = 0; i < W; ++i)
        x[i] = m >> i & 1 ? static_cast<T>(__builtin_ldexp(x[i], static_cast<int>(n[i]))) : T(0);
    return x;
  }

  // Lanes of a comparison.
  RL_SIMD Mask less(Reg a, Reg b) {
#ifdef __AVX512F__
    if constexpr (kWide && kFloat) return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
    if constexpr (kWide && kDouble) return _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ);
#endif
    return bits(a < b);
  }
  RL_SIMD Mask equal(Reg a, Reg b) {
#ifdef __AVX512F__
    if constexpr (kWide && kFloat) return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
    if constexpr (kWide && kDouble) return _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ);
#endif
    return bits(a == b);
  }
  RL_SIMD Mask at_most(Reg a, Reg b) {
#ifdef __AVX512F__
    if constexpr (kWide && kFloat) return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ);
    if constexpr (kWide && kDouble) return _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ);
#endif
    return bits(a <= b);
  }
  // Not less: NaN too.
  RL_SIMD Mask not_less(Reg a, Reg b) {
#ifdef __AVX512F__
    if constexpr (kWide && kFloat) return _mm512_cmp_ps_mask(a, b, _CMP_NLT_UQ);
    if constexpr (kWide && kDouble) return _mm512_cmp_pd_mask(a, b, _CMP_NLT_UQ);
#endif
    return static_cast<Mask>(kAll & ~less(a, b));
  }
  RL_SIMD Mask unordered(Reg a, Reg b) {
#ifdef __AVX512F__
    if constexpr (kWide && kFloat) return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q);
    if constexpr (kWide && kDouble) return _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q);
#endif
    return static_cast<Mask>(bits(a != a) | bits(b != b));
  }
  // Lanes whose bits, as unsigned integers, are not within [low, end).
  RL_SIMD Mask bits_outside(Reg x, int_of<sizeof(T)> low, int_of<sizeof(T)> end) {
    using U = Vec<std::make_unsigned_t<int_of<sizeof(T)>>, kBytes>;
    const auto above = std::bit_cast<typename U::Reg>(x) - static_cast<typename U::Element>(low);
    const auto span = static_cast<typename U::Element>(end - low);
#ifdef __AVX512F__
    if constexpr (kWide && sizeof(T) == 4)
      return _mm512_cmpge_epu32_mask(std::bit_cast<__m512i>(above), std::bit_cast<__m512i>(U::all(span)));
#endif
    return bits(above >= span);
  }
  // The lanes that a comparison of the extension's own found, -1 or 0 each.
  template <class M> RL_SIMD Mask bits(M lanes) {
#ifdef __SSE2__
    if constexpr (kBytes == 16 && sizeof(T) == 4)
      return static_cast<Mask>(__builtin_ia32_movmskps(std::bit_cast<typename Vec<float, 16>::Reg>(lanes)));
    if constexpr (kBytes == 16 && sizeof(T) == 8)
      return static_cast<Mask>(__builtin_ia32_movmskpd(std::bit_cast<typename Vec<double, 16>::Reg>(lanes)));
#endif
#ifdef __AVX2__
    if constexpr (kAvx && sizeof(T) == 4) return static_cast<Mask>(_mm256_movemask_ps(std::bit_cast<__m256>(lanes)));
    if constexpr (kAvx && sizeof(T) == 8) return static_cast<Mask>(_mm256_movemask_pd(std::bit_cast<__m256d>(lanes)));
#endif
    Mask found = 0;
    for (int i = 0; i < W; ++i) found |= static_cast<Mask>(Mask{lanes[i] != 0} << i);
    return found;
  }
  // x in the lanes of the mask, otherwise `other`, or zero.
  RL_SIMD Reg select(Mask m, Reg x, Reg other) {
#ifdef __AVX512F__
    if constexpr (kWide && kFloat) return _mm512_mask_mov_ps(other, m, x);
    if constexpr (kWide && kDouble) return _mm512_mask_mov_pd(other, m, x);
#endif
    if constexpr (!kWide || !(kFloat || kDouble))
      for (int i = 0; i < W; ++i) other[i] = m >> i & 1 ? x[i] : other[i];
    return other;
  }
  RL_SIMD Reg select(Mask m, Reg x) {
#ifdef __AVX512F__
    if constexpr (kWide && kFloat) return _mm512_maskz_mov_ps(m, x);
    if constexpr (kWide && kDouble) return _mm512_maskz_mov_pd(m, x);
#endif
    return select(m, x, Reg{});
  }
  // max(a, b) in the lanes of the mask, otherwise b.
  RL_SIMD Reg max(Mask m, Reg a, Reg b) {
#ifdef __AVX512F__
    if constexpr (kWide && kFloat) return _mm512_mask_max_ps(b, m, a, b);
    if constexpr (kWide && kDouble) return _mm512_mask_max_pd(b, m, a, b);
#endif
    return select(m, max(a, b), b);
  }

  // Reductions, half of the lanes with the other half, down to one.
  RL_SIMD T sum(Reg x) {
    return halves(x, [](auto a, auto b) { return a + b; });
  }
  RL_SIMD T largest(Reg x) {
#ifdef __AVX512F__
    if constexpr (kWide && kFloat) return _mm512_reduce_max_ps(x);
    if constexpr (kWide && kDouble) return _mm512_reduce_max_pd(x);
#endif
    return halves(x, [](auto a, auto b) { return a > b ? a : b; });
  }
  template <class F> RL_SIMD T halves(Reg x, const F& f) {
    if constexpr (W == 2) {
      return f(x[0], x[1]);
    } else {
      using Half = Vec<T, kBytes / 2>;
      return [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
        return Half::halves(f(__builtin_shufflevector(x, x, I...), __builtin_shufflevector(x, x, (I + W / 2)...)), f);
      }(std::make_integer_sequence<int, W / 2>{});
    }
  }

  // As many bytes as there are int32.
  RL_SIMD Reg widen(const uint8_t* p) {
    static_assert(sizeof(T) == 4);
#ifdef __AVX2__
    if constexpr (kAvx)
      return std::bit_cast<Reg>(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
#endif
    Reg x{};
    if constexpr (!kAvx)
      for (int i = 0; i < W; ++i) x[i] = p[i];
    return x;
  }
  // As many fp16 or bf16 as there are floats; back, they are rounded to the nearest, of two to the even one.
  RL_SIMD Reg load(const bfloat16* p) {
    static_assert(kFloat);
#ifdef __AVX512F__
    if constexpr (kWide) return widened(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), p);
#endif
#ifdef __AVX2__
    if constexpr (kAvx) {
      const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
      return std::bit_cast<Reg>(_mm256_slli_epi32(wide, 16));
    }
#endif
    using Short = typename Vec<uint16_t, kBytes / 2>::Reg;
    using Word = typename Vec<uint32_t, kBytes>::Reg;
    Short h;
    __builtin_memcpy(&h, p, sizeof h);
    return std::bit_cast<Reg>(__builtin_convertvector(h, Word) << 16);
  }
  RL_SIMD Reg load(const float16* p) {
    static_assert(kFloat);
#ifdef __AVX512F__
    if constexpr (kWide) return widened(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), p);
#endif
#ifdef __F16C__
    if constexpr (kAvx) return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#endif
    Reg x{};
    if constexpr (!kWide)
      for (int i = 0; i < W; ++i) x[i] = static_cast<float>(p[i]);
    return x;
  }
#ifdef __AVX512F__
  RL_SIMD Reg widened(__m256i h, const float16*) { return _mm512_cvtph_ps(h); }
  RL_SIMD Reg widened(__m256i h, const bfloat16*) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
  }
  RL_SIMD __m256i narrowed(Reg x, const float16*) { return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT); }
  RL_SIMD __m256i narrowed(Reg x, const bfloat16*) {
    const __m512i bits = _mm512_castps_si512(x),
                  odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    const __m512i top = _mm512_mask_mov_epi32(_mm512_srli_epi32(up, 16), unordered(x, x), _mm512_set1_epi32(0x7fc0));
    return _mm512_cvtepi32_epi16(top);
  }
  template <class H>
    requires is_half_v<H>
  RL_SIMD Reg load(const H* p, Mask m) {
    return widened(_mm256_maskz_loadu_epi16(m, p), p);
  }
  template <class H>
    requires is_half_v<H>
  RL_SIMD void store(H* p, Reg x, Mask m) {
    _mm256_mask_storeu_epi16(p, m, narrowed(x, p));
  }
#endif
  RL_SIMD void store(bfloat16* p, Reg x) {
#ifdef __AVX512F__
    if constexpr (kWide) return _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrowed(x, p));
#endif
    using Short = typename Vec<uint16_t, kBytes / 2>::Reg;
    using Word = typename Vec<uint32_t, kBytes>::Reg;
    const Word b = std::bit_cast<Word>(x), rounded = (b + 0x7fffu + ((b >> 16) & 1u)) >> 16;
    const Short h = __builtin_convertvector(x == x ? rounded : Word{} + 0x7fc0u, Short);
    __builtin_memcpy(p, &h, sizeof h);
  }
  RL_SIMD void store(float16* p, Reg x) {
#ifdef __AVX512F__
    if constexpr (kWide) return _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrowed(x, p));
#endif
#ifdef __F16C__
    if constexpr (kAvx) return _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x, 0));
#endif
    if constexpr (!kWide)
      for (int i = 0; i < W; ++i) p[i] = float16(x[i]);
  }
};

// The Vec of a register.
template <class R> using Of = Vec<std::remove_cvref_t<decltype(std::declval<R>()[0])>, sizeof(R)>;

// The operations of a register's Vec.
#define RL_SIMD_FREE [[gnu::always_inline]] inline
template <class R> RL_SIMD_FREE R fma(R a, R b, R c) { return Of<R>::fma(a, b, c); }
template <class R> RL_SIMD_FREE R fnma(R a, R b, R c) { return Of<R>::fnma(a, b, c); }
template <class R> RL_SIMD_FREE R fms(R a, R b, R c) { return Of<R>::fms(a, b, c); }
template <class R> RL_SIMD_FREE R min(R a, R b) { return Of<R>::min(a, b); }
template <class R> RL_SIMD_FREE R max(R a, R b) { return Of<R>::max(a, b); }
template <class R> RL_SIMD_FREE R abs(R x) { return Of<R>::abs(x); }
template <class R> RL_SIMD_FREE R sqrt(R x) { return Of<R>::sqrt(x); }
template <class R> RL_SIMD_FREE auto less(R a, R b) { return Of<R>::less(a, b); }
template <class R> RL_SIMD_FREE auto equal(R a, R b) { return Of<R>::equal(a, b); }
template <class R> RL_SIMD_FREE auto at_most(R a, R b) { return Of<R>::at_most(a, b); }
template <class R> RL_SIMD_FREE auto not_less(R a, R b) { return Of<R>::not_less(a, b); }
template <class R> RL_SIMD_FREE auto unordered(R a, R b) { return Of<R>::unordered(a, b); }
template <class M, class R> RL_SIMD_FREE R select(M m, R x, R other) {
  return Of<R>::select(static_cast<typename Of<R>::Mask>(m), x, other);
}
template <class M, class R> RL_SIMD_FREE R select(M m, R x) {
  return Of<R>::select(static_cast<typename Of<R>::Mask>(m), x);
}
template <class M, class R> RL_SIMD_FREE R scale(M m, R x, R n) {
  return Of<R>::scale(static_cast<typename Of<R>::Mask>(m), x, n);
}
template <class R> RL_SIMD_FREE auto sum(R x) { return Of<R>::sum(x); }
template <class R> RL_SIMD_FREE auto largest(R x) { return Of<R>::largest(x); }
// Lane i is that of the index kIndex(i) into the lanes of a, then of b.
template <auto kIndex, class R> RL_SIMD_FREE R permute(R a, R b) {
  return [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
    return __builtin_shufflevector(a, b, kIndex(I)...);
  }(std::make_integer_sequence<int, Of<R>::W>{});
}
template <auto kIndex, class R> RL_SIMD_FREE R permute(R x) { return permute<kIndex>(x, x); }
#undef RL_SIMD_FREE

// One element with the same operations, for the ends of loops that are written for registers.
template <class T> struct One {
  using Reg = T;
  static constexpr int W = 1;
  RL_SIMD T load(const T* p) { return *p; }
  RL_SIMD void store(T* p, T x) { *p = x; }
  RL_SIMD T fma(T a, T b, T c) {
#ifdef __FMA__
    if constexpr (sizeof(T) == 4) return __builtin_fmaf(a, b, c);
    else return __builtin_fma(a, b, c);
#else
    return a * b + c;
#endif
  }
};

#undef RL_SIMD

}  // namespace rl::RL_ISA::simd
