// The microkernels of GEMMs on 512-bit registers.
#include <cstdint>
#include <utility>

#include "cpu/gemm/microkernel_avx512.h"

namespace rl::RL_ISA {
namespace {

// Words that are pairs of bfloat16 (Note [Pairs of bf16]). The assembler knows the instruction whatever this file is
// compiled for.
struct PairVec : Vec<float> {
  static Reg fma(Reg a, Reg b, Reg c) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(c) : "v"(b), "v"(a));
    return c;
  }
  static void fma_from(Reg& sum, Reg b, const float* x) {
    asm("vdpbf16ps %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(b), "m"(*x));
  }
};

constexpr int kRowsAhead = 24;  // of b in place: loading them takes longer than the multiplications of a few rows

// See BlockFn. With kKeeps the rows of b are left in `kept`, one after another.
template <int MR, int NV, bool kMasked, bool kInPlace, bool kKeeps, class T, class V = Vec<T>>
[[gnu::always_inline]] inline void block_of(int64_t k, const T* a, int64_t as, const T* b, int64_t ldb, T* c,
                                            int64_t ldc, T alpha, bool add, const T* start, typename Vec<T>::Mask last,
                                            T* kept) {
  const auto full = static_cast<typename V::Mask>(~0u);
  auto mask = [&](int v) { return v == NV - 1 ? last : full; };
  typename V::Reg acc[MR][NV];
#pragma GCC unroll 2
  for (int v = 0; v < NV; ++v) {
    typename V::Reg s = start ? V::load(start + v * V::W, mask(v)) : V::zero();
#pragma GCC unroll 16
    for (int r = 0; r < MR; ++r) acc[r][v] = s;
  }
  // Three rows a pointer: what the processor's addresses can express.
  constexpr int kBases = (MR + 2) / 3;
  const T* base[kBases];
#pragma GCC unroll 8
  for (int i = 0; i < kBases; ++i) base[i] = a + 3 * i * as;
  // The fewer instructions, the less is lost to another thread on the same core. So of a packed a every other row is
  // read by the multiplications themselves; all of them would be more reads than the core can do.
  constexpr int kLoaded = (MR + 1) / 2;
  int64_t p = 0;
  auto step = [&](int64_t at) __attribute__((always_inline)) {
    typename V::Reg y[NV];
#pragma GCC unroll 2
    for (int v = 0; v < NV; ++v) y[v] = kMasked && v == NV - 1 ? V::load(b + v * V::W, last) : V::load(b + v * V::W);
    if constexpr (kKeeps) {
#pragma GCC unroll 2
      for (int v = 0; v < NV; ++v) {
        _mm_prefetch(reinterpret_cast<const char*>(b + kRowsAhead * ldb + v * V::W), _MM_HINT_T1);
        V::store(kept + v * V::W, y[v]);
      }
      kept += NV * V::W;
    }
#pragma GCC unroll 16
    for (int r = 0; r < MR; ++r) {
      if (!kInPlace && r >= kLoaded) {
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) V::fma_from(acc[r][v], y[v], a + r);
        continue;
      }
      typename V::Reg x = V::all(kInPlace ? base[r / 3][at + (r % 3) * as] : a[r]);
#pragma GCC unroll 2
      for (int v = 0; v < NV; ++v) acc[r][v] = V::fma(x, y[v], acc[r][v]);
    }
    if (!kInPlace) a += as;
    b += ldb;
    asm("" : "+r"(a), "+r"(b));  // else four steps' addresses are computed ahead, for which there are no registers
  };
  // A row of c in every iteration: it is wanted when the sums are there, and all rows at once would hold up b.
  const T *c_row = c, *const last_c_row = c + (MR - 1) * ldc;
#pragma GCC unroll 1
  for (; p + 4 <= k; p += 4) {
    __builtin_prefetch(c_row, 1);
    if (NV > 1) __builtin_prefetch(c_row + V::W, 1);
    c_row = c_row == last_c_row ? c_row : c_row + ldc;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) step(p + i);
  }
#pragma GCC unroll 1
  for (; p < k; ++p) step(p);
  typename V::Reg scale = V::all(alpha);
#pragma GCC unroll 16
  for (int r = 0; r < MR; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < NV; ++v) {
      T* to = c + r * ldc + v * V::W;
      V::store(to, add ? Vec<T>::fma(acc[r][v], scale, V::load(to, mask(v))) : acc[r][v] * scale, mask(v));
    }
}

template <int MR, int NV, bool kMasked, bool kInPlace, class T>
void block(int64_t k, const T* a, int64_t as, const T* b, int64_t ldb, T* c, int64_t ldc, T alpha, bool add,
           const T* start, typename Vec<T>::Mask last) {
  block_of<MR, NV, kMasked, kInPlace, false>(k, a, as, b, ldb, c, ldc, alpha, add, start, last,
                                             static_cast<T*>(nullptr));
}

// The blocks of 0 to kBlockRows rows.
template <class T, int NV, bool kMasked, bool kInPlace, class = std::make_integer_sequence<int, kBlockRows>>
struct Blocks;
template <class T, int NV, bool kMasked, bool kInPlace, int... kRows>
struct Blocks<T, NV, kMasked, kInPlace, std::integer_sequence<int, kRows...>> {
  static constexpr BlockFn<T> kAll[] = {nullptr, &block<kRows + 1, NV, kMasked, kInPlace, T>...};
};
template <class T, int NV> const BlockFn<T>* table(bool masked, bool in_place) {
  if (in_place) return masked ? Blocks<T, NV, true, true>::kAll : Blocks<T, NV, false, true>::kAll;
  return masked ? Blocks<T, NV, true, false>::kAll : Blocks<T, NV, false, false>::kAll;
}
template <bool kInPlace, class T> void keeping_block(int64_t k, const T* a, int64_t as, const T* b, int64_t ldb, T* c,
                                                     int64_t ldc, T alpha, bool add, const T* start,
                                                     typename Vec<T>::Mask last, T* kept) {
  block_of<kBlockRows, 2, false, kInPlace, true>(k, a, as, b, ldb, c, ldc, alpha, add, start, last, kept);
}

// Panels of pairs are whole always.
template <int MR, int NV, bool kInPlace> void pair_block(int64_t k, const float* a, int64_t as, const float* b,
                                                         int64_t ldb, float* c, int64_t ldc, float alpha, bool add,
                                                         const float* start, __mmask16 last) {
  block_of<MR, NV, false, kInPlace, false, float, PairVec>(k, a, as, b, ldb, c, ldc, alpha, add, start, last, nullptr);
}
template <int NV, bool kInPlace, int... kRows> const BlockFn<float>* pair_table(std::integer_sequence<int, kRows...>) {
  static constexpr BlockFn<float> kAll[] = {nullptr, &pair_block<kRows + 1, NV, kInPlace>...};
  return kAll;
}

}  // namespace

const BlockFn<float>* pair_blocks(int vectors, bool in_place) {
  constexpr std::make_integer_sequence<int, kBlockRows> kRows;
  if (in_place) return vectors == 2 ? pair_table<2, true>(kRows) : pair_table<1, true>(kRows);
  return vectors == 2 ? pair_table<2, false>(kRows) : pair_table<1, false>(kRows);
}
const BlockFn<float>* float_blocks(int vectors, bool masked, bool in_place) {
  return vectors == 2 ? table<float, 2>(masked, in_place) : table<float, 1>(masked, in_place);
}
const BlockFn<double>* double_blocks(int vectors, bool masked, bool in_place) {
  return vectors == 2 ? table<double, 2>(masked, in_place) : table<double, 1>(masked, in_place);
}
KeepingBlockFn<float> float_keeping_block(bool in_place) {
  return in_place ? &keeping_block<true, float> : &keeping_block<false, float>;
}
KeepingBlockFn<double> double_keeping_block(bool in_place) {
  return in_place ? &keeping_block<true, double> : &keeping_block<false, double>;
}

}  // namespace rl::RL_ISA
