// NCHW images copied to NHWC and back, for kernels that need channels side by side.
#pragma once
#include "cpu/conv/algorithms.h"
#include "cpu/simd/transpose.h"

namespace rl::RL_ISA {

// (images, rows, columns) to (images, columns, rows)
template <class T> void transpose_planes(const T* from, int64_t images, int64_t rows, int64_t columns, T* to) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr int64_t kSide = 16, kItem = sizeof(T);
  const int64_t strips = (rows + kSide - 1) / kSide;
  parallel_for(0, images * strips, std::max<int64_t>(1, 2048 / columns), [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t r = i % strips * kSide, at = i / strips * rows * columns;
      for (int64_t c = 0; c < columns; c += kSide)
        transpose_tile<Bits>(reinterpret_cast<char*>(to + at + c * rows + r), rows * kItem,
                             reinterpret_cast<const char*>(from + at + r * columns + c), columns * kItem,
                             std::min(kSide, columns - c), std::min(kSide, rows - r));
    }
  });
}

}  // namespace rl::RL_ISA
