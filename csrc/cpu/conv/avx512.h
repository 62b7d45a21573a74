// The convolution algorithms for processors with AVX-512; names and arguments are as in algorithms.h.
#pragma once
#include <cstdint>

#include "backend/conv.h"

namespace rl::cpu::conv512 {

bool available();

// Winograd's F(4x4, 3x3): the same 36 GEMMs of transformed tiles give the result and both gradients. The functions
// return false, with an unfinished result, when they meet values so large (or not finite) that the transforms would
// spread them over their tile.
bool winograd_applicable(const ConvShape& s);
bool winograd_profitable(const ConvShape& s);
int64_t winograd_workspace(const ConvShape& s);  // bytes
// `flipped` takes w as (C, O, 3, 3) rotated by 180 degrees: the gradient wrt the input as a convolution of dy.
bool winograd(const ConvShape& s, float* y, const float* x, const float* w, const float* bias, bool flipped);
int64_t winograd_wgrad_workspace(const ConvShape& s);
bool winograd_wgrad(const ConvShape& s, float* dw, const float* dy, const float* x);

// Filters times shifted phases of the strided image, for nearly any shape: Note [Stride phases].
bool direct_applicable(const ConvShape& s, bool input);
void direct(const ConvShape& s, float* y, const float* x, const float* w, const float* bias);
void direct_dgrad(const ConvShape& s, float* dx, const float* dy, const float* w, const float* bias);
bool direct_wgrad_applicable(const ConvShape& s);
void direct_wgrad(const ConvShape& s, float* dw, const float* dy, const float* x);

// im2col of several images, and one GEMM.
bool im2col_gemm_applicable(const ConvShape& s);
bool im2col_gemm_profitable(const ConvShape& s, ConvPass pass);
void im2col_gemm_forward(const ConvShape& s, float* y, const float* x, const float* w, const float* bias);
void im2col_gemm_dgrad(const ConvShape& s, float* dx, const float* dy, const float* w);
void im2col_gemm_wgrad(const ConvShape& s, float* dw, const float* dy, const float* x);

// The gradient wrt weight as dots of rows of dy with what each tap sees, for a small receptive field.
bool dot_wgrad_applicable(const ConvShape& s);
bool dot_wgrad_profitable(const ConvShape& s);
void dot_wgrad(const ConvShape& s, float* dw, const float* dy, const float* x);

// NHWC images, and filters in any order: implicit GEMM, Note [NHWC implicit GEMM]. `lanes`: of a register. T is float
// or double.
bool nhwc_gemm_applicable(const ConvShape& s);
bool nhwc_gemm_profitable(const ConvShape& s, bool input, int lanes);
template <class T> void nhwc_gemm(const ConvShape& s, T* y, const T* x, const T* w, const T* bias);
template <class T> void nhwc_gemm_dgrad(const ConvShape& s, T* dx, const T* dy, const T* w, const T* bias);
bool nhwc_gemm_wgrad_applicable(const ConvShape& s);
bool nhwc_gemm_wgrad_profitable(const ConvShape& s, int lanes);
template <class T> void nhwc_gemm_wgrad(const ConvShape& s, T* dw, const T* dy, const T* x);

// One filter per channel, channels in the lanes of registers: NHWC images.
bool depthwise_nhwc_applicable(const ConvShape& s);
bool depthwise_nhwc_profitable(const ConvShape& s);
void depthwise_nhwc_forward(const ConvShape& s, float* y, const float* x, const float* w, const float* bias);
void depthwise_nhwc_dgrad(const ConvShape& s, float* dx, const float* dy, const float* w, const float* bias);
void depthwise_nhwc_wgrad(const ConvShape& s, float* dw, const float* dy, const float* x);
// The same of NCHW images, which are transposed sixteen channels at a time; `input`: the gradient wrt the input.
bool depthwise_reorder_profitable(const ConvShape& s, ConvPass pass);
void depthwise_reorder(const ConvShape& s, float* y, const float* x, const float* w, const float* bias, bool input);
bool depthwise_reorder_wgrad_applicable(const ConvShape& s);
void depthwise_reorder_wgrad(const ConvShape& s, float* dw, const float* dy, const float* x);

// 3x3 filters in groups of 2, 4, 8 or 16 channels, Note [Groups in lanes]; `input`: the gradient wrt the input.
bool grouped_applicable(const ConvShape& s);
bool grouped_profitable(const ConvShape& s);
void grouped(const ConvShape& s, float* y, const float* x, const float* w, const float* bias, bool input);
void grouped_wgrad(const ConvShape& s, float* dw, const float* dy, const float* x);

// One input channel per group, output pixels in the lanes of registers: at stride 1, with w rotated by 180 degrees if
// `flipped`; and the gradient wrt weight.
bool depthwise_rows_applicable(const ConvShape& s);
void depthwise_rows(const ConvShape& s, float* y, const float* x, const float* w, const float* bias, bool flipped);
bool depthwise_rows_wgrad_applicable(const ConvShape& s);
void depthwise_rows_wgrad(const ConvShape& s, float* dw, const float* dy, const float* x);
// At other strides.
bool depthwise_strided_applicable(const ConvShape& s, bool input);
void depthwise_strided(const ConvShape& s, float* y, const float* x, const float* w, const float* bias);
void depthwise_strided_dgrad(const ConvShape& s, float* dx, const float* dy, const float* w, const float* bias);

}  // namespace rl::cpu::conv512
