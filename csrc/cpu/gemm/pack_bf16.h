// Packing of fp16 and bf16 for the registers of a GEMM: pairs of bf16 in the VNNI layout of vdpbf16ps.
//
// Note [Pairs of bf16]
// The blocks of a GEMM (microkernels_avx512.cpp) see dwords: one step of the sum as a float, or two steps
// as a pair of bfloat16, where the processor multiplies pairs and adds both products to a float (vdpbf16ps), twice as
// many in the same time. An odd last step is paired with zero. All else is the same for both; fp16 and bf16 become
// floats, or floats become bf16, while they are packed.
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <type_traits>

#include "base/half.h"
#include "cpu/gemm/microkernel_avx512.h"

namespace rl::RL_ISA {
namespace {

inline __mmask16 first16(int64_t count) { return first_lanes<float>(count); }
inline __mmask32 first32(int64_t count) {
  return count >= 32 ? ~__mmask32{0} : count <= 0 ? 0 : (__mmask32{1} << count) - 1;
}

inline __m512 widened(__m256i bits, const bfloat16*) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}
inline __m512 widened(__m256i bits, const float16*) { return _mm512_cvtph_ps(bits); }

// 16 elements as floats, those out of the mask as zeros; and back, rounded to nearest even.
template <class S> __m512 get(const S* from, __mmask16 mask) {
  if constexpr (std::is_same_v<S, float>) return _mm512_maskz_loadu_ps(mask, from);
  else return widened(_mm256_maskz_loadu_epi16(mask, from), from);
}
inline __m256i rounded(__m512 x, const float16*) { return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT); }
inline __m256i rounded(__m512 x, const bfloat16*) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i near = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
  const __m512i all =
      _mm512_mask_mov_epi32(near, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), _mm512_set1_epi32(0x7fc00000));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(all, 16));
}
template <class S> void put(S* to, __m512 x, __mmask16 mask) {
  if constexpr (std::is_same_v<S, float>) _mm512_mask_storeu_ps(to, mask, x);
  else _mm256_mask_storeu_epi16(to, mask, rounded(x, to));
}

// A dword is one step, a float.
template <class S> struct Floats {
  using Number = S;
  static constexpr int64_t kSteps = 1;
  static constexpr bool kInPlace = false;  // whether dwords may be read where they lie
  // 16 dwords along the sum, of which `left` steps are there; 16 lanes of one dword, whose steps have stride `step`.
  static __m512 along(const S* from, int64_t left) { return get(from, first16(left)); }
  static __m512 across(const S* from, int64_t, int64_t, __mmask16 mask) { return get(from, mask); }
  static void across_two(const S* from, int64_t, int64_t, float* to) {  // 32 lanes
    _mm512_storeu_ps(to, get(from, 0xffff));
    _mm512_storeu_ps(to + 16, get(from + 16, 0xffff));
  }
  static void put_two(S* to, __m512 x0, __m512 x1) { put(to, x0, 0xffff), put(to + 16, x1, 0xffff); }
  static void multiply_add(__m512& sum, __m512 x, __m512 y) { sum = _mm512_fmadd_ps(x, y, sum); }
  static const BlockFn<float>* blocks(int vectors, bool) { return avx512::float_blocks(vectors, false, false); }
};

// 16 lanes of stride `ls`, with unit stride along the sum, as `dwords` <= 16 rows of lanes with stride `width`.
template <class K> [[gnu::flatten]] void transpose_dwords(const typename K::Number* src, int64_t ls, int64_t left,
                                                          int64_t lanes, int64_t dwords, int64_t width, __mmask16 out,
                                                          float* dst) {
  __m512 r[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) r[i] = i < lanes ? K::along(src + i * ls, left) : _mm512_setzero_ps();
  transpose(r);
  if (dwords == 16)
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) _mm512_mask_storeu_ps(dst + i * width, out, r[i]);
  else
    for (int64_t i = 0; i < dwords; ++i) _mm512_mask_storeu_ps(dst + i * width, out, r[i]);
}

// dst[w * width + lane] = dword w of a lane, for `steps` steps of the sum; lanes from `count` up to `width` <= 32
// become zero. An element is at src[lane * ls + step * ps].
template <class K> void pack_dwords(const typename K::Number* src, int64_t ls, int64_t ps, int64_t steps, int64_t count,
                                    int64_t width, float* dst) {
  using S = typename K::Number;
  constexpr int64_t kTaken = 16 * K::kSteps;
  const int64_t dwords = (steps + K::kSteps - 1) / K::kSteps;
  S gathered[16 * kTaken];
  for (int64_t j = 0; j < width; j += 16)
    for (int64_t w = 0; w < dwords; w += 16) {
      const int64_t left = steps - w * K::kSteps, lanes = count - j < 16 ? count - j : 16;
      const S* rows = src + j * ls + w * K::kSteps * ps;
      int64_t step = ls;
      if (ps != 1) {
        const int64_t some = left < kTaken ? left : kTaken;
        for (int64_t i = 0; i < lanes; ++i)
          for (int64_t s = 0; s < some; ++s) gathered[i * kTaken + s] = rows[i * ls + s * ps];
        rows = gathered, step = kTaken;
      }
      transpose_dwords<K>(rows, step, left, lanes, dwords - w < 16 ? dwords - w : 16, width, first16(width - j),
                          dst + w * width + j);
    }
}

// `count` lanes to panels of `most` lanes, one after another, each [dword][lane]. The last one has as many lanes as are
// left (kPads: or as many as fill its vectors).
template <bool kPads> int64_t panel_width(int64_t left, int64_t most) {
  return left >= most ? most : !kPads ? left : left > 16 ? 32 : 16;
}
template <class K, bool kPads> void pack_panels(const typename K::Number* src, int64_t ls, int64_t ps, int64_t steps,
                                                int64_t count, int64_t most, float* dst) {
  const int64_t dwords = (steps + K::kSteps - 1) / K::kSteps;
  if (ls != 1) {
    for (int64_t j = 0; j < count; j += most)
      pack_dwords<K>(src + j * ls, ls, ps, steps, count - j < most ? count - j : most,
                     panel_width<kPads>(count - j, most), dst + j * dwords);
    return;
  }
  // A dword of all lanes at a time: each step is read on from where it was, and what is written are whole lines.
  for (int64_t w = 0; w < dwords; ++w, src += K::kSteps * ps) {
    const int64_t left = steps - w * K::kSteps;
    int64_t j = 0;
    for (; kPads && j + 32 <= count; j += 32) {
      for (int64_t s = 0; s < K::kSteps; ++s)
        _mm_prefetch(reinterpret_cast<const char*>(src + (8 + s) * ps + j), _MM_HINT_T0);
      K::across_two(src + j, ps, left, dst + j * dwords + w * 32);
    }
    for (; j < count; j += most) {
      const int64_t width = panel_width<kPads>(count - j, most), some = count - j < most ? count - j : most;
      float* to = dst + j * dwords + w * width;
      for (int64_t v = 0; v < width; v += 16)
        _mm512_mask_storeu_ps(to + v, first16(width - v), K::across(src + j + v, ps, left, first16(some - v)));
    }
  }
}

}  // namespace
}  // namespace rl::RL_ISA
