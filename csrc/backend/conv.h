// Convolutions over one, two or three spatial dimensions, and their two gradients. A transposed convolution is the
// gradient wrt the input of a plain one, so three kernels serve all of them, to any order of derivative.
#pragma once
#include <cstdint>

#include "backend/view.h"

namespace rl {

// Spatial sizes are (depth, height, width); missing leading dimensions have size, kernel and stride 1 and no padding.
struct ConvShape {
  int64_t batch, groups;
  int64_t in_channels, out_channels;  // of all groups together
  int64_t in[3], kernel[3], out[3], stride[3], padding[3], dilation[3];
  // Whether x, y and their gradients, and whether filters, lie with their channels last: (N, ...in, C), (O, ...kernel,
  // C / groups).
  bool channels_last = false, filters_last = false;
  void* workspace = nullptr;  // as many bytes as ConvKernels::workspace asked for; without it the kernel takes its own

  int64_t in_plane() const { return in[0] * in[1] * in[2]; }
  int64_t out_plane() const { return out[0] * out[1] * out[2]; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
};

enum class ConvPass : uint8_t { Forward, Input, Weight };

// All tensors are dense and of one type: x (N, C, ...in), w (O, C / groups, ...kernel), y (N, O, ...out), row-major
// unless the shape says otherwise. dw is always row-major.
// Types: floats, complex and int64. Sizes have been checked; none is 0 except the batch, the channels or the output.
struct ConvKernels {
  // Whether a pass works on tensors with their channels last as they lie, whatever the order of the filters.
  bool (*takes_last)(const ConvShape& shape, DType dtype, ConvPass pass);
  // Bytes of workspace that one of the three below would like: memory worth keeping from call to call.
  int64_t (*workspace)(const ConvShape& shape, DType dtype, ConvPass pass);
  // y = x * w + bias; bias is (O) or null.
  void (*forward)(const ConvShape& shape, const View& y, const View& x, const View& w, const View* bias);
  // dx = the gradient by x, + bias (C) if that is not null: a transposed convolution has one.
  void (*input)(const ConvShape& shape, const View& dx, const View& dy, const View& w, const View* bias);
  // dw = the gradient by w.
  void (*weight)(const ConvShape& shape, const View& dw, const View& dy, const View& x);
};

}  // namespace rl
