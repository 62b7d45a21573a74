// Convolutions of floats on processors with AVX-512: what select.cpp calls, and the blocks that the files behind it
// share.
#pragma once
#include <cstdint>

#include "backend/conv.h"

namespace rl::cpu::conv512 {

bool available();

// Winograd's F(4x4, 3x3): the same 36 products of transformed tiles serve the result and both gradients. The functions
// return false, with an unfinished result, when they meet values so large (or not finite) that the transforms would
// spread them over their tile.
bool winograd_serves(const ConvShape& s);
int64_t winograd_workspace(const ConvShape& s);  // bytes
// `flipped` takes w as (C, O, 3, 3) turned by 180 degrees: the gradient by the input as a convolution of dy.
bool winograd(const ConvShape& s, float* y, const float* x, const float* w, const float* bias, bool flipped);
bool winograd_weight_serves(const ConvShape& s);
int64_t winograd_weight_workspace(const ConvShape& s);
bool winograd_weight(const ConvShape& s, float* dw, const float* dy, const float* x);

// All other shapes, see Note [Lattices]; `input` asks for the gradient by the input.
bool direct_serves(const ConvShape& s, bool input);
void direct(const ConvShape& s, float* y, const float* x, const float* w, const float* bias);
bool direct_weight_serves(const ConvShape& s);
void direct_weight(const ConvShape& s, float* dw, const float* dy, const float* x);
void direct_input(const ConvShape& s, float* dx, const float* dy, const float* w, const float* bias);

// As one product with what the filters see, where these are many.
bool product_serves(const ConvShape& s, ConvPass pass);
void product_forward(const ConvShape& s, float* y, const float* x, const float* w, const float* bias);
void product_input(const ConvShape& s, float* dx, const float* dy, const float* w);
void product_weight(const ConvShape& s, float* dw, const float* dy, const float* x);

// The gradient by filters that see few numbers.
bool dots_weight_serves(const ConvShape& s);
void dots_weight(const ConvShape& s, float* dw, const float* dy, const float* x);

// Pictures with their channels last, and filters in any order, see Note [Rows of channels]. `lanes`: of a register.
bool rows_serve(const ConvShape& s, bool input, int lanes);
void rows(const ConvShape& s, float* y, const float* x, const float* w, const float* bias);
void rows(const ConvShape& s, double* y, const double* x, const double* w, const double* bias);
void rows_input(const ConvShape& s, float* dx, const float* dy, const float* w, const float* bias);
void rows_input(const ConvShape& s, double* dx, const double* dy, const double* w, const double* bias);

bool rows_weight_serves(const ConvShape& s, int lanes);
void rows_weight(const ConvShape& s, float* dw, const float* dy, const float* x);
void rows_weight(const ConvShape& s, double* dw, const double* dy, const double* x);
// The same with one filter for each channel.
bool lanes_serve(const ConvShape& s);
void lanes_forward(const ConvShape& s, float* y, const float* x, const float* w, const float* bias);
void lanes_input(const ConvShape& s, float* dx, const float* dy, const float* w, const float* bias);
void lanes_weight(const ConvShape& s, float* dw, const float* dy, const float* x);
// The same of small pictures in row-major order, which are turned on the way; `input`: the gradient by the input.
bool turned_lanes_serve(const ConvShape& s, ConvPass pass);
void turned_lanes(const ConvShape& s, float* y, const float* x, const float* w, const float* bias, bool input);
bool turned_lanes_weight_serves(const ConvShape& s);
void turned_lanes_weight(const ConvShape& s, float* dw, const float* dy, const float* x);

// 3x3 filters in groups of a few channels, see Note [Groups in lanes]; `input`: the gradient by the input.
bool groups_serve(const ConvShape& s);
void groups(const ConvShape& s, float* y, const float* x, const float* w, const float* bias, bool input);
void groups_weight(const ConvShape& s, float* dw, const float* dy, const float* x);

// Filters of one channel: at stride 1, with w turned by 180 degrees if `flipped`; and their gradient.
bool planes_serve(const ConvShape& s);
void planes(const ConvShape& s, float* y, const float* x, const float* w, const float* bias, bool flipped);
// At other strides.
bool flat_serves(const ConvShape& s, bool input);
void flat(const ConvShape& s, float* y, const float* x, const float* w, const float* bias);
void flat_input(const ConvShape& s, float* dx, const float* dy, const float* w, const float* bias);
bool depthwise_weight_serves(const ConvShape& s);
void depthwise_weight(const ConvShape& s, float* dw, const float* dy, const float* x);

}  // namespace rl::cpu::conv512
