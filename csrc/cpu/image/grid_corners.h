// The pixels that grid_sample reads around its points, and their weights.
#pragma once
#include <cstdint>

#include "backend/resample.h"
#include "cpu/isa.h"

namespace rl::cpu {

inline constexpr int64_t kCornerPoints = 256;

// The four pixels around each of up to kCornerPoints sample points: their offsets in a plane, and their weights, 0
// outside.
template <class T> struct Corners {
  alignas(64) int32_t offset[4][kCornerPoints];
  alignas(64) T weight[4][kCornerPoints], inside[4][kCornerPoints];
  alignas(64) T tx[kCornerPoints], ty[kCornerPoints], sx[kCornerPoints], sy[kCornerPoints];
};

}  // namespace rl::cpu

// fill_corners: those of n points of a grid. sample_corners: the values of one plane at them.
#define RL_CORNERS(isa)                                                                                         \
  namespace rl::isa {                                                                                           \
  void fill_corners(cpu::Corners<float>& at, const GridShape& s, const float* grid, int64_t n);                 \
  void fill_corners(cpu::Corners<double>& at, const GridShape& s, const double* grid, int64_t n);               \
  void sample_corners(const cpu::Corners<float>& at, const float* from, float* to, int64_t n, bool nearest);    \
  void sample_corners(const cpu::Corners<double>& at, const double* from, double* to, int64_t n, bool nearest); \
  }
RL_CORNERS(RL_FULL)
RL_CORNERS(avx512)
#undef RL_CORNERS
