// The table of convolution algorithms. For each pass the first row that is applicable and profitable computes it; so
// that rows for NHWC, which are for NHWC tensors alone, come before those for NCHW that are slower than they are by
// more than copies cost. README.md lists when each row runs; how rows compute stands in their own files.
#include "cpu/conv/table.h"

#include <type_traits>

#include "cpu/conv/algorithms.h"
#include "cpu/conv/avx512.h"
#include "cpu/conv/heuristics.h"
#include "cpu/conv/reorder.h"

namespace rl::RL_ISA {
namespace {

namespace conv512 = rl::cpu::conv512;
using P = ConvProblem;

constexpr uint32_t bit(DType t) { return uint32_t{1} << static_cast<int>(t); }
constexpr uint32_t kFloat = bit(DType::Float32), kFloats = kFloat | bit(DType::Float64);
constexpr uint32_t kBf16 = bit(DType::BFloat16);
constexpr uint32_t kComputed = kFloats | bit(DType::Complex64) | bit(DType::Complex128) | bit(DType::Int64);
constexpr uint32_t kAll = kComputed | bit(DType::Float16) | kBf16;

// run() of a row from a function of typed pointers, (shape, out, a, b) or (shape, out, a, b, bias), that returns
// nothing or whether it was able to.
template <class T, auto f> bool run(const ConvArguments& c) {
  T* out = static_cast<T*>(c.out);
  const T *a = static_cast<const T*>(c.a), *b = static_cast<const T*>(c.b), *bias = static_cast<const T*>(c.bias);
  auto call = [&](auto... rest) {
    if constexpr (std::is_void_v<decltype(f(c.shape, out, a, b, rest...))>) {
      f(c.shape, out, a, b, rest...);
      return true;
    } else {
      return f(c.shape, out, a, b, rest...);
    }
  };
  if constexpr (requires { f(c.shape, out, a, b, bias); }) return call(bias);
  else return call();
}
template <auto f, auto g> bool run_floats(const ConvArguments& c) {  // f of floats or g of doubles
  return c.dtype == DType::Float64 ? run<double, g>(c) : run<float, f>(c);
}

template <class T> void nhwc_gemm_reordered(const ConvShape& s, T* y, const T* x, const T* w, const T* bias) {
  Reordered<T> r(s);
  r.read_x(x);
  conv512::nhwc_gemm(r.nhwc, r.y.get(), r.x.get(), w, bias);
  r.write_y(y);
}
template <class T> void nhwc_gemm_dgrad_reordered(const ConvShape& s, T* dx, const T* dy, const T* w, const T* bias) {
  Reordered<T> r(s);
  r.read_y(dy);
  conv512::nhwc_gemm_dgrad(r.nhwc, r.x.get(), r.y.get(), w, bias);
  r.write_x(dx);
}
template <class T> void nhwc_gemm_wgrad_reordered(const ConvShape& s, T* dw, const T* dy, const T* x) {
  Reordered<T> r(s);
  r.read_x(x);
  r.read_y(dy);
  conv512::nhwc_gemm_wgrad(r.nhwc, dw, r.y.get(), r.x.get());
}

template <class T> bool run_im2col(const ConvArguments& c, ConvPass pass) {
  switch (pass) {
    case ConvPass::Forward: return run<T, im2col_forward<T>>(c);
    case ConvPass::Input: return run<T, im2col_dgrad<T>>(c);
    default: return run<T, im2col_wgrad<T>>(c);
  }
}
template <ConvPass pass> bool im2col_any(const ConvArguments& c) {
  switch (c.dtype) {
    case DType::Float64: return run_im2col<double>(c, pass);
    case DType::Complex64: return run_im2col<std::complex<float>>(c, pass);
    case DType::Complex128: return run_im2col<std::complex<double>>(c, pass);
    case DType::Int64: return run_im2col<int64_t>(c, pass);
    default: return run_im2col<float>(c, pass);
  }
}

// Algorithms of a convolution of dy wrt the input.
bool winograd512_dgrad(const ConvShape& s, float* dx, const float* dy, const float* w, const float* bias) {
  ConvShape r;
  dgrad_shape(s, r);
  return conv512::winograd(r, dx, dy, w, bias, true);
}
bool winograd_dgrad(const ConvShape& s, float* dx, const float* dy, const float* w, const float* bias) {
  ConvShape r;
  dgrad_shape(s, r);
  return winograd(r, dx, dy, w, bias, true);
}
void depthwise_rows_dgrad(const ConvShape& s, float* dx, const float* dy, const float* w, const float* bias) {
  ConvShape r;
  dgrad_shape(s, r);
  conv512::depthwise_rows(r, dx, dy, w, bias, true);
}

bool avx512_dgrad_applicable(const P& p) {
  ConvShape r;
  return dgrad_shape(p.shape, r) && conv512::winograd_applicable(r);
}
int64_t avx512_dgrad_workspace(const P& p) {
  ConvShape r;
  dgrad_shape(p.shape, r);
  return conv512::winograd_workspace(r);
}
bool winograd_dgrad_applicable(const P& p) {
  ConvShape r;
  return dgrad_shape(p.shape, r) && winograd_applicable(r);
}
// The AVX-512 kernel declines for the same values: after it there is no use in this one.
bool winograd_dgrad_profitable(const P& p) {
  ConvShape r;
  dgrad_shape(p.shape, r);
  return winograd_profitable(r) && !takes_winograd_avx512(p.shape, p.pass);
}
int64_t winograd_dgrad_workspace(const P& p) {
  ConvShape r;
  dgrad_shape(p.shape, r);
  return winograd_workspace(r);
}
bool depthwise_rows_dgrad_applicable(const P& p) {
  ConvShape r;
  return dgrad_shape(p.shape, r) && p.shape.in_channels == p.shape.out_channels &&
         conv512::depthwise_rows_applicable(r);
}
bool nhwc_1x1(const P& p) { return p.shape.groups == 1 && is_pointwise(p.shape); }
bool nhwc_gemm_profitable(const P& p) {
  return (p.dtype == DType::Float64 || !takes_winograd_avx512(p.shape, p.pass)) &&
         conv512::nhwc_gemm_profitable(p.shape, p.pass == ConvPass::Input, p.dtype == DType::Float64 ? 8 : 16);
}
bool has_taps(const P& p) { return p.shape.taps() > 1; }

constexpr auto Forward = ConvPass::Forward, Input = ConvPass::Input, Weight = ConvPass::Weight;
constexpr auto NHWC = ConvLayout::NHWC;
constexpr auto Avx512 = ConvIsa::Avx512, Bf16 = ConvIsa::Bf16;

// clang-format off
constexpr ConvAlgorithm kTable[] = {
  // y = x * w + bias
  {.name = "nhwc_1x1_gemm", .dtypes = kAll, .pass = Forward, .layout = NHWC,
   .applicable = nhwc_1x1,
   .profitable = nullptr,
   .workspace = nullptr,
   .run = nhwc_1x1_forward},
  {.name = "bf16", .isa = Bf16, .dtypes = kBf16, .pass = Forward, .layout = NHWC,
   .applicable = [](const P& p) { return bf16_applicable(p.shape, p.pass); },
   .profitable = bf16_nhwc_profitable,
   .workspace = nullptr,
   .run = run<bfloat16, bf16_forward>},
  {.name = "bf16", .isa = Bf16, .dtypes = kBf16, .pass = Forward,
   .applicable = [](const P& p) { return bf16_applicable(p.shape, p.pass); },
   .profitable = bf16_nchw_profitable,
   .workspace = nullptr,
   .run = run<bfloat16, bf16_forward>},
  {.name = "gemm", .dtypes = kFloat, .pass = Forward,
   .applicable = [](const P& p) { return is_whole_image(p.shape); },
   .profitable = nullptr,
   .workspace = nullptr,
   .run = run<float, whole_image_forward>},
  {.name = "im2row", .dtypes = kFloats, .pass = Forward,
   .applicable = [](const P& p) { return im2row_applicable(p.shape); },
   .profitable = im2row_profitable,
   .workspace = nullptr,
   .run = run_floats<im2row_forward<float>, im2row_forward<double>>},
  {.name = "depthwise_nhwc", .isa = Avx512, .dtypes = kFloat, .pass = Forward, .layout = NHWC,
   .applicable = [](const P& p) { return conv512::depthwise_nhwc_applicable(p.shape); },
   .profitable = [](const P& p) { return conv512::depthwise_nhwc_profitable(p.shape); },
   .workspace = nullptr,
   .run = run<float, conv512::depthwise_nhwc_forward>},
  {.name = "winograd_dilated", .dtypes = kFloat, .pass = Forward,
   .applicable = [](const P& p) { return dilated_applicable(p.shape, p.pass); },
   .profitable = [](const P& p) { return dilated_profitable(p.shape, p.pass); },
   .workspace = [](const P& p) { return dilated_workspace(p.shape, p.pass); },
   .run = run<float, dilated>},
  {.name = "nhwc_gemm", .isa = Avx512, .dtypes = kFloats, .pass = Forward, .layout = NHWC,
   .applicable = [](const P& p) { return conv512::nhwc_gemm_applicable(p.shape); },
   .profitable = nhwc_gemm_profitable,
   .workspace = nullptr,
   .run = run_floats<conv512::nhwc_gemm<float>, conv512::nhwc_gemm<double>>},
  {.name = "nhwc_gemm", .isa = Avx512, .dtypes = kFloats, .pass = Forward,
   .applicable = [](const P& p) { return conv512::nhwc_gemm_applicable(p.shape); },
   .profitable = reorder_profitable,
   .workspace = nullptr,
   .run = run_floats<nhwc_gemm_reordered<float>, nhwc_gemm_reordered<double>>},
  {.name = "winograd_avx512", .isa = Avx512, .dtypes = kFloat, .pass = Forward,
   .applicable = [](const P& p) { return conv512::winograd_applicable(p.shape); },
   .profitable = [](const P& p) { return conv512::winograd_profitable(p.shape); },
   .workspace = [](const P& p) { return conv512::winograd_workspace(p.shape); },
   .run = run<float, [](const ConvShape& s, float* y, const float* a, const float* b, const float* bias) { return conv512::winograd(s, y, a, b, bias, false); }>},
  {.name = "winograd", .dtypes = kFloat, .pass = Forward,
   .applicable = [](const P& p) { return winograd_applicable(p.shape); },
   .profitable = [](const P& p) { return winograd_profitable(p.shape) && !takes_winograd_avx512(p.shape, p.pass); },
   .workspace = [](const P& p) { return winograd_workspace(p.shape); },
   .run = run<float, [](const ConvShape& s, float* y, const float* a, const float* b, const float* bias) { return winograd(s, y, a, b, bias, false); }>},
  {.name = "im2col_tiles", .dtypes = kFloat, .pass = Forward,
   .applicable = [](const P& p) { return im2col_tiles_applicable(p.shape); },
   .profitable = [](const P& p) { return small_receptive_field(p.shape); },
   .workspace = nullptr,
   .run = run<float, im2col_tiles_forward>},
  {.name = "im2col_gemm", .isa = Avx512, .dtypes = kFloat, .pass = Forward,
   .applicable = [](const P& p) { return conv512::im2col_gemm_applicable(p.shape); },
   .profitable = [](const P& p) { return conv512::im2col_gemm_profitable(p.shape, p.pass); },
   .workspace = nullptr,
   .run = run<float, conv512::im2col_gemm_forward>},
  {.name = "depthwise_nhwc", .isa = Avx512, .dtypes = kFloat, .pass = Forward,
   .applicable = [](const P& p) { return conv512::depthwise_nhwc_applicable(p.shape); },
   .profitable = [](const P& p) { return conv512::depthwise_reorder_profitable(p.shape, p.pass); },
   .workspace = nullptr,
   .run = run<float, [](const ConvShape& s, float* y, const float* a, const float* b, const float* bias) { conv512::depthwise_reorder(s, y, a, b, bias, false); }>},
  {.name = "grouped", .isa = Avx512, .dtypes = kFloat, .pass = Forward,
   .applicable = [](const P& p) { return conv512::grouped_applicable(p.shape); },
   .profitable = [](const P& p) { return conv512::grouped_profitable(p.shape); },
   .workspace = nullptr,
   .run = run<float, [](const ConvShape& s, float* y, const float* a, const float* b, const float* bias) { conv512::grouped(s, y, a, b, bias, false); }>},
  {.name = "depthwise_rows", .isa = Avx512, .dtypes = kFloat, .pass = Forward,
   .applicable = [](const P& p) { return conv512::depthwise_rows_applicable(p.shape); },
   .profitable = has_taps,
   .workspace = nullptr,
   .run = run<float, [](const ConvShape& s, float* y, const float* a, const float* b, const float* bias) { conv512::depthwise_rows(s, y, a, b, bias, false); }>},
  {.name = "depthwise_strided", .isa = Avx512, .dtypes = kFloat, .pass = Forward,
   .applicable = [](const P& p) { return conv512::depthwise_strided_applicable(p.shape, false); },
   .profitable = has_taps,
   .workspace = nullptr,
   .run = run<float, conv512::depthwise_strided>},
  {.name = "direct", .isa = Avx512, .dtypes = kFloat, .pass = Forward,
   .applicable = [](const P& p) { return conv512::direct_applicable(p.shape, false); },
   .profitable = nullptr,
   .workspace = nullptr,
   .run = run<float, conv512::direct>},
  {.name = "depthwise", .dtypes = kFloats, .pass = Forward,
   .applicable = [](const P& p) { return depthwise_applicable(p.shape); },
   .profitable = [](const P& p) { return depthwise_profitable(p.shape); },
   .workspace = nullptr,
   .run = run_floats<depthwise_forward<float>, depthwise_forward<double>>},
  {.name = "im2col", .dtypes = kComputed, .pass = Forward,
   .applicable = [](const P&) { return true; },
   .profitable = nullptr,
   .workspace = nullptr,
   .run = im2col_any<Forward>},
  // dx: the gradient wrt the input, and a transposed convolution
  {.name = "nhwc_1x1_gemm", .dtypes = kAll, .pass = Input, .layout = NHWC,
   .applicable = [](const P& p) { return nhwc_1x1(p) && p.operands_nhwc && !p.has_bias; },
   .profitable = nullptr,
   .workspace = nullptr,
   .run = nhwc_1x1_dgrad},
  {.name = "bf16", .isa = Bf16, .dtypes = kBf16, .pass = Input, .layout = NHWC,
   .applicable = [](const P& p) { return bf16_applicable(p.shape, p.pass); },
   .profitable = bf16_nhwc_profitable,
   .workspace = nullptr,
   .run = run<bfloat16, bf16_dgrad>},
  {.name = "bf16", .isa = Bf16, .dtypes = kBf16, .pass = Input,
   .applicable = [](const P& p) { return bf16_applicable(p.shape, p.pass); },
   .profitable = bf16_nchw_profitable,
   .workspace = nullptr,
   .run = run<bfloat16, bf16_dgrad>},
  {.name = "gemm", .dtypes = kFloat, .pass = Input, .adds_bias = false,
   .applicable = [](const P& p) { return is_whole_image(p.shape); },
   .profitable = nullptr,
   .workspace = nullptr,
   .run = run<float, whole_image_dgrad>},
  {.name = "im2row", .dtypes = kFloats, .pass = Input, .adds_bias = false,
   .applicable = [](const P& p) { return im2row_applicable(p.shape); },
   .profitable = im2row_profitable,
   .workspace = nullptr,
   .run = run_floats<im2row_dgrad<float>, im2row_dgrad<double>>},
  {.name = "depthwise_nhwc", .isa = Avx512, .dtypes = kFloat, .pass = Input, .layout = NHWC,
   .applicable = [](const P& p) { return conv512::depthwise_nhwc_applicable(p.shape); },
   .profitable = [](const P& p) { return conv512::depthwise_nhwc_profitable(p.shape); },
   .workspace = nullptr,
   .run = run<float, conv512::depthwise_nhwc_dgrad>},
  {.name = "winograd_dilated", .dtypes = kFloat, .pass = Input,
   .applicable = [](const P& p) { return dilated_applicable(p.shape, p.pass); },
   .profitable = [](const P& p) { return dilated_profitable(p.shape, p.pass); },
   .workspace = [](const P& p) { return dilated_workspace(p.shape, p.pass); },
   .run = run<float, dilated_dgrad>},
  {.name = "nhwc_gemm", .isa = Avx512, .dtypes = kFloats, .pass = Input, .layout = NHWC,
   .applicable = [](const P& p) { return conv512::nhwc_gemm_applicable(p.shape); },
   .profitable = nhwc_gemm_profitable,
   .workspace = nullptr,
   .run = run_floats<conv512::nhwc_gemm_dgrad<float>, conv512::nhwc_gemm_dgrad<double>>},
  {.name = "nhwc_gemm", .isa = Avx512, .dtypes = kFloats, .pass = Input,
   .applicable = [](const P& p) { return conv512::nhwc_gemm_applicable(p.shape); },
   .profitable = reorder_profitable,
   .workspace = nullptr,
   .run = run_floats<nhwc_gemm_dgrad_reordered<float>, nhwc_gemm_dgrad_reordered<double>>},
  {.name = "im2col", .dtypes = kComputed, .pass = Input, .adds_bias = false,
   .applicable = [](const P&) { return true; },
   .profitable = im2col_dgrad_profitable,
   .workspace = nullptr,
   .run = im2col_any<Input>},
  {.name = "depthwise_nhwc", .isa = Avx512, .dtypes = kFloat, .pass = Input,
   .applicable = [](const P& p) { return conv512::depthwise_nhwc_applicable(p.shape); },
   .profitable = [](const P& p) { return conv512::depthwise_reorder_profitable(p.shape, p.pass); },
   .workspace = nullptr,
   .run = run<float, [](const ConvShape& s, float* y, const float* a, const float* b, const float* bias) { conv512::depthwise_reorder(s, y, a, b, bias, true); }>},
  {.name = "grouped", .isa = Avx512, .dtypes = kFloat, .pass = Input,
   .applicable = [](const P& p) { return conv512::grouped_applicable(p.shape); },
   .profitable = [](const P& p) { return conv512::grouped_profitable(p.shape); },
   .workspace = nullptr,
   .run = run<float, [](const ConvShape& s, float* y, const float* a, const float* b, const float* bias) { conv512::grouped(s, y, a, b, bias, true); }>},
  {.name = "winograd_avx512", .isa = Avx512, .dtypes = kFloat, .pass = Input,
   .applicable = avx512_dgrad_applicable,
   .profitable = [](const P& p) { return takes_winograd_avx512(p.shape, p.pass); },
   .workspace = avx512_dgrad_workspace,
   .run = run<float, winograd512_dgrad>},
  {.name = "winograd", .dtypes = kFloat, .pass = Input,
   .applicable = winograd_dgrad_applicable,
   .profitable = winograd_dgrad_profitable,
   .workspace = winograd_dgrad_workspace,
   .run = run<float, winograd_dgrad>},
  {.name = "depthwise_rows", .isa = Avx512, .dtypes = kFloat, .pass = Input,
   .applicable = depthwise_rows_dgrad_applicable,
   .profitable = has_taps,
   .workspace = nullptr,
   .run = run<float, depthwise_rows_dgrad>},
  {.name = "depthwise_strided", .isa = Avx512, .dtypes = kFloat, .pass = Input,
   .applicable = [](const P& p) { return conv512::depthwise_strided_applicable(p.shape, true); },
   .profitable = has_taps,
   .workspace = nullptr,
   .run = run<float, conv512::depthwise_strided_dgrad>},
  {.name = "im2col_tiles", .dtypes = kFloat, .pass = Input, .adds_bias = false,
   .applicable = [](const P& p) { return im2col_tiles_applicable(p.shape); },
   .profitable = [](const P& p) { return small_receptive_field(p.shape); },
   .workspace = nullptr,
   .run = run<float, im2col_tiles_dgrad>},
  {.name = "im2col_gemm", .isa = Avx512, .dtypes = kFloat, .pass = Input, .adds_bias = false,
   .applicable = [](const P& p) { return conv512::im2col_gemm_applicable(p.shape); },
   .profitable = [](const P& p) { return conv512::im2col_gemm_profitable(p.shape, p.pass); },
   .workspace = nullptr,
   .run = run<float, conv512::im2col_gemm_dgrad>},
  {.name = "direct", .isa = Avx512, .dtypes = kFloat, .pass = Input,
   .applicable = [](const P& p) { return conv512::direct_applicable(p.shape, true); },
   .profitable = nullptr,
   .workspace = nullptr,
   .run = run<float, conv512::direct_dgrad>},
  {.name = "depthwise", .dtypes = kFloats, .pass = Input, .adds_bias = false,
   .applicable = [](const P& p) { return depthwise_applicable(p.shape); },
   .profitable = [](const P& p) { return depthwise_profitable(p.shape); },
   .workspace = nullptr,
   .run = run_floats<depthwise_dgrad<float>, depthwise_dgrad<double>>},
  {.name = "im2col", .dtypes = kComputed, .pass = Input, .adds_bias = false,
   .applicable = [](const P&) { return true; },
   .profitable = nullptr,
   .workspace = nullptr,
   .run = im2col_any<Input>},
  // dw: the gradient wrt the weight
  {.name = "nhwc_1x1_gemm", .dtypes = kAll, .pass = Weight, .layout = NHWC,
   .applicable = [](const P& p) { return nhwc_1x1(p) && p.operands_nhwc; },
   .profitable = nullptr,
   .workspace = nullptr,
   .run = nhwc_1x1_wgrad},
  {.name = "bf16", .isa = Bf16, .dtypes = kBf16, .pass = Weight, .layout = NHWC,
   .applicable = [](const P& p) { return bf16_applicable(p.shape, p.pass); },
   .profitable = bf16_nhwc_profitable,
   .workspace = nullptr,
   .run = run<bfloat16, bf16_wgrad>},
  {.name = "bf16", .isa = Bf16, .dtypes = kBf16, .pass = Weight,
   .applicable = [](const P& p) { return bf16_applicable(p.shape, p.pass); },
   .profitable = bf16_nchw_profitable,
   .workspace = nullptr,
   .run = run<bfloat16, bf16_wgrad>},
  {.name = "gemm", .dtypes = kFloat, .pass = Weight,
   .applicable = [](const P& p) { return is_whole_image(p.shape); },
   .profitable = nullptr,
   .workspace = nullptr,
   .run = run<float, whole_image_wgrad>},
  {.name = "im2row", .dtypes = kFloats, .pass = Weight,
   .applicable = [](const P& p) { return im2row_applicable(p.shape); },
   .profitable = im2row_profitable,
   .workspace = nullptr,
   .run = run_floats<im2row_wgrad<float>, im2row_wgrad<double>>},
  {.name = "depthwise_nhwc", .isa = Avx512, .dtypes = kFloat, .pass = Weight, .layout = NHWC,
   .applicable = [](const P& p) { return conv512::depthwise_nhwc_applicable(p.shape); },
   .profitable = [](const P& p) { return conv512::depthwise_nhwc_profitable(p.shape); },
   .workspace = nullptr,
   .run = run<float, conv512::depthwise_nhwc_wgrad>},
  {.name = "winograd_avx512", .isa = Avx512, .dtypes = kFloat, .pass = Weight,
   .applicable = [](const P& p) { return conv512::winograd_applicable(p.shape); },
   .profitable = [](const P& p) { return conv512::winograd_profitable(p.shape); },
   .workspace = [](const P& p) { return conv512::winograd_wgrad_workspace(p.shape); },
   .run = run<float, conv512::winograd_wgrad>},
  {.name = "winograd_dilated", .dtypes = kFloat, .pass = Weight,
   .applicable = [](const P& p) { return dilated_applicable(p.shape, p.pass); },
   .profitable = [](const P& p) { return dilated_profitable(p.shape, p.pass); },
   .workspace = [](const P& p) { return dilated_workspace(p.shape, p.pass); },
   .run = run<float, dilated_wgrad>},
  {.name = "nhwc_gemm", .isa = Avx512, .dtypes = kFloats, .pass = Weight, .layout = NHWC,
   .applicable = [](const P& p) { return conv512::nhwc_gemm_wgrad_applicable(p.shape); },
   .profitable = [](const P& p) { return conv512::nhwc_gemm_wgrad_profitable(p.shape, p.dtype == DType::Float64 ? 8 : 16); },
   .workspace = nullptr,
   .run = run_floats<conv512::nhwc_gemm_wgrad<float>, conv512::nhwc_gemm_wgrad<double>>},
  {.name = "nhwc_gemm", .isa = Avx512, .dtypes = kFloats, .pass = Weight,
   .applicable = [](const P& p) { return conv512::nhwc_gemm_wgrad_applicable(p.shape); },
   .profitable = reorder_profitable,
   .workspace = nullptr,
   .run = run_floats<nhwc_gemm_wgrad_reordered<float>, nhwc_gemm_wgrad_reordered<double>>},
  {.name = "depthwise_nhwc", .isa = Avx512, .dtypes = kFloat, .pass = Weight,
   .applicable = [](const P& p) { return conv512::depthwise_reorder_wgrad_applicable(p.shape); },
   .profitable = [](const P& p) { return conv512::depthwise_reorder_profitable(p.shape, p.pass); },
   .workspace = nullptr,
   .run = run<float, conv512::depthwise_reorder_wgrad>},
  {.name = "grouped", .isa = Avx512, .dtypes = kFloat, .pass = Weight,
   .applicable = [](const P& p) { return conv512::grouped_applicable(p.shape); },
   .profitable = [](const P& p) { return conv512::grouped_profitable(p.shape); },
   .workspace = nullptr,
   .run = run<float, conv512::grouped_wgrad>},
  {.name = "depthwise_rows", .isa = Avx512, .dtypes = kFloat, .pass = Weight,
   .applicable = [](const P& p) { return conv512::depthwise_rows_wgrad_applicable(p.shape); },
   .profitable = nullptr,
   .workspace = nullptr,
   .run = run<float, conv512::depthwise_rows_wgrad>},
  {.name = "im2col_gemm", .isa = Avx512, .dtypes = kFloat, .pass = Weight,
   .applicable = [](const P& p) { return conv512::im2col_gemm_applicable(p.shape); },
   .profitable = [](const P& p) { return conv512::im2col_gemm_profitable(p.shape, p.pass); },
   .workspace = nullptr,
   .run = run<float, conv512::im2col_gemm_wgrad>},
  {.name = "dot", .isa = Avx512, .dtypes = kFloat, .pass = Weight,
   .applicable = [](const P& p) { return conv512::dot_wgrad_applicable(p.shape); },
   .profitable = [](const P& p) { return conv512::dot_wgrad_profitable(p.shape); },
   .workspace = nullptr,
   .run = run<float, conv512::dot_wgrad>},
  {.name = "direct", .isa = Avx512, .dtypes = kFloat, .pass = Weight,
   .applicable = [](const P& p) { return conv512::direct_wgrad_applicable(p.shape); },
   .profitable = nullptr,
   .workspace = nullptr,
   .run = run<float, conv512::direct_wgrad>},
  {.name = "depthwise", .dtypes = kFloats, .pass = Weight,
   .applicable = [](const P& p) { return depthwise_applicable(p.shape); },
   .profitable = [](const P& p) { return depthwise_profitable(p.shape); },
   .workspace = nullptr,
   .run = run_floats<depthwise_wgrad<float>, depthwise_wgrad<double>>},
  {.name = "im2col", .dtypes = kComputed, .pass = Weight,
   .applicable = [](const P&) { return true; },
   .profitable = nullptr,
   .workspace = nullptr,
   .run = im2col_any<Weight>},
};
// clang-format on

constexpr const ConvAlgorithm* first_of(int pass) {
  const ConvAlgorithm* row = kTable;
  while (row < std::end(kTable) && static_cast<int>(row->pass) < pass) ++row;
  return row;
}
constexpr ConvTable kPasses[] = {{first_of(0), first_of(1)}, {first_of(1), first_of(2)}, {first_of(2), first_of(3)}};

}  // namespace

ConvTable conv_table() { return {std::begin(kTable), std::end(kTable)}; }
ConvTable conv_table(ConvPass pass) { return kPasses[static_cast<int>(pass)]; }

}  // namespace rl::RL_ISA
