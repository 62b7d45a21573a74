// The taps that grid_sample reads around the points of a volume, or with cubic weights.
#pragma once
#include <cstdint>

#include "backend/resample.h"
#include "cpu/isa.h"

namespace rl::cpu {

inline constexpr int64_t kTapPoints = 128;
inline constexpr int kMostTaps = 4, kMostCorners = 16;

// Of each of some points: the offsets of its taps along one dimension, their weights (0 outside), and the weights'
// derivatives wrt the grid's coordinate.
template <class T> struct AxisTaps {
  int count = 0;
  alignas(64) int32_t offset[kMostTaps][kTapPoints];
  alignas(64) T weight[kMostTaps][kTapPoints], derivative[kMostTaps][kTapPoints];
};

// The taps of all dimensions together.
template <class T> struct TapCorners {
  AxisTaps<T> axes[3];  // x, y, z
  int count = 0;
  alignas(64) int32_t offset[kMostCorners][kTapPoints];
  alignas(64) T weight[kMostCorners][kTapPoints], derivative[3][kMostCorners][kTapPoints];
};

}  // namespace rl::cpu

namespace rl::RL_FULL {
// The taps of n points of a grid along each dimension, and how many all dimensions have together.
void fill_taps(cpu::TapCorners<float>& at, const GridShape& s, const float* grid, int64_t n);
void fill_taps(cpu::TapCorners<double>& at, const GridShape& s, const double* grid, int64_t n);
}  // namespace rl::RL_FULL

// combine_taps: the offsets, weights and derivatives of those. sum_taps: to[q] = the sum over k of weight[k][q]
// from[offset[k][q]].
#define RL_TAPS(isa)                                                                               \
  namespace rl::isa {                                                                              \
  void combine_taps(cpu::TapCorners<float>& at, const GridShape& s, int64_t n, bool derivatives);  \
  void combine_taps(cpu::TapCorners<double>& at, const GridShape& s, int64_t n, bool derivatives); \
  void sum_taps(const cpu::TapCorners<float>& at, const float* from, int64_t n, float* to);        \
  void sum_taps(const cpu::TapCorners<double>& at, const double* from, int64_t n, double* to);     \
  }
RL_TAPS(RL_FULL)
RL_TAPS(avx512)
#undef RL_TAPS
