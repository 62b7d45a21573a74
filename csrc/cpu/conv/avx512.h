// The convolution algorithms for processors with AVX-512; names and arguments are as in algorithms.h.
#pragma once
#include <cstdint>

#include "backend/conv.h"

namespace rl::avx512::conv {

bool available();

// im2col and its adjoint as in im2col.h.
void im2col(const ConvShape& s, const float* x, int64_t channels, int64_t p0, int64_t p1, float* columns, int64_t ld);
void col2im(const ConvShape& s, float* x, int64_t channels, int64_t p0, int64_t p1, const float* columns, int64_t ld);

// Winograd's F(4x4, 3x3): the same 36 GEMMs of transformed tiles give the result and both gradients. The functions
// return false, with an unfinished result, when they meet values so large (or not finite) that the transforms would
// spread them over their tile.
bool winograd_applicable(const ConvShape& s);
bool winograd_profitable(const ConvShape& s);
int64_t winograd_workspace(const ConvShape& s);  // bytes
// `flipped` takes w as (C, O, 3, 3) rotated by 180 degrees: the gradient wrt the input as a convolution of dy.
bool winograd(const ConvShape& s, float* y, const float* x, const float* w, const float* bias, bool flipped);
bool winograd_forward(const ConvShape& s, float* y, const float* x, const float* w, const float* bias);
int64_t winograd_wgrad_workspace(const ConvShape& s);
bool winograd_wgrad(const ConvShape& s, float* dw, const float* dy, const float* x);

// NHWC images, and filters in any order: implicit GEMM, Note [NHWC implicit GEMM]. `lanes`: of a register. T is float
// or double.
bool nhwc_gemm_applicable(const ConvShape& s);
bool nhwc_gemm_profitable(const ConvShape& s, bool input, int lanes);
template <class T> void nhwc_gemm_forward(const ConvShape& s, T* y, const T* x, const T* w, const T* bias);
template <class T> void nhwc_gemm_dgrad(const ConvShape& s, T* dx, const T* dy, const T* w, const T* bias);

// One filter per channel, channels in the lanes of registers: NHWC images.
bool depthwise_nhwc_applicable(const ConvShape& s);
bool depthwise_nhwc_profitable(const ConvShape& s);
void depthwise_nhwc_forward(const ConvShape& s, float* y, const float* x, const float* w, const float* bias);
void depthwise_nhwc_dgrad(const ConvShape& s, float* dx, const float* dy, const float* w, const float* bias);
void depthwise_nhwc_wgrad(const ConvShape& s, float* dw, const float* dy, const float* x);
// The same of NCHW images, which are transposed sixteen channels at a time.
bool depthwise_reorder_profitable(const ConvShape& s);
void depthwise_reorder_forward(const ConvShape& s, float* y, const float* x, const float* w, const float* bias);
void depthwise_reorder_dgrad(const ConvShape& s, float* dx, const float* dy, const float* w, const float* bias);
void depthwise_reorder_wgrad(const ConvShape& s, float* dw, const float* dy, const float* x);

// Filters times shifted phases of the strided image, for nearly any shape: Note [Stride phases].
bool direct_applicable(const ConvShape& s, ConvPass pass);
bool direct_profitable(const ConvShape& s, ConvPass pass);
void direct_forward(const ConvShape& s, float* y, const float* x, const float* w, const float* bias);
void direct_dgrad(const ConvShape& s, float* dx, const float* dy, const float* w, const float* bias);
void direct_wgrad(const ConvShape& s, float* dw, const float* dy, const float* x);

// 3x3 filters in groups of 2, 4, 8 or 16 channels, Note [Groups in lanes].
bool grouped_applicable(const ConvShape& s);
void grouped_forward(const ConvShape& s, float* y, const float* x, const float* w, const float* bias);
void grouped_dgrad(const ConvShape& s, float* dx, const float* dy, const float* w, const float* bias);
void grouped_wgrad(const ConvShape& s, float* dw, const float* dy, const float* x);

}  // namespace rl::avx512::conv
