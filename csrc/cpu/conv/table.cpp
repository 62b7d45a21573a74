// The table of convolution algorithms. For each pass the first row that is applicable and profitable computes it; so
// that rows for NHWC, which are for NHWC tensors alone, come before those for NCHW that are slower than they are by
// more than copies cost. README.md lists when each row runs; how rows compute stands in their own files.

#include <type_traits>

#include "cpu/conv/algorithms.h"
#include "cpu/conv/avx512.h"
#include "cpu/conv/reorder.h"

namespace rl::RL_ISA {
namespace {

namespace conv512 = rl::avx512::conv;
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

// NCHW images copied to NHWC and back.
template <class T, ConvPass pass> void reordered(const ConvShape& s, T* out, const T* in, const T* w, const T* bias) {
  ConvShape nhwc = s;
  nhwc.channels_last = true;
  const bool forward = pass == ConvPass::Forward;
  const int64_t x_size = s.in_channels * s.in_plane(), y_size = s.out_channels * s.out_plane();
  Scratch<T> a(s.batch * (forward ? x_size : y_size)), b(s.batch * (forward ? y_size : x_size));
  if (forward) {
    transpose_planes(in, s.batch, s.in_channels, s.in_plane(), a.get());
    conv512::nhwc_gemm_forward(nhwc, b.get(), a.get(), w, bias);
    transpose_planes(b.get(), s.batch, s.out_plane(), s.out_channels, out);
  } else {
    transpose_planes(in, s.batch, s.out_channels, s.out_plane(), a.get());
    conv512::nhwc_gemm_dgrad(nhwc, b.get(), a.get(), w, bias);
    transpose_planes(b.get(), s.batch, s.in_plane(), s.in_channels, out);
  }
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

// Questions to functions of the shape, (shape) or (shape, pass).
template <auto f> auto of_shape(const P& p) {
  if constexpr (requires { f(p.shape, p.pass); }) return f(p.shape, p.pass);
  else return f(p.shape);
}
// The same of the convolution of dy that gives dx; no where there is none.
template <auto f> auto of_dgrad(const P& p) -> decltype(f(p.shape)) {
  ConvShape r;
  return dgrad_shape(p.shape, r) ? f(r) : decltype(f(r))();
}
template <auto f> bool dgrad_by(const ConvShape& s, float* dx, const float* dy, const float* w, const float* bias) {
  ConvShape r;
  dgrad_shape(s, r);
  return f(r, dx, dy, w, bias, true);
}

bool always(const P&) { return true; }
bool nhwc_1x1(const P& p) {
  if (p.shape.groups != 1 || !is_pointwise(p.shape)) return false;
  return p.pass == ConvPass::Forward || (p.operands_nhwc && !p.has_bias);
}
bool nhwc_gemm_profitable(const P& p) {
  return (p.dtype == DType::Float64 || !takes_winograd_avx512(p.shape, p.pass)) &&
         conv512::nhwc_gemm_profitable(p.shape, p.pass == ConvPass::Input, p.dtype == DType::Float64 ? 8 : 16);
}
// The AVX-512 kernel declines for the same values: after it there is no use in this one.
bool winograd_row_profitable(const P& p) {
  if (takes_winograd_avx512(p.shape, p.pass)) return false;
  return p.pass == ConvPass::Forward ? winograd_profitable(p.shape) : of_dgrad<winograd_profitable>(p);
}

constexpr auto Forward = ConvPass::Forward, Input = ConvPass::Input, Weight = ConvPass::Weight;
constexpr auto NHWC = ConvLayout::NHWC;
constexpr auto Avx512 = ConvIsa::Avx512, Bf16 = ConvIsa::Bf16;

// clang-format off
constexpr ConvAlgorithm kTable[] = {
  // y = x * w + bias
  {.name = "nhwc_1x1_gemm", .dtypes = kAll, .pass = Forward, .layout = NHWC, .applicable = nhwc_1x1,
   .run = nhwc_1x1_forward},
  {.name = "bf16", .isa = Bf16, .dtypes = kBf16, .pass = Forward, .layout = NHWC, .applicable = of_shape<bf16_applicable>,
   .profitable = bf16_nhwc_profitable, .run = run<bfloat16, bf16_forward>},
  {.name = "bf16", .isa = Bf16, .dtypes = kBf16, .pass = Forward, .applicable = of_shape<bf16_applicable>,
   .profitable = bf16_nchw_profitable, .run = run<bfloat16, bf16_forward>},
  {.name = "gemm", .dtypes = kFloat, .pass = Forward, .applicable = of_shape<is_whole_image>,
   .run = run<float, whole_image_forward>},
  {.name = "im2row", .dtypes = kFloats, .pass = Forward, .applicable = of_shape<im2row_applicable>,
   .profitable = im2row_profitable, .run = run_floats<im2row_forward<float>, im2row_forward<double>>},
  {.name = "depthwise_nhwc", .isa = Avx512, .dtypes = kFloat, .pass = Forward, .layout = NHWC, .applicable = of_shape<conv512::depthwise_nhwc_applicable>,
   .profitable = of_shape<conv512::depthwise_nhwc_profitable>, .run = run<float, conv512::depthwise_nhwc_forward>},
  {.name = "winograd_dilated", .dtypes = kFloat, .pass = Forward, .applicable = of_shape<dilated_applicable>,
   .profitable = of_shape<dilated_profitable>, .workspace = of_shape<dilated_workspace>, .run = run<float, dilated_forward>},
  {.name = "nhwc_gemm", .isa = Avx512, .dtypes = kFloats, .pass = Forward, .layout = NHWC, .applicable = of_shape<conv512::nhwc_gemm_applicable>,
   .profitable = nhwc_gemm_profitable, .run = run_floats<conv512::nhwc_gemm_forward<float>, conv512::nhwc_gemm_forward<double>>},
  {.name = "nhwc_gemm", .isa = Avx512, .dtypes = kFloats, .pass = Forward, .applicable = of_shape<conv512::nhwc_gemm_applicable>,
   .profitable = reorder_profitable, .run = run_floats<reordered<float, Forward>, reordered<double, Forward>>},
  {.name = "depthwise_nhwc", .isa = Avx512, .dtypes = kFloat, .pass = Forward, .applicable = of_shape<conv512::depthwise_nhwc_applicable>,
   .profitable = of_shape<conv512::depthwise_reorder_profitable>, .run = run<float, conv512::depthwise_reorder_forward>},
  {.name = "grouped", .isa = Avx512, .dtypes = kFloat, .pass = Forward, .applicable = of_shape<conv512::grouped_applicable>,
   .run = run<float, conv512::grouped_forward>},
  {.name = "winograd_avx512", .isa = Avx512, .dtypes = kFloat, .pass = Forward, .applicable = of_shape<conv512::winograd_applicable>,
   .profitable = of_shape<conv512::winograd_profitable>, .workspace = of_shape<conv512::winograd_workspace>, .run = run<float, conv512::winograd_forward>},
  {.name = "winograd", .dtypes = kFloat, .pass = Forward, .applicable = of_shape<winograd_applicable>,
   .profitable = winograd_row_profitable, .workspace = of_shape<winograd_workspace>, .run = run<float, winograd_forward>},
  {.name = "direct", .isa = Avx512, .dtypes = kFloat, .pass = Forward, .applicable = of_shape<conv512::direct_applicable>,
   .profitable = of_shape<conv512::direct_profitable>, .run = run<float, conv512::direct_forward>},
  {.name = "depthwise", .dtypes = kFloats, .pass = Forward, .applicable = of_shape<depthwise_applicable>,
   .profitable = of_shape<depthwise_profitable>, .run = run_floats<depthwise_forward<float>, depthwise_forward<double>>},
  {.name = "im2col", .dtypes = kComputed, .pass = Forward, .applicable = always,
   .run = im2col_any<Forward>},
  // dx: the gradient wrt the input, and a transposed convolution
  {.name = "nhwc_1x1_gemm", .dtypes = kAll, .pass = Input, .layout = NHWC, .applicable = nhwc_1x1,
   .run = nhwc_1x1_dgrad},
  {.name = "bf16", .isa = Bf16, .dtypes = kBf16, .pass = Input, .layout = NHWC, .applicable = of_shape<bf16_applicable>,
   .profitable = bf16_nhwc_profitable, .run = run<bfloat16, bf16_dgrad>},
  {.name = "bf16", .isa = Bf16, .dtypes = kBf16, .pass = Input, .applicable = of_shape<bf16_applicable>,
   .profitable = bf16_nchw_profitable, .run = run<bfloat16, bf16_dgrad>},
  {.name = "gemm", .dtypes = kFloat, .pass = Input, .adds_bias = false, .applicable = of_shape<is_whole_image>,
   .run = run<float, whole_image_dgrad>},
  {.name = "im2row", .dtypes = kFloats, .pass = Input, .adds_bias = false, .applicable = of_shape<im2row_applicable>,
   .profitable = im2row_profitable, .run = run_floats<im2row_dgrad<float>, im2row_dgrad<double>>},
  {.name = "depthwise_nhwc", .isa = Avx512, .dtypes = kFloat, .pass = Input, .layout = NHWC, .applicable = of_shape<conv512::depthwise_nhwc_applicable>,
   .profitable = of_shape<conv512::depthwise_nhwc_profitable>, .run = run<float, conv512::depthwise_nhwc_dgrad>},
  {.name = "winograd_dilated", .dtypes = kFloat, .pass = Input, .applicable = of_shape<dilated_applicable>,
   .profitable = of_shape<dilated_profitable>, .workspace = of_shape<dilated_workspace>, .run = run<float, dilated_dgrad>},
  {.name = "nhwc_gemm", .isa = Avx512, .dtypes = kFloats, .pass = Input, .layout = NHWC, .applicable = of_shape<conv512::nhwc_gemm_applicable>,
   .profitable = nhwc_gemm_profitable, .run = run_floats<conv512::nhwc_gemm_dgrad<float>, conv512::nhwc_gemm_dgrad<double>>},
  {.name = "nhwc_gemm", .isa = Avx512, .dtypes = kFloats, .pass = Input, .applicable = of_shape<conv512::nhwc_gemm_applicable>,
   .profitable = reorder_profitable, .run = run_floats<reordered<float, Input>, reordered<double, Input>>},
  {.name = "im2col", .dtypes = kComputed, .pass = Input, .adds_bias = false, .applicable = always,
   .profitable = im2col_dgrad_profitable, .run = im2col_any<Input>},
  {.name = "depthwise_nhwc", .isa = Avx512, .dtypes = kFloat, .pass = Input, .applicable = of_shape<conv512::depthwise_nhwc_applicable>,
   .profitable = of_shape<conv512::depthwise_reorder_profitable>, .run = run<float, conv512::depthwise_reorder_dgrad>},
  {.name = "grouped", .isa = Avx512, .dtypes = kFloat, .pass = Input, .applicable = of_shape<conv512::grouped_applicable>,
   .run = run<float, conv512::grouped_dgrad>},
  {.name = "winograd_avx512", .isa = Avx512, .dtypes = kFloat, .pass = Input, .applicable = of_dgrad<conv512::winograd_applicable>,
   .profitable = of_dgrad<conv512::winograd_profitable>, .workspace = of_dgrad<conv512::winograd_workspace>, .run = run<float, dgrad_by<conv512::winograd>>},
  {.name = "winograd", .dtypes = kFloat, .pass = Input, .applicable = of_dgrad<winograd_applicable>,
   .profitable = winograd_row_profitable, .workspace = of_dgrad<winograd_workspace>, .run = run<float, dgrad_by<winograd>>},
  {.name = "direct", .isa = Avx512, .dtypes = kFloat, .pass = Input, .applicable = of_shape<conv512::direct_applicable>,
   .profitable = of_shape<conv512::direct_profitable>, .run = run<float, conv512::direct_dgrad>},
  {.name = "depthwise", .dtypes = kFloats, .pass = Input, .adds_bias = false, .applicable = of_shape<depthwise_applicable>,
   .profitable = of_shape<depthwise_profitable>, .run = run_floats<depthwise_dgrad<float>, depthwise_dgrad<double>>},
  {.name = "im2col", .dtypes = kComputed, .pass = Input, .adds_bias = false, .applicable = always,
   .run = im2col_any<Input>},
  // dw: the gradient wrt the weight
  {.name = "nhwc_1x1_gemm", .dtypes = kAll, .pass = Weight, .layout = NHWC, .applicable = nhwc_1x1,
   .run = nhwc_1x1_wgrad},
  {.name = "bf16", .isa = Bf16, .dtypes = kBf16, .pass = Weight, .layout = NHWC, .applicable = of_shape<bf16_applicable>,
   .profitable = bf16_nhwc_profitable, .run = run<bfloat16, bf16_wgrad>},
  {.name = "bf16", .isa = Bf16, .dtypes = kBf16, .pass = Weight, .applicable = of_shape<bf16_applicable>,
   .profitable = bf16_nchw_profitable, .run = run<bfloat16, bf16_wgrad>},
  {.name = "gemm", .dtypes = kFloat, .pass = Weight, .applicable = of_shape<is_whole_image>,
   .run = run<float, whole_image_wgrad>},
  {.name = "im2row", .dtypes = kFloats, .pass = Weight, .applicable = of_shape<im2row_applicable>,
   .profitable = im2row_profitable, .run = run_floats<im2row_wgrad<float>, im2row_wgrad<double>>},
  {.name = "depthwise_nhwc", .isa = Avx512, .dtypes = kFloat, .pass = Weight, .layout = NHWC, .applicable = of_shape<conv512::depthwise_nhwc_applicable>,
   .profitable = of_shape<conv512::depthwise_nhwc_profitable>, .run = run<float, conv512::depthwise_nhwc_wgrad>},
  {.name = "winograd_avx512", .isa = Avx512, .dtypes = kFloat, .pass = Weight, .applicable = of_shape<conv512::winograd_applicable>,
   .profitable = of_shape<conv512::winograd_profitable>, .workspace = of_shape<conv512::winograd_wgrad_workspace>, .run = run<float, conv512::winograd_wgrad>},
  {.name = "winograd_dilated", .dtypes = kFloat, .pass = Weight, .applicable = of_shape<dilated_applicable>,
   .profitable = of_shape<dilated_profitable>, .workspace = of_shape<dilated_workspace>, .run = run<float, dilated_wgrad>},
  {.name = "depthwise_nhwc", .isa = Avx512, .dtypes = kFloat, .pass = Weight, .applicable = of_shape<conv512::depthwise_nhwc_applicable>,
   .profitable = of_shape<conv512::depthwise_reorder_profitable>, .run = run<float, conv512::depthwise_reorder_wgrad>},
  {.name = "grouped", .isa = Avx512, .dtypes = kFloat, .pass = Weight, .applicable = of_shape<conv512::grouped_applicable>,
   .run = run<float, conv512::grouped_wgrad>},
  {.name = "direct", .isa = Avx512, .dtypes = kFloat, .pass = Weight, .applicable = of_shape<conv512::direct_applicable>,
   .profitable = of_shape<conv512::direct_profitable>, .run = run<float, conv512::direct_wgrad>},
  {.name = "depthwise", .dtypes = kFloats, .pass = Weight, .applicable = of_shape<depthwise_applicable>,
   .profitable = of_shape<depthwise_profitable>, .run = run_floats<depthwise_wgrad<float>, depthwise_wgrad<double>>},
  {.name = "im2col", .dtypes = kComputed, .pass = Weight, .applicable = always,
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
