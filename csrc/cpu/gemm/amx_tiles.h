// GEMMs on AMX tiles, which multiply bfloat16 and accumulate in float.
//
// Note [Parts of a float]
// A float is nearly the sum of two bfloat16 of 8 bits each: x = x1 + x2, each the rest rounded to nearest. Of
// the four products of x and y AMX takes x1 y1, x1 y2 and x2 y1: what is left out is below 2^-16 of |x y|. That is
// what set_float32_matmul_precision("high") asks for; "medium" asks for x1 y1 alone, and GEMMs of bfloat16
// are exact. The small products are accumulated first, separately from the large one, over a slice of the sum: so they
// add no rounding of its size. Infinity has no second part, and the largest finite values round to infinity: strips
// with such values are found while they are packed, and multiplied by plain loops.
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <type_traits>

#include "base/half.h"
#include "cpu/isa.h"
#include "cpu/simd/transpose_avx512.h"

namespace rl::RL_ISA {
namespace {

inline constexpr int kTile = 16;                           // rows or columns of a tile
inline constexpr int kStep = 32;                           // of the sum, in one tile
inline constexpr int64_t kTileDwords = kTile * kStep / 2;  // a tile of pairs of bfloat16, in dwords of 32 bits
inline constexpr int64_t kSlice = 512;                     // of the sum: what is accumulated separately

// The unit's configuration, for as long as it is used: eight tiles of 16 rows of 64 bytes.
class Tiling {
 public:
  Tiling() {
    alignas(64) static constexpr struct Config {
      uint8_t palette = 1, start = 0, unused[14] = {};
      uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } kConfig;
    _tile_loadconfig(&kConfig);
  }
  ~Tiling() { _tile_release(); }
  Tiling(const Tiling&) = delete;
  Tiling& operator=(const Tiling&) = delete;
};

inline __mmask16 lanes(int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xffff : count <= 0 ? 0 : (1u << count) - 1);
}
inline __m512 load_lanes(const float* from, __mmask16 mask) { return _mm512_maskz_loadu_ps(mask, from); }
inline __m512 load_lanes(const bfloat16* from, __mmask16 mask) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from)), 16));
}

// parts[i] = the i-th parts of x0's lanes in the low halves of the dwords, of x1's in the high ones.
template <int kParts> void split(__m512 x0, __m512 x1, __m512i* parts) {
  alignas(64) static constexpr uint16_t kPairs[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const __m512i pairs = _mm512_load_si512(kPairs);
#pragma GCC unroll 2
  for (int i = 0; i < kParts; ++i) {
    parts[i] = _mm512_permutexvar_epi16(pairs, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(x1, x0)));
    if (i == kParts - 1) break;
    x0 = _mm512_sub_ps(x0, _mm512_castsi512_ps(_mm512_slli_epi32(parts[i], 16)));
    x1 = _mm512_sub_ps(x1, _mm512_castsi512_ps(_mm512_and_si512(parts[i], _mm512_set1_epi32(-65536))));
  }
}

// The largest sizes seen, lane by lane.
class Largest {
 public:
  void see(__m512 x) {
    size_ = _mm512_range_ps(size_, x, 0b0111);
  }  // the larger size of the two; a finite value before NaN
  // Whether a value has no second part: infinities, and what would round to one. NaN has: its parts are NaN.
  bool without_parts() const {
    return _mm512_cmp_ps_mask(size_, _mm512_castsi512_ps(_mm512_set1_epi32(0x7f7f8000)), _CMP_GE_OQ) != 0;
  }

 private:
  __m512 size_ = {};
};

// Packs `count` <= 16 lanes (rows of the left matrix, columns of the right one) by `len` <= 32 steps of the sum to one
// tile a part, `stride` dwords apart; the rest of the tiles is zero. The source's rows have stride `step`: 16 lanes of
// 32 steps each (kLaneRows), or 32 steps of 16 lanes each. A row of a tile holds the steps of one lane, as the unit
// wants the left matrix, or the lanes of a pair of steps, as it wants the right one: those of the source, or the other
// ones (kTurned). A pair is steps i and 16 + i.
template <int kParts, bool kLaneRows, bool kTransposed, class S>
void pack_tile(const S* src, int64_t step, int64_t count, int64_t len, uint32_t* dst, int64_t stride,
               Largest* largest) {
  const __mmask16 m0 = lanes(kLaneRows ? len : count), m1 = kLaneRows ? lanes(len - kTile) : m0;
  auto load = [&](int q, int half) {
    const S* from = kLaneRows ? src + q * step + half * kTile : src + (q + half * kTile) * step;
    const bool in = kLaneRows ? q < count : q + half * kTile < len;
    const __m512 x = load_lanes(from, in ? (half ? m1 : m0) : 0);
    if (kParts > 1) largest[half].see(x);
    return x;
  };
  auto put = [&](int q, __m512 x0, __m512 x1) {
    __m512i parts[kParts];
    split<kParts>(x0, x1, parts);
#pragma GCC unroll 2
    for (int i = 0; i < kParts; ++i) _mm512_store_si512(dst + i * stride + q * kTile, parts[i]);
  };
  if constexpr (kTransposed) {
    __m512 r0[kTile], r1[kTile];
#pragma GCC unroll 16
    for (int q = 0; q < kTile; ++q) r0[q] = load(q, 0);
    transpose(r0);
#pragma GCC unroll 16
    for (int q = 0; q < kTile; ++q) r1[q] = load(q, 1);
    transpose(r1);
    for (int q = 0; q < kTile; ++q) put(q, r0[q], r1[q]);
  } else {
#pragma GCC unroll 4
    for (int q = 0; q < kTile; ++q) {
      const __m512 x0 = load(q, 0), x1 = load(q, 1);
      put(q, x0, x1);
    }
  }
}

// A strip of up to 32 lanes by `len` steps: for each 32 steps, part after part, one tile of each half.
inline constexpr int64_t kStripLanes = 2 * kTile;
template <int kParts> inline constexpr int64_t kStripStep = 2 * kParts * kTileDwords;

// Of a left matrix (kLeft) lanes are rows, of a right one columns: src[lane * ls + step * ps]. Returns whether a value
// has no second part where one is wanted.
template <int kParts, bool kLeft, class S>
bool pack_strip(const S* src, int64_t ls, int64_t ps, int64_t count, int64_t len, uint32_t* dst) {
  Largest largest[2];
  S gathered[kTile * kStep];
  for (int64_t p = 0; p < len; p += kStep, dst += kStripStep<kParts>)
    for (int64_t half = 0; half < 2 && half * kTile < count; ++half) {
      const int64_t n = count - half * kTile < kTile ? count - half * kTile : kTile;
      const int64_t steps = len - p < kStep ? len - p : kStep;
      const S* from = src + half * kTile * ls + p * ps;
      uint32_t* to = dst + half * kTileDwords;
      if (ls == 1 && ps != 1) {
        pack_tile<kParts, false, kLeft>(from, ps, n, steps, to, 2 * kTileDwords, largest);
        continue;
      }
      int64_t step = ls;
      if (ps != 1) {
        for (int64_t i = 0; i < n; ++i)
          for (int64_t q = 0; q < steps; ++q) gathered[i * kStep + q] = from[i * ls + q * ps];
        from = gathered, step = kStep;
      }
      pack_tile<kParts, true, !kLeft>(from, step, n, steps, to, 2 * kTileDwords, largest);
    }
  return kParts > 1 && (largest[0].without_parts() || largest[1].without_parts());
}

// Tiles 0 to 3 are the sums, two rows of two; 4 and 5 the two halves of the left strip, 6 and 7 those of the right one.
#define RL_LEFT(part)                                 \
  _tile_loadd(4, a + (2 * (part)) * kTileDwords, 64); \
  if (kRows == 2) _tile_loadd(5, a + (2 * (part) + 1) * kTileDwords, 64);
#define RL_RIGHT(part)                                \
  _tile_loadd(6, b + (2 * (part)) * kTileDwords, 64); \
  if (kCols == 2) _tile_loadd(7, b + (2 * (part) + 1) * kTileDwords, 64);
#define RL_AMX_TARGET                      \
  _tile_dpbf16ps(0, 4, 6);                 \
  if (kCols == 2) _tile_dpbf16ps(1, 4, 7); \
  if (kRows == 2) _tile_dpbf16ps(2, 5, 6); \
  if (kRows == 2 && kCols == 2) _tile_dpbf16ps(3, 5, 7);

// sums[row half][column half][16][16] = the product of two strips over `steps` times 32 steps of the sum.
template <int kParts, int kRows, int kCols>
void strips_gemm(int64_t steps, const uint32_t* a, const uint32_t* b, float* sums) {
  constexpr int64_t kAhead = kStripStep<kParts>;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  if (kParts == 2) {
    const uint32_t *a0 = a, *b0 = b;
    for (int64_t i = 0; i < steps; ++i, a += kAhead, b += kAhead) {
      RL_LEFT(0) RL_RIGHT(1) RL_AMX_TARGET RL_LEFT(1) RL_RIGHT(0) RL_AMX_TARGET
    }
    a = a0, b = b0;
  }
  for (int64_t i = 0; i < steps; ++i, a += kAhead, b += kAhead) {
    RL_LEFT(0) RL_RIGHT(0) RL_AMX_TARGET
  }
  _tile_stored(0, sums, 64);
  if (kCols == 2) _tile_stored(1, sums + kTile * kTile, 64);
  if (kRows == 2) _tile_stored(2, sums + 2 * kTile * kTile, 64);
  if (kRows == 2 && kCols == 2) _tile_stored(3, sums + 3 * kTile * kTile, 64);
}
#undef RL_LEFT
#undef RL_RIGHT
#undef RL_AMX_TARGET

}  // namespace
}  // namespace rl::RL_ISA
