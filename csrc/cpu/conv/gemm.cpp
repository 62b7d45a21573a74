// Convolutions that are one GEMM on the memory as it is: filters as large as the image, and 1x1 filters of NHWC images.
#include "backend/matmul.h"
#include "cpu/conv/algorithms.h"

namespace rl::RL_ISA {

extern const MatmulKernels matmul_kernels;

namespace {

// A dense matrix (rows, columns), or its transpose.
struct MatrixView {
  int64_t sizes[2], strides[2];
  View view;
  MatrixView(const void* data, DType dtype, int64_t rows, int64_t columns, bool transpose = false)
      : sizes{transpose ? columns : rows, transpose ? rows : columns},
        strides{transpose ? 1 : columns, transpose ? columns : 1},
        view{const_cast<void*>(data), sizes, strides, 2, dtype} {}
  MatrixView(const MatrixView&) = delete;
};

LoopScalar one_of(DType dtype) {
  LoopScalar one;
  switch (dtype) {
    case DType::Float64: one.set(1.0); break;
    case DType::Complex64: one.set(std::complex<float>(1)); break;
    case DType::Complex128: one.set(std::complex<double>(1)); break;
    case DType::Int64: one.set(int64_t{1}); break;
    default: one.set(1.0f);  // fp16 and bf16 compute in float
  }
  return one;
}

}  // namespace

bool is_whole_image(const ConvShape& s) {
  for (int d = 0; d < 3; ++d)
    if (s.out[d] != 1 || s.padding[d] != 0 || s.kernel[d] != s.in[d] || (s.dilation[d] != 1 && s.kernel[d] > 1))
      return false;
  return s.groups == 1 && s.batch > 0 && s.in_channels > 0 && s.out_channels > 0 && rl::cpu::gemm_available();
}
void whole_image_forward(const ConvShape& s, float* y, const float* x, const float* w, const float* bias) {
  const int64_t k = s.in_channels * s.taps(), o = s.out_channels;
  for (int64_t n = 0; n < s.batch && bias; ++n) std::copy(bias, bias + o, y + n * o);
  conv_gemm(false, true, s.batch, o, k, x, k, w, k, bias ? 1.0f : 0.0f, y, o);
}
void whole_image_dgrad(const ConvShape& s, float* dx, const float* dy, const float* w) {
  const int64_t k = s.in_channels * s.taps(), o = s.out_channels;
  conv_gemm(false, false, s.batch, k, o, dy, o, w, k, 0.0f, dx, k);
}
void whole_image_wgrad(const ConvShape& s, float* dw, const float* dy, const float* x) {
  const int64_t k = s.in_channels * s.taps(), o = s.out_channels;
  conv_gemm(true, false, o, k, s.batch, dy, o, x, k, 0.0f, dw, k);
}

// NHWC images are matrices (pixels, channels), and 1x1 filters one of (O, C).
bool nhwc_1x1_forward(const ConvArguments& c) {
  const ConvShape& s = c.shape;
  const int64_t pixels = s.batch * s.out_plane();
  const MatrixView y(c.out, c.dtype, pixels, s.out_channels), x(c.a, c.dtype, pixels, s.in_channels),
      w(c.b, c.dtype, s.out_channels, s.in_channels, true);
  if (c.bias) {
    MatrixView bias(c.bias, c.dtype, pixels, s.out_channels);
    bias.strides[0] = 0;
    const LoopScalar one = one_of(c.dtype);
    matmul_kernels.addmm(y.view, x.view, w.view, {one, one, &bias.view});
  } else {
    matmul_kernels.matmul(y.view, x.view, w.view);
  }
  return true;
}
bool nhwc_1x1_dgrad(const ConvArguments& c) {
  const ConvShape& s = c.shape;
  const int64_t pixels = s.batch * s.out_plane();
  const MatrixView dx(c.out, c.dtype, pixels, s.in_channels), dy(c.a, c.dtype, pixels, s.out_channels),
      w(c.b, c.dtype, s.out_channels, s.in_channels);
  matmul_kernels.matmul(dx.view, dy.view, w.view);
  return true;
}
bool nhwc_1x1_wgrad(const ConvArguments& c) {
  const ConvShape& s = c.shape;
  const int64_t pixels = s.batch * s.out_plane();
  const MatrixView dw(c.out, c.dtype, s.out_channels, s.in_channels), dy(c.a, c.dtype, pixels, s.out_channels, true),
      x(c.b, c.dtype, pixels, s.in_channels);
  matmul_kernels.matmul(dw.view, dy.view, x.view);
  return true;
}

}  // namespace rl::RL_ISA
