// The convolution algorithms for every instruction set (those for AVX-512 are in avx512.h), and what they share: im2col
// and its adjoint, and the GEMM of one tile. The table of all of them is table.cpp.
#pragma once
#include <algorithm>
#include <cstring>

#include "backend/conv.h"
#include "base/parallel.h"
#include "cpu/conv/avx512.h"
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
      return rl::cpu::gemm(rl::cpu::Gemm<T>{.m = m,
                                            .n = n,
                                            .k = k,
                                            .a = a,
                                            .ars = ta ? 1 : lda,
                                            .acs = ta ? lda : 1,
                                            .b = b,
                                            .brs = tb ? 1 : ldb,
                                            .bcs = tb ? ldb : 1,
                                            .c = c,
                                            .crs = ldc,
                                            .ccs = 1,
                                            .alpha = T(1),
                                            .beta = beta,
                                            .d = beta == T(0) ? nullptr : c,
                                            .drs = ldc,
                                            .dcs = 1});
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

// Calls f(row start, first, last, od, oh) for each run of one output row inside the flat output pixels [p0, p1).
template <class F> void for_rows(const ConvShape& s, int64_t p0, int64_t p1, F&& f) {
  for (int64_t p = p0; p < p1;) {
    int64_t ow = p % s.out[2], row = p / s.out[2], end = std::min(s.out[2], ow + (p1 - p));
    f(p - p0, ow, end, row / s.out[1], row % s.out[1]);
    p += end - ow;
  }
}

// The first and one past the last output pixel along the width whose tap at `kw` lies inside the input.
inline void inside(const ConvShape& s, int64_t kw, int64_t first, int64_t last, int64_t* a, int64_t* b) {
  int64_t shift = kw * s.dilation[2] - s.padding[2], stride = s.stride[2];
  int64_t low = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
  int64_t high = s.in[2] - 1 - shift < 0 ? 0 : (s.in[2] - 1 - shift) / stride + 1;
  *a = std::min(std::max(low, first), last);
  *b = std::max(std::min(high, last), *a);
}

// f(index of an image's element, of the columns', elements that the tap sees [a, b), pixels [first, last)) for each run
// of pixels along the width and each tap of each channel; both indices are those of pixel 0, and a = b in the padding.
template <class F> void for_taps(const ConvShape& s, int64_t channels, int64_t p0, int64_t p1, int64_t ld, const F& f) {
  const int64_t taps = s.taps();
  for (int64_t t = 0; t < channels * taps; ++t) {
    const int64_t kd = t % taps / (s.kernel[1] * s.kernel[2]), kh = t / s.kernel[2] % s.kernel[1], kw = t % s.kernel[2];
    for_rows(s, p0, p1, [&](int64_t at, int64_t first, int64_t last, int64_t od, int64_t oh) {
      const int64_t id = od * s.stride[0] - s.padding[0] + kd * s.dilation[0];
      const int64_t ih = oh * s.stride[1] - s.padding[1] + kh * s.dilation[1];
      int64_t a = first, b = first;
      if (id >= 0 && id < s.in[0] && ih >= 0 && ih < s.in[1]) inside(s, kw, first, last, &a, &b);
      const int64_t row = t / taps * s.in_plane() + (id * s.in[1] + ih) * s.in[2];
      f(row + kw * s.dilation[2] - s.padding[2], t * ld + at - first, a, b, first, last);
    });
  }
}

// columns (channels * taps, p1 - p0): what each tap sees at the output pixels [p0, p1) of one image.
template <class T>
void im2col(const ConvShape& s, const T* x, int64_t channels, int64_t p0, int64_t p1, T* columns, int64_t ld) {
  if constexpr (std::is_same_v<T, float>)
    if (rl::avx512::conv::available()) return rl::avx512::conv::im2col(s, x, channels, p0, p1, columns, ld);
  for_taps(s, channels, p0, p1, ld,
           [&](int64_t image, int64_t column, int64_t a, int64_t b, int64_t first, int64_t last) {
             const T* from = x + image;
             T* to = columns + column;
             std::fill(to + first, to + a, T(0));
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
void col2im(const ConvShape& s, T* x, int64_t channels, int64_t p0, int64_t p1, const T* columns, int64_t ld) {
  if constexpr (std::is_same_v<T, float>)
    if (rl::avx512::conv::available()) return rl::avx512::conv::col2im(s, x, channels, p0, p1, columns, ld);
  for_taps(s, channels, p0, p1, ld, [&](int64_t image, int64_t column, int64_t a, int64_t b, int64_t, int64_t) {
    const T* from = columns + column;
    T* to = x + image;
    if (s.stride[2] == 1)
      for (int64_t i = a; i < b; ++i) to[i] += from[i];
    else
      for (int64_t i = a; i < b; ++i) to[i * s.stride[2]] += from[i];
  });
}

// Each algorithm has X_applicable: whether its functions are right for a shape, whatever they cost; and, where its
// speed depends on the shape, X_profitable: whether it is then the fastest of those from its row of the table on. The
// functions are forward (y, x, w, bias), dgrad (dx, dy, w) for the gradient wrt the input, with a bias where it costs
// nothing, and wgrad (dw, dy, x) for the gradient wrt the weight.

// im2col and GEMM for every type and shape (im2col.cpp).
template <class T> void im2col_forward(const ConvShape& s, T* y, const T* x, const T* w, const T* bias);
template <class T> void im2col_dgrad(const ConvShape& s, T* dx, const T* dy, const T* w);
template <class T> void im2col_wgrad(const ConvShape& s, T* dw, const T* dy, const T* x);

// Filters as large as the image, and 1x1 filters of NHWC images: one GEMM on the memory as it is (gemm.cpp).
bool is_whole_image(const ConvShape& s);
void whole_image_forward(const ConvShape& s, float* y, const float* x, const float* w, const float* bias);
void whole_image_dgrad(const ConvShape& s, float* dx, const float* dy, const float* w);
void whole_image_wgrad(const ConvShape& s, float* dw, const float* dy, const float* x);
bool nhwc_1x1_forward(const ConvArguments& c);
bool nhwc_1x1_dgrad(const ConvArguments& c);
bool nhwc_1x1_wgrad(const ConvArguments& c);

// Winograd's F(4x4, 3x3) for float (winograd.cpp). `flipped` takes w as (C, O, 3, 3) rotated by 180 degrees: the
// gradient wrt the input as a convolution of dy. False, with nothing written, if a value is so large (or not finite)
// that it would show in its neighbours.
bool winograd_applicable(const ConvShape& s);
bool winograd_profitable(const ConvShape& s);
int64_t winograd_workspace(const ConvShape& s);  // bytes for the transformed filters
bool winograd(const ConvShape& s, float* y, const float* x, const float* w, const float* bias, bool flipped);
bool winograd_forward(const ConvShape& s, float* y, const float* x, const float* w, const float* bias);

// Dilated 3x3 filters by the same algorithm (winograd_dilated.cpp, Note [Phases of a dilation]); false as above.
bool dilated_applicable(const ConvShape& s, ConvPass pass);
bool dilated_profitable(const ConvShape& s, ConvPass pass);
int64_t dilated_workspace(const ConvShape& s, ConvPass pass);
bool dilated_forward(const ConvShape& s, float* y, const float* x, const float* w, const float* bias);
bool dilated_dgrad(const ConvShape& s, float* dx, const float* dy, const float* w, const float* bias);
bool dilated_wgrad(const ConvShape& s, float* dw, const float* dy, const float* x);

// One input channel per group (depthwise.cpp).
bool depthwise_applicable(const ConvShape& s);
bool depthwise_profitable(const ConvShape& s);
template <class T> void depthwise_forward(const ConvShape& s, T* y, const T* x, const T* w, const T* bias);
template <class T> void depthwise_dgrad(const ConvShape& s, T* dx, const T* dy, const T* w);
template <class T> void depthwise_wgrad(const ConvShape& s, T* dw, const T* dy, const T* x);

// Filters nearly as large as the image (im2row.cpp, Note [im2row]).
bool im2row_applicable(const ConvShape& s);
bool im2row_long_rows(const ConvShape& s);  // a row of the filter is longer than one of the result
template <class T> void im2row_forward(const ConvShape& s, T* y, const T* x, const T* w, const T* bias);
template <class T> void im2row_dgrad(const ConvShape& s, T* dx, const T* dy, const T* w);
template <class T> void im2row_wgrad(const ConvShape& s, T* dw, const T* dy, const T* x);

// bf16 where the processor multiplies pairs of them (bf16.cpp), without a copy in float.
bool bf16_applicable(const ConvShape& s, ConvPass pass);
bool bf16_profitable(const ConvShape& s, ConvPass pass);
void bf16_forward(const ConvShape& s, bfloat16* y, const bfloat16* x, const bfloat16* w, const bfloat16* bias);
void bf16_dgrad(const ConvShape& s, bfloat16* dx, const bfloat16* dy, const bfloat16* w, const bfloat16* bias);
void bf16_wgrad(const ConvShape& s, bfloat16* dw, const bfloat16* dy, const bfloat16* x);

// Which algorithm is the fastest, where that concerns several of them (heuristics.cpp).

// The convolution of dy that gives dx where strides are 1, by the filters rotated by 180 degrees. False where there is
// none.
bool dgrad_shape(const ConvShape& s, ConvShape& r);
// Whether the AVX-512 Winograd kernel computes and suits the pass, which copies to NCHW are worth.
bool takes_winograd_avx512(const ConvShape& s, ConvPass pass);
bool takes_dilated(const ConvShape& s, ConvPass pass);

bool im2row_profitable(const ConvProblem& p);
// Few output pixels that each add to many of dx.
bool im2col_dgrad_profitable(const ConvProblem& p);
// Whether images are worth a transpose to NHWC.
bool reorder_profitable(const ConvProblem& p);
// Whether bf16 pairs are multiplied, in the layout of p.shape.
bool bf16_nchw_profitable(const ConvProblem& p);
bool bf16_nhwc_profitable(const ConvProblem& p);

// The rows of all passes, pass after pass, in order of priority; those of one pass (table.cpp).
ConvTable conv_table();
ConvTable conv_table(ConvPass pass);

}  // namespace rl::RL_ISA
