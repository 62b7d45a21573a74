// Vectors of which memory holds the first lanes only: the ends of rows.
#pragma once
#include <cstdint>
#include <type_traits>

#include "cpu/isa.h"
#include "cpu/simd/vec.h"

namespace rl::RL_ISA {
namespace {

#ifdef __AVX2__
// Ones for the first `left` lanes.
template <class I> [[gnu::always_inline]] inline Vec<I> first_lanes(int64_t left) {
  static constexpr I kOnes[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  return load_vec(kOnes + 8 - left);
}
[[gnu::always_inline]] inline Vec<float> masked_load(const float* p, Vec<int32_t> mask) {
  return __builtin_ia32_maskloadps256(reinterpret_cast<const Vec<float>*>(p), mask);
}
[[gnu::always_inline]] inline Vec<double> masked_load(const double* p, Vec<long long> mask) {
  return __builtin_ia32_maskloadpd256(reinterpret_cast<const Vec<double>*>(p), mask);
}
[[gnu::always_inline]] inline void masked_store(float* p, Vec<int32_t> mask, Vec<float> v) {
  __builtin_ia32_maskstoreps256(reinterpret_cast<Vec<float>*>(p), mask, v);
}
[[gnu::always_inline]] inline void masked_store(double* p, Vec<long long> mask, Vec<double> v) {
  __builtin_ia32_maskstorepd256(reinterpret_cast<Vec<double>*>(p), mask, v);
}
template <class C> using MaskOf = std::conditional_t<sizeof(C) == 4, int32_t, long long>;
#endif

// The vector at p[i] of n elements, the missing ones replaced.
template <class C> [[gnu::always_inline]] inline Vec<C> load_part(const C* p, int64_t left, C fill) {
  if (left >= kLanes<C>) return load_vec(p);
#ifdef __AVX2__
  auto mask = first_lanes<MaskOf<C>>(left);
  return mask ? masked_load(p, mask) : Vec<C>{} + fill;
#else
  C lane[kLanes<C>];
  for (int j = 0; j < kLanes<C>; ++j) lane[j] = j < left ? p[j] : fill;
  return load_vec(lane);
#endif
}
template <class C> [[gnu::always_inline]] inline void store_part(C* p, int64_t left, const Vec<C>& v) {
  if (left >= kLanes<C>) return store_vec(p, v);
#ifdef __AVX2__
  masked_store(p, first_lanes<MaskOf<C>>(left), v);
#else
  C lane[kLanes<C>];
  store_vec(lane, v);
  for (int j = 0; j < left; ++j) p[j] = lane[j];
#endif
}
// The sum of the lanes, pairwise.
template <class C> [[gnu::always_inline]] inline double lane_sum(const Vec<C>& v) {
  C lane[kLanes<C>];
  store_vec(lane, v);
#pragma GCC unroll 4
  for (int w = kLanes<C> / 2; w > 0; w /= 2)
    for (int j = 0; j < w; ++j) lane[j] += lane[j + w];
  return static_cast<double>(lane[0]);
}

}  // namespace
}  // namespace rl::RL_ISA
