// Values at even distances, a register at a time.
#pragma once
#include <algorithm>

#include "cpu/conv/microkernel.h"

namespace rl::avx512::conv {
namespace {

constexpr int64_t kMostSpace = W;

// Reads x[i * step] for the lanes i in [a, b); the others are zeros, and nothing else is touched.
struct Spaced {
  int64_t step;
  __m512i within;         // lane i's pixel in the register that holds it
  __mmask16 held[W + 1];  // the lanes that the j-th register holds

  explicit Spaced(int64_t distance) : step(distance) {
    alignas(64) int32_t pixels[W];
    for (__mmask16& m : held) m = 0;
    for (int i = 0; i < W; ++i) {
      pixels[i] = static_cast<int32_t>(i * step % W);
      held[i * step / W] |= static_cast<__mmask16>(1u << i);
    }
    within = _mm512_load_si512(pixels);
  }
  Reg read(const float* x, int64_t a, int64_t b) const {
    if (step == 1) return _mm512_maskz_loadu_ps(lanes(b) & ~lanes(a), x);
    if (a <= 0 && b > W) {  // all that lies between is there
      Reg r = _mm512_setzero_ps();
      for (int64_t j = 0; j < step; ++j) r = _mm512_mask_permutexvar_ps(r, held[j], within, load(x + j * W));
      return r;
    }
    __mmask16 there[W];
    masks(a, b, there);
    return read(x, there);
  }
  // What is there of each register, for lanes in [a, b); reading by it spares rows of the same lanes the work.
  void masks(int64_t a, int64_t b, __mmask16* there) const {
    const int64_t begin = step * a, end = step * (std::min<int64_t>(b, W) - 1) + 1;
    for (int64_t j = 0; j < step; ++j)
      there[j] = static_cast<__mmask16>(lanes(end - j * W) & ~lanes(begin - j * W) & -static_cast<int>(a < b));
  }
  Reg read(const float* x, const __mmask16* there) const {
    Reg r = _mm512_setzero_ps();
    for (int64_t j = 0; j < step; ++j)
      r = _mm512_mask_permutexvar_ps(r, held[j], within, _mm512_maskz_loadu_ps(there[j], x + j * W));
    return r;
  }
};

}  // namespace
}  // namespace rl::avx512::conv
