// What the convolution files share: windows as columns, and products of one tile.
#pragma once
#include <algorithm>
#include <cstring>

#include "backend/conv.h"
#include "base/parallel.h"
#include "cpu/gemm/blas.h"
#include "cpu/gemm/gemm.h"
#include "cpu/gemm/int.h"
#include "cpu/isa.h"
#include "cpu/loops/scratch.h"

namespace rl::RL_ISA {

// c (m, n) = op(a) @ op(b) + beta * c
template <class T> void conv_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda,
                                  const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {
  if (m == 0 || n == 0) return;
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
    if (rl::cpu::gemm_available())
      return rl::cpu::gemm(rl::cpu::Gemm<T>{m, n, k, a, ta ? 1 : lda, ta ? lda : 1, b, tb ? 1 : ldb, tb ? ldb : 1, c,
                                            ldc, 1, T(1), beta, beta == T(0) ? nullptr : c, ldc, 1});
  auto i = [](int64_t v) { return static_cast<int>(v); };
  if constexpr (blas::has<T>) blas::gemm(ta, tb, i(m), i(n), i(k), T(1), a, i(lda), b, i(ldb), beta, c, i(ldc));
  else int_gemm<T>(ta, tb, i(m), i(n), i(k), T(1), a, i(lda), b, i(ldb), beta, c, i(ldc));
}

// Whether windows are single elements that follow each other: the input is its own matrix of columns.
inline bool is_pointwise(const ConvShape& s) {
  for (int d = 0; d < 3; ++d)
    if (s.kernel[d] != 1 || s.stride[d] != 1 || s.padding[d] != 0) return false;
  return true;
}

// Calls f(row start, first, last, od, oh) for each run of one output row inside the flat output places [p0, p1).
template <class F> void for_rows(const ConvShape& s, int64_t p0, int64_t p1, F&& f) {
  for (int64_t p = p0; p < p1;) {
    int64_t ow = p % s.out[2], row = p / s.out[2], end = std::min(s.out[2], ow + (p1 - p));
    f(p - p0, ow, end, row / s.out[1], row % s.out[1]);
    p += end - ow;
  }
}

// The first and one past the last output place along the width whose tap at `kw` lies inside the input.
inline void inside(const ConvShape& s, int64_t kw, int64_t first, int64_t last, int64_t* a, int64_t* b) {
  int64_t shift = kw * s.dilation[2] - s.padding[2], stride = s.stride[2];
  int64_t low = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
  int64_t high = s.in[2] - 1 - shift < 0 ? 0 : (s.in[2] - 1 - shift) / stride + 1;
  *a = std::min(std::max(low, first), last);
  *b = std::max(std::min(high, last), *a);
}

// columns (channels * taps, p1 - p0): what each tap sees at the output places [p0, p1) of one image.
template <class T>
void to_columns(const ConvShape& s, const T* x, int64_t channels, int64_t p0, int64_t p1, T* columns, int64_t ld) {
  for (int64_t c = 0; c < channels; ++c, x += s.in_plane())
    for (int64_t kd = 0; kd < s.kernel[0]; ++kd)
      for (int64_t kh = 0; kh < s.kernel[1]; ++kh)
        for (int64_t kw = 0; kw < s.kernel[2]; ++kw, columns += ld)
          for_rows(s, p0, p1, [&](int64_t at, int64_t first, int64_t last, int64_t od, int64_t oh) {
            T* to = columns + at - first;  // indexed by the place along the width
            int64_t id = od * s.stride[0] - s.padding[0] + kd * s.dilation[0];
            int64_t ih = oh * s.stride[1] - s.padding[1] + kh * s.dilation[1];
            if (id < 0 || id >= s.in[0] || ih < 0 || ih >= s.in[1]) {
              std::fill(to + first, to + last, T(0));
              return;
            }
            int64_t a, b;
            inside(s, kw, first, last, &a, &b);
            std::fill(to + first, to + a, T(0));
            const T* from = x + (id * s.in[1] + ih) * s.in[2] + kw * s.dilation[2] - s.padding[2];
            if (s.stride[2] == 1) std::copy(from + a, from + b, to + a);
            else if (s.stride[2] == 2)
              for (int64_t i = a; i < b; ++i) to[i] = from[2 * i];
            else
              for (int64_t i = a; i < b; ++i) to[i] = from[i * s.stride[2]];
            std::fill(to + b, to + last, T(0));
          });
}

// The adjoint: adds columns to the image.
template <class T>
void add_columns(const ConvShape& s, T* x, int64_t channels, int64_t p0, int64_t p1, const T* columns, int64_t ld) {
  for (int64_t c = 0; c < channels; ++c, x += s.in_plane())
    for (int64_t kd = 0; kd < s.kernel[0]; ++kd)
      for (int64_t kh = 0; kh < s.kernel[1]; ++kh)
        for (int64_t kw = 0; kw < s.kernel[2]; ++kw, columns += ld)
          for_rows(s, p0, p1, [&](int64_t at, int64_t first, int64_t last, int64_t od, int64_t oh) {
            const T* from = columns + at - first;
            int64_t id = od * s.stride[0] - s.padding[0] + kd * s.dilation[0];
            int64_t ih = oh * s.stride[1] - s.padding[1] + kh * s.dilation[1];
            if (id < 0 || id >= s.in[0] || ih < 0 || ih >= s.in[1]) return;
            int64_t a, b;
            inside(s, kw, first, last, &a, &b);
            T* to = x + (id * s.in[1] + ih) * s.in[2] + kw * s.dilation[2] - s.padding[2];
            if (s.stride[2] == 1)
              for (int64_t i = a; i < b; ++i) to[i] += from[i];
            else
              for (int64_t i = a; i < b; ++i) to[i * s.stride[2]] += from[i];
          });
}

// Winograd's F(4x4, 3x3) for float (winograd.cpp). `flipped` takes w as (C, O, 3, 3) turned by 180 degrees: the
// gradient by the input as a convolution of dy. False, with nothing written, if a value is so large (or no number) that
// it would show in its neighbours.
bool winograd_serves(const ConvShape& s);
int64_t winograd_workspace(const ConvShape& s);  // bytes for the transformed filters
bool winograd(const ConvShape& s, float* y, const float* x, const float* w, const float* bias, bool flipped);

// Dilated filters by the same way, see Note [Parts of a dilated picture]; false where it has to be done otherwise.
bool dilated_serves(const ConvShape& s, ConvPass pass);
int64_t dilated_workspace(const ConvShape& s, ConvPass pass);
bool dilated_forward(const ConvShape& s, float* y, const float* x, const float* w, const float* bias);
bool dilated_input(const ConvShape& s, float* dx, const float* dy, const float* w, const float* bias);
bool dilated_weight(const ConvShape& s, float* dw, const float* dy, const float* x);

// One filter per channel (depthwise.cpp).
bool depthwise_serves(const ConvShape& s);
template <class T> void depthwise_forward(const ConvShape& s, T* y, const T* x, const T* w, const T* bias);
template <class T> void depthwise_input(const ConvShape& s, T* dx, const T* dy, const T* w);
template <class T> void depthwise_weight(const ConvShape& s, T* dw, const T* dy, const T* x);

// Filters nearly as large as the picture (im2row.cpp, Note [Windows as rows]): whether their rows are longer than
// those of the result.
bool windows_serve(const ConvShape& s);
template <class T> void windows_forward(const ConvShape& s, T* y, const T* x, const T* w, const T* bias);
template <class T> void windows_input(const ConvShape& s, T* dx, const T* dy, const T* w);
template <class T> void windows_weight(const ConvShape& s, T* dw, const T* dy, const T* x);

// Convolutions of bfloat16 on pairs of them (bf16.cpp), without a copy in float.
bool half_conv_serves(const ConvShape& s, DType dtype, ConvPass pass);
void half_conv_forward(const ConvShape& s, bfloat16* y, const bfloat16* x, const bfloat16* w, const bfloat16* bias);
void half_conv_input(const ConvShape& s, bfloat16* dx, const bfloat16* dy, const bfloat16* w, const bfloat16* bias);
void half_conv_weight(const ConvShape& s, bfloat16* dw, const bfloat16* dy, const bfloat16* x);

}  // namespace rl::RL_ISA
