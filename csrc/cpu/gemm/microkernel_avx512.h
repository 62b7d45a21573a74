// Vectors of 512 bits, the blocks they multiply, and how matrices are packed for them.
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <utility>

#include "cpu/isa.h"
#include "cpu/simd/transpose_avx512.h"
#include "cpu/simd/vector.h"

namespace rl::RL_ISA {
namespace {

template <class T> struct Vec : simd::Vec<T, 64> {
  using Reg = typename simd::Vec<T, 64>::Reg;
  static Reg mul(Reg a, Reg b) { return a * b; }
  static void transpose(Reg* r) { RL_ISA::transpose(r); }
};
template <class T> typename Vec<T>::Mask first_lanes(int64_t count) { return Vec<T>::first(count); }

// Four kQuarters rows of floats as columns, as far as the sum goes in fours. Returns how far.
template <int kQuarters> int64_t pack_quarters(const float* src, int64_t js, int64_t k, int64_t width, float* dst) {
  using V = Vec<float>;
  constexpr V::Mask lanes = static_cast<V::Mask>((1u << 4 * kQuarters) - 1);
  int64_t p = 0;
  for (; p + 4 <= k; p += 4) {
    // The rows that follow, a quarter of them in each iteration: they are too many for the processor to see where they
    // go on.
    const float* next = src + (4 * kQuarters + p / 4 % 4) * js + p;
#pragma GCC unroll 4
    for (int q = 0; q < kQuarters; ++q) __builtin_prefetch(next + 4 * q * js);
    V::Reg r[4];
    transpose_rows<kQuarters>(src + p, js, r);
#pragma GCC unroll 4
    for (int t = 0; t < 4; ++t) V::store(dst + (p + t) * width, r[t], lanes);
  }
  return p;
}

// dst[p * width + j] = src[j * js + p * ps] for p < k, j < count; lanes from count up to `padded` become zero.
template <class T>
void pack_panel(const T* src, int64_t js, int64_t ps, int64_t k, int64_t count, int64_t padded, int64_t width, T* dst) {
  using V = Vec<T>;
  constexpr int W = V::W;
  if (js == 1) {
    for (int64_t j = 0; j < padded; j += W) {
      auto in = first_lanes<T>(count - j), out = first_lanes<T>(padded - j);
      for (int64_t p = 0; p < k; ++p) V::store(dst + p * width + j, V::load(src + p * ps + j, in), out);
    }
  } else if (ps == 1) {
    for (int64_t j = 0; j < padded; j += W) {
      auto out = first_lanes<T>(padded - j);
      int64_t p = 0;
      // What is left of rows or of the sum, element by element: turning registers for it would take longer.
      const int64_t some = count - j < W ? count - j : W;
      auto one_by_one = [&](int64_t from) {
        for (int64_t q = from; q < k; ++q) {
          if (some < W) V::store(dst + q * width + j, V::zero(), out);
          for (int64_t i = 0; i < some; ++i) dst[q * width + j + i] = src[(j + i) * js + q];
        }
      };
      if (some <= 2) {
        one_by_one(0);
        continue;
      }
      if constexpr (W == 16) {
        const bool collide = js % 1024 == 0;  // in the first cache: whole lines are read at once, below
        if (collide) p = 0;
        else if (padded - j == 12 && count - j == 12) p = pack_quarters<3>(src + j * js, js, k, width, dst + j);
        else if (count - j >= 16) p = pack_quarters<4>(src + j * js, js, k, width, dst + j);
      }
      for (; p < k; p += W) {
        if (k - p <= 2) {
          one_by_one(p);
          break;
        }
        typename V::Reg r[W];
        auto in = first_lanes<T>(k - p);
        for (int i = 0; i < W; ++i) r[i] = j + i < count ? V::load(src + (j + i) * js + p, in) : V::zero();
        transpose(r);
        int64_t rows = k - p < W ? k - p : W;
        if (rows == W)
          for (int i = 0; i < W; ++i) V::store(dst + (p + i) * width + j, r[i], out);
        else
          for (int64_t i = 0; i < rows; ++i) V::store(dst + (p + i) * width + j, r[i], out);
      }
    }
  } else {
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < padded; ++j) dst[p * width + j] = j < count ? src[j * js + p * ps] : T(0);
  }
}

// Rows of `count` columns, with stride `step`, to panels of P columns: dst[i * k + p * width] for the panel at column
// i, which is P wide, or what is left in the last one. Four rows at a time: each is read on from where it was, and what
// is written are whole lines.
template <int P, class T> void pack_columns(const T* src, int64_t step, int64_t k, int64_t count, T* dst) {
  using V = Vec<T>;
  static_assert(P <= 2 * V::W);
  for (int64_t p = 0; p < k; p += 4) {
    const int64_t rows = k - p < 4 ? k - p : 4;
    for (int64_t i = 0; i < count; i += P) {
      const int64_t width = count - i < P ? count - i : P;
      const auto m0 = first_lanes<T>(width), m1 = first_lanes<T>(width - V::W);
      const T* from = src + p * step + i;
      T* to = dst + i * k + p * width;
      for (int64_t r = 0; r < rows; ++r, from += step, to += width) {
        __builtin_prefetch(from + 8 * step);
        if (P > V::W) __builtin_prefetch(from + 8 * step + V::W);
        V::store(to, V::load(from, m0), m0);
        if (P > V::W) V::store(to + V::W, V::load(from + V::W, m1), m1);
      }
    }
  }
}

inline constexpr int kBlockRows = 12;

// MR rows by NV vectors of c, from rows of b with stride ldb. a has unit stride along the sum and rows with stride `as`
// (in place), or unit stride along the rows and steps of the sum with stride `as`. The sums start from the row
// `start`, or from zero where it is null. `last` is the mask of the last vector of columns.
//   (k, a, as, b, ldb, c, ldc, alpha, add, start, last)
template <class T> using BlockFn = void (*)(int64_t, const T*, int64_t, const T*, int64_t, T*, int64_t, T, bool,
                                            const T*, typename Vec<T>::Mask);
// The same with a last argument: where the rows of b are left, one after another.
template <class T> using KeepingBlockFn = void (*)(int64_t, const T*, int64_t, const T*, int64_t, T*, int64_t, T, bool,
                                                   const T*, typename Vec<T>::Mask, T*);

}  // namespace
}  // namespace rl::RL_ISA

namespace rl::avx512 {

// They are compiled once, in microkernels_avx512.cpp: for 0 to kBlockRows rows by one or two vectors; and those that
// keep b, for kBlockRows rows by two vectors.
const RL_ISA::BlockFn<float>* float_blocks(int vectors, bool masked, bool in_place);
const RL_ISA::BlockFn<double>* double_blocks(int vectors, bool masked, bool in_place);
const RL_ISA::BlockFn<float>* pair_blocks(int vectors, bool in_place);  // of pairs of bfloat16 (Note [Pairs of bf16])
RL_ISA::KeepingBlockFn<float> float_keeping_block(bool in_place);
RL_ISA::KeepingBlockFn<double> double_keeping_block(bool in_place);

}  // namespace rl::avx512

namespace rl::RL_ISA {
namespace {

template <class T, int NV> const BlockFn<T>* blocks_of(bool masked, bool in_place) {
  if constexpr (sizeof(T) == 4) return avx512::float_blocks(NV, masked, in_place);
  else return avx512::double_blocks(NV, masked, in_place);
}
template <class T> KeepingBlockFn<T> keeping_block_of(bool in_place) {
  if constexpr (sizeof(T) == 4) return avx512::float_keeping_block(in_place);
  else return avx512::double_keeping_block(in_place);
}

// NV vectors of columns by MR rows of a with stride `ars` and unit stride along the sum; b is packed as
// [k][NV * W]. The result goes to tile[MR][NV * W].
template <int MR, int NV, class T> void rows_block(int64_t k, const T* a, int64_t ars, const T* b, T* tile) {
  using V = Vec<T>;
  typename V::Reg acc[MR][NV];
#pragma GCC unroll 32
  for (int r = 0; r < MR; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < NV; ++v) acc[r][v] = V::zero();
  // Three rows a pointer: what the processor's addresses can express.
  constexpr int kBases = (MR + 2) / 3;
  const T* base[kBases];
#pragma GCC unroll 8
  for (int i = 0; i < kBases; ++i) base[i] = a + 3 * i * ars;
  for (int64_t p = 0; p < k; ++p) {
    if (p % V::W == 0)  // the rows of the next call
#pragma GCC unroll 32
      for (int r = 0; r < MR; ++r)
        _mm_prefetch(reinterpret_cast<const char*>(base[r / 3] + p + (MR + r % 3) * ars), _MM_HINT_T0);
    typename V::Reg y[NV];
#pragma GCC unroll 2
    for (int v = 0; v < NV; ++v) y[v] = V::load(b + v * V::W);
#pragma GCC unroll 32
    for (int r = 0; r < MR; ++r) {
      typename V::Reg x = V::all(base[r / 3][p + (r % 3) * ars]);
#pragma GCC unroll 2
      for (int v = 0; v < NV; ++v) acc[r][v] = V::fma(x, y[v], acc[r][v]);
    }
    b += NV * V::W;
  }
#pragma GCC unroll 32
  for (int r = 0; r < MR; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < NV; ++v) V::store(tile + (r * NV + v) * V::W, acc[r][v]);
}
template <class T> using RowsFn = void (*)(int64_t, const T*, int64_t, const T*, T*);
template <class T, int NV, class = std::make_integer_sequence<int, kBlockRows>> struct RowBlocks;
template <class T, int NV, int... kRows> struct RowBlocks<T, NV, std::integer_sequence<int, kRows...>> {
  static constexpr RowsFn<T> kAll[] = {nullptr, &rows_block<kRows + 1, NV, T>...};
};

// c[j * cls + r * crs] = alpha * tile[r][j] (+ c), for r < rows and j < lanes; one of the strides of c is 1.
template <class T>
void put_tile(const T* tile, int rows, int width, int lanes, T* c, int64_t crs, int64_t cls, T alpha, bool add) {
  using V = Vec<T>;
  typename V::Reg scale = V::all(alpha);
  if (cls == 1) {
    for (int r = 0; r < rows; ++r)
      for (int j = 0; j < lanes; j += V::W) {
        auto mask = first_lanes<T>(lanes - j);
        typename V::Reg x = V::load(tile + r * width + j) * scale;
        T* to = c + r * crs + j;
        V::store(to, add ? V::fma(V::load(tile + r * width + j), scale, V::load(to, mask)) : x, mask);
      }
    return;
  }
  for (int j0 = 0; j0 < lanes; j0 += V::W)
    for (int r0 = 0; r0 < rows; r0 += V::W) {
      typename V::Reg x[V::W];
      for (int i = 0; i < V::W; ++i) x[i] = r0 + i < rows ? V::load(tile + (r0 + i) * width + j0) : V::zero();
      transpose(x);
      auto mask = first_lanes<T>(rows - r0);
      for (int i = 0; i < V::W && j0 + i < lanes; ++i) {
        T* to = c + (j0 + i) * cls + r0;
        V::store(to, add ? V::fma(x[i], scale, V::load(to, mask)) : x[i] * scale, mask);
      }
    }
}

// R by S dot products of rows: a's and b's both with unit stride along the sum. c's strides are free. kAhead: the S
// rows of b behind these are asked for meanwhile. Rows are too short for the processor to see that they follow.
template <int R, int S, bool kAhead, class T> void dots(int64_t k, const T* a, int64_t ars, const T* b, int64_t bcs,
                                                        T* c, int64_t crs, int64_t ccs, T alpha, bool add) {
  using V = Vec<T>;
  constexpr int kPadded = (R * S + V::W - 1) / V::W * V::W;
  typename V::Reg acc[kPadded];
#pragma GCC unroll 32
  for (int i = 0; i < kPadded; ++i) acc[i] = V::zero();
  int64_t p = 0;
  for (; p + V::W <= k; p += V::W) {
    typename V::Reg y[S];
#pragma GCC unroll 8
    for (int s = 0; s < S; ++s) y[s] = V::load(b + s * bcs + p);
    if (kAhead)
#pragma GCC unroll 8
      for (int s = 0; s < S; ++s) _mm_prefetch(reinterpret_cast<const char*>(b + (S + s) * bcs + p), _MM_HINT_T0);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      typename V::Reg x = V::load(a + r * ars + p);
#pragma GCC unroll 8
      for (int s = 0; s < S; ++s) acc[r * S + s] = V::fma(x, y[s], acc[r * S + s]);
    }
  }
  if (p < k) {
    auto lanes = first_lanes<T>(k - p);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      typename V::Reg x = V::load(a + r * ars + p, lanes);
#pragma GCC unroll 8
      for (int s = 0; s < S; ++s) acc[r * S + s] = V::fma(x, V::load(b + s * bcs + p, lanes), acc[r * S + s]);
    }
  }
  T sums[kPadded];
#pragma GCC unroll 4
  for (int i = 0; i < kPadded; i += V::W) lane_sums(acc + i, sums + i);
  for (int r = 0; r < R; ++r)
    for (int s = 0; s < S; ++s) {
      T &out = c[r * crs + s * ccs], v = alpha * sums[r * S + s];
      out = add ? out + v : v;
    }
}

}  // namespace
}  // namespace rl::RL_ISA
