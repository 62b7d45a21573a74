// Which way a convolution goes, by its shape and type.
#include "backend/matmul.h"
#include "backend/precision.h"
#include "cpu/conv/algorithms.h"
#include "cpu/conv/avx512.h"
#include "cpu/conv/im2col.h"
#include "cpu/gemm/gemm.h"
#include "cpu/simd/transpose.h"
#include "cpu/simd/vec.h"

namespace rl::RL_ISA {
namespace {

namespace conv512 = rl::cpu::conv512;

// Half types are computed in float.
template <class H> void widen_all(const View& v, Scratch<float>& to) {
  int64_t n = v.numel();
  to.reset(n);
  parallel_for(0, n, 1 << 16, [&](int64_t a, int64_t b) { widen(v.as<H>() + a, to.get() + a, b - a); });
}
template <class H> void narrow_all(const float* from, const View& v) {
  parallel_for(0, v.numel(), 1 << 16, [&](int64_t a, int64_t b) { narrow(from + a, v.as<H>() + a, b - a); });
}

// f(type_tag<T>{}) for the types that compute in themselves.
template <class F> void visit_own(DType t, F&& f) {
  switch (t) {
    case DType::Float32: return f(type_tag<float>{});
    case DType::Float64: return f(type_tag<double>{});
    case DType::Complex64: return f(type_tag<std::complex<float>>{});
    case DType::Complex128: return f(type_tag<std::complex<double>>{});
    case DType::Int64: return f(type_tag<int64_t>{});
    default: fail(ErrorKind::NotImplemented, "convolution: there is no kernel for '", info(t).legacy, "'");
  }
}
// f(out, a, b, c) with pointers; half types go through float copies. The first view is the result, c may be null.
template <class F> void with_types(const View& out, const View& a, const View& b, const View* c, F&& f) {
  auto half = [&](auto tag) {
    using H = typename decltype(tag)::type;
    Scratch<float> fo(out.numel()), fa, fb, fc;
    widen_all<H>(a, fa);
    widen_all<H>(b, fb);
    if (c) widen_all<H>(*c, fc);
    f(fo.get(), fa.get(), fb.get(), c ? fc.get() : static_cast<float*>(nullptr));
    narrow_all<H>(fo.get(), out);
  };
  if (out.dtype == DType::Float16) return half(type_tag<float16>{});
  if (out.dtype == DType::BFloat16) return half(type_tag<bfloat16>{});
  visit_own(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    f(out.as<T>(), a.as<T>(), b.as<T>(), c ? c->as<T>() : static_cast<T*>(nullptr));
  });
}

// With stride 1 the gradient by the input is a convolution too, of dy by the turned filters. False where it is not.
bool turned(const ConvShape& s, ConvShape& r) {
  r = s;
  std::swap(r.in_channels, r.out_channels);
  bool fits = true;
  for (int d = 0; d < 3; ++d) {
    std::swap(r.in[d], r.out[d]);
    r.padding[d] = s.dilation[d] * (s.kernel[d] - 1) - s.padding[d];
    fits = fits && s.stride[d] == 1 && r.padding[d] >= 0;
  }
  return fits;
}

// Filters as large as the picture: x (N, C * taps) and w (O, C * taps) are matrices as they lie.
bool is_product(const ConvShape& s) {
  for (int d = 0; d < 3; ++d)
    if (s.out[d] != 1 || s.padding[d] != 0 || s.kernel[d] != s.in[d] || (s.dilation[d] != 1 && s.kernel[d] > 1))
      return false;
  return s.groups == 1 && s.batch > 0 && s.in_channels > 0 && s.out_channels > 0 && rl::cpu::gemm_available();
}
// c (m, n) = a (m, k) @ b (k, n) + d
void product(int64_t m, int64_t n, int64_t k, const float* a, int64_t ars, int64_t acs, const float* b, int64_t brs,
             int64_t bcs, float* c, const float* d) {
  rl::cpu::gemm(rl::cpu::Gemm<float>{m, n, k, a, ars, acs, b, brs, bcs, c, n, 1, 1.0f, d ? 1.0f : 0.0f, d, 0, 1});
}

// Many filters that see few numbers each: nearly all of the work is the way of the result to or from memory, which a
// product with columns takes row by row.
bool sees_little(const ConvShape& s) {
  return s.groups == 1 && s.in_channels * s.taps() <= 32 && s.taps() > 1 && s.out_channels >= 64 &&
         s.out_plane() >= 64 && rl::cpu::gemm_available();
}
void little_forward(const ConvShape& s, float* y, const float* x, const float* w, const float* bias) {
  constexpr int64_t kTile = 512;
  const int64_t rows = s.in_channels * s.taps(), plane = s.out_plane(), tiles = (plane + kTile - 1) / kTile;
  parallel_for(0, s.batch * tiles, 1, [&](int64_t first, int64_t last) {
    Scratch<float> columns(rows * kTile);
    for (int64_t t = first; t < last; ++t) {
      const int64_t n = t / tiles, p0 = t % tiles * kTile, p1 = std::min(plane, p0 + kTile);
      to_columns(s, x + n * s.in_channels * s.in_plane(), s.in_channels, p0, p1, columns.get(), kTile);
      rl::cpu::gemm(rl::cpu::Gemm<float>{s.out_channels, p1 - p0, rows, w, rows, 1, columns.get(), kTile, 1,
                                         y + n * s.out_channels * plane + p0, plane, 1, 1.0f, bias ? 1.0f : 0.0f, bias,
                                         1, 0});
    }
  });
}
void little_input(const ConvShape& s, float* dx, const float* dy, const float* w) {
  const int64_t rows = s.in_channels * s.taps(), plane = s.out_plane();
  parallel_for(0, s.batch, 1, [&](int64_t first, int64_t last) {
    Scratch<float> columns(checked_mul(rows, plane));
    for (int64_t n = first; n < last; ++n) {
      rl::cpu::gemm(rl::cpu::Gemm<float>{rows, plane, s.out_channels, w, 1, rows, dy + n * s.out_channels * plane,
                                         plane, 1, columns.get(), plane, 1, 1.0f, 0.0f, nullptr, 0, 1});
      float* image = dx + n * s.in_channels * s.in_plane();
      std::fill(image, image + s.in_channels * s.in_plane(), 0.0f);
      add_columns(s, image, s.in_channels, 0, plane, columns.get(), plane);
    }
  });
}

int64_t workspace(const ConvShape& s, DType dtype, ConvPass pass) {
  if (dtype != DType::Float32 && dtype != DType::Float16 && dtype != DType::BFloat16) return 0;
  if (dilated_serves(s, pass)) return dilated_workspace(s, pass);
  if (pass == ConvPass::Weight) return conv512::winograd_weight_serves(s) ? conv512::winograd_weight_workspace(s) : 0;
  ConvShape r = s;
  if (pass == ConvPass::Input && !turned(s, r)) return 0;
  if (conv512::winograd_serves(r)) return conv512::winograd_workspace(r);
  return winograd_serves(r) ? winograd_workspace(r) : 0;
}

// (images, rows, columns) with its matrices turned.
template <class T> void turn_planes(const T* from, int64_t images, int64_t rows, int64_t columns, T* to) {
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
// Whether a good part of the taps sees nothing but the frame, as with a wide dilation.
bool sees_frame(const ConvShape& s) {
  double part = 1;
  for (int d = 0; d < 3; ++d) {
    int64_t seen = 0;
    for (int64_t k = 0; k < s.kernel[d]; ++k) {
      const int64_t at = k * s.dilation[d] - s.padding[d], low = at >= 0 ? 0 : (-at + s.stride[d] - 1) / s.stride[d],
                    high = at >= s.in[d] ? 0 : std::min(s.out[d], (s.in[d] - 1 - at) / s.stride[d] + 1);
      seen += std::max<int64_t>(0, high - low);
    }
    part *= static_cast<double>(seen) / static_cast<double>(s.kernel[d] * s.out[d]);
  }
  return part < 0.75;
}
// How many times as many places the picture has as windows begin in it. That is what seeing the gradient by the input
// from the picture's side costs more than from the windows': all other taps of a place see the frame.
double spread(const ConvShape& s) {
  double more = 1;
  for (int d = 0; d < 3; ++d)
    more *= std::max(1.0, static_cast<double>(s.in[d]) / static_cast<double>(s.out[d] * s.stride[d]));
  return more;
}
// Whether few windows give long rows to the gradient by the input; with few filters moving them costs as much as the
// products.
bool gives_windows(const ConvShape& s) {
  return windows_serve(s) &&
         spread(s) > 1.5 + 4.0 * static_cast<double>(s.groups) / static_cast<double>(s.out_channels);
}
bool gives_columns(const ConvShape& s) {
  return s.batch > 0 && s.in_channels > 0 && s.out_plane() > 0 &&
         spread(s) > 2.5 + 16.0 * static_cast<double>(s.groups) / static_cast<double>(s.out_channels);
}
template <class T> bool takes_windows(const ConvShape& s, ConvPass pass) {
  if (!windows_serve(s) || spread(s) < 3) return false;
  if (!rl::cpu::gemm_available()) return true;
  if (std::is_same_v<T, double>) return pass == ConvPass::Weight || s.in_channels / s.groups < 8;
  // Floats have other ways that fill the lanes, if the places of all images together are enough for that.
  return pass == ConvPass::Forward &&
         (s.out_plane() == 1 || (s.batch * s.out_plane() <= 256 && s.out_channels >= 4 * s.groups));
}
// Channels are put last for the kernels that want them so, if these pass over them often: for doubles, and for floats
// where they leave taps out.
template <class T> bool pays_last(const ConvShape& s, bool input) {
  if (is_pointwise(s) || !conv512::rows_serve(s, input, 64 / sizeof(T))) return false;
  return std::is_same_v<T, double> || (s.groups == 1 && s.dilation[2] >= 6 && s.taps() < 64 && sees_frame(s));
}
template <class T> struct WithLast {
  const ConvShape& s;
  ConvShape last = s;
  Scratch<T> x, y;
  explicit WithLast(const ConvShape& shape) : s(shape) {
    last.channels_last = true;
    x.reset(s.batch * s.in_channels * s.in_plane()), y.reset(s.batch * s.out_channels * s.out_plane());
  }
  void take_x(const T* from) { turn_planes(from, s.batch, s.in_channels, s.in_plane(), x.get()); }
  void take_y(const T* from) { turn_planes(from, s.batch, s.out_channels, s.out_plane(), y.get()); }
  void give_x(T* to) { turn_planes(x.get(), s.batch, s.in_plane(), s.in_channels, to); }
  void give_y(T* to) { turn_planes(y.get(), s.batch, s.out_plane(), s.out_channels, to); }
};

// Whether bfloat16 is multiplied as pairs although Winograd's way would serve: its transforms and the copies in float
// pay where there is much to multiply, and, for the filters, many places.
bool pairs_first(const ConvShape& s, DType dtype, ConvPass pass) {
  constexpr double kMacs = 1.5e8;
  constexpr int64_t kPlaces = 512;
  if (!half_conv_serves(s, dtype, pass)) return false;
  const int64_t places = s.batch * s.out_plane();
  if (pass == ConvPass::Weight) return places <= kPlaces;
  return static_cast<double>(places * s.in_channels) * static_cast<double>(s.out_channels * s.taps()) < kMacs;
}

bool takes_last(const ConvShape& s, DType dtype, ConvPass pass) {
  const bool wide = dtype == DType::Float64;
  if (!wide && dtype != DType::Float32 && dtype != DType::Float16 && dtype != DType::BFloat16) return false;
  if (pass == ConvPass::Input ? gives_windows(s)
                              : (wide ? takes_windows<double>(s, pass) : takes_windows<float>(s, pass)))
    return false;
  if (!wide && conv512::lanes_serve(s)) return true;
  ConvShape last = s;
  last.channels_last = true;
  if (pairs_first(last, dtype, pass)) return !is_product(s);
  if (!wide && dilated_serves(s, pass)) return half_conv_serves(s, dtype, pass);  // worth the copies
  if (pass == ConvPass::Weight)
    return !(!wide && (is_product(s) || conv512::winograd_weight_serves(s))) &&
           (half_conv_serves(s, dtype, pass) || conv512::rows_weight_serves(s, wide ? 8 : 16));
  ConvShape r = s;
  const bool input = pass == ConvPass::Input;
  // Winograd's way is worth the copies.
  if (!wide && (is_product(s) || ((!input || turned(s, r)) && conv512::winograd_serves(r)))) return false;
  return half_conv_serves(last, dtype, pass) || conv512::rows_serve(s, input, wide ? 8 : 16);
}

// Products with fewer bits are not for convolutions that must be plain sums.
struct PlainSums {
  const FloatPrecision before = g_float_precision;
  PlainSums() {
    if (g_plain_convolutions) g_float_precision = FloatPrecision::Highest;
  }
  ~PlainSums() {
    if (g_plain_convolutions) g_float_precision = before;
  }
};

void forward(const ConvShape& s, const View& y, const View& x, const View& w, const View* bias) {
  const PlainSums plain;
  if (y.numel() == 0) return;
  blas::single_threaded();
  if (pairs_first(s, y.dtype, ConvPass::Forward) ||
      (!conv512::winograd_serves(s) && half_conv_serves(s, y.dtype, ConvPass::Forward)))
    return half_conv_forward(s, y.as<bfloat16>(), x.as<bfloat16>(), w.as<bfloat16>(),
                             bias ? bias->as<bfloat16>() : nullptr);
  with_types(y, x, w, bias, [&](auto* py, auto* px, auto* pw, auto* pb) {
    using T = std::remove_pointer_t<decltype(py)>;
    if constexpr (std::is_same_v<T, float>)
      if (s.channels_last && conv512::lanes_serve(s)) return conv512::lanes_forward(s, py, px, pw, pb);
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
      if (s.channels_last) return conv512::rows(s, py, px, pw, pb);
    if constexpr (std::is_same_v<T, float>)
      if (const int64_t k = s.in_channels * s.taps(); is_product(s))
        return product(s.batch, s.out_channels, k, px, k, 1, pw, 1, k, py, pb);
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
      if (takes_windows<T>(s, ConvPass::Forward)) return windows_forward<T>(s, py, px, pw, pb);
    if constexpr (std::is_same_v<T, float>)
      if (dilated_serves(s, ConvPass::Forward) && dilated_forward(s, py, px, pw, pb)) return;
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
      if (pays_last<T>(s, false)) {
        WithLast<T> turned(s);
        turned.take_x(px);
        conv512::rows(turned.last, turned.y.get(), turned.x.get(), pw, pb);
        return turned.give_y(py);
      }
    if constexpr (std::is_same_v<T, float>) {
      if (conv512::winograd_serves(s)) {
        if (conv512::winograd(s, py, px, pw, pb, false)) return;
      } else if (winograd_serves(s) && winograd(s, py, px, pw, pb, false)) {
        return;
      }
    }
    if constexpr (std::is_same_v<T, float>)
      if (sees_little(s)) return little_forward(s, py, px, pw, pb);
    if constexpr (std::is_same_v<T, float>)
      if (conv512::product_serves(s, ConvPass::Forward)) return conv512::product_forward(s, py, px, pw, pb);
    if constexpr (std::is_same_v<T, float>)
      if (conv512::turned_lanes_serve(s, ConvPass::Forward)) return conv512::turned_lanes(s, py, px, pw, pb, false);
    if constexpr (std::is_same_v<T, float>)
      if (conv512::groups_serve(s)) return conv512::groups(s, py, px, pw, pb, false);
    if constexpr (std::is_same_v<T, float>)
      if (conv512::planes_serve(s)) return conv512::planes(s, py, px, pw, pb, false);
    if constexpr (std::is_same_v<T, float>)
      if (conv512::flat_serves(s, false)) return conv512::flat(s, py, px, pw, pb);
    if constexpr (std::is_same_v<T, float>)
      if (conv512::direct_serves(s, false)) return conv512::direct(s, py, px, pw, pb);
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
      if (depthwise_serves(s)) return depthwise_forward<T>(s, py, px, pw, pb);
    Conv<T>{s}.forward(py, px, pw, pb);
  });
}

// dx = the gradient by x, + bias where that costs nothing: then true.
template <class T> bool input_of(const ConvShape& s, T* dx, const T* dy, const T* w, const T* bias) {
  if constexpr (std::is_same_v<T, float>)
    if (s.channels_last && conv512::lanes_serve(s)) return conv512::lanes_input(s, dx, dy, w, bias), true;
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
    if (s.channels_last) return conv512::rows_input(s, dx, dy, w, bias), true;
  if constexpr (std::is_same_v<T, float>)
    if (const int64_t k = s.in_channels * s.taps(); is_product(s))
      return product(s.batch, k, s.out_channels, dy, s.out_channels, 1, w, k, 1, dx, nullptr), false;
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
    if (gives_windows(s)) return windows_input<T>(s, dx, dy, w), false;
  if constexpr (std::is_same_v<T, float>)
    if (dilated_serves(s, ConvPass::Input) && dilated_input(s, dx, dy, w, bias)) return true;
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
    if (pays_last<T>(s, true)) {
      WithLast<T> turned(s);
      turned.take_y(dy);
      conv512::rows_input(turned.last, turned.x.get(), turned.y.get(), w, bias);
      return turned.give_x(dx), true;
    }
  if constexpr (std::is_same_v<T, float>) {
    if (gives_columns(s)) return Conv<T>{s}.input(dx, dy, w), false;
    if (conv512::turned_lanes_serve(s, ConvPass::Input)) return conv512::turned_lanes(s, dx, dy, w, bias, true), true;
    if (conv512::groups_serve(s)) return conv512::groups(s, dx, dy, w, bias, true), true;
    ConvShape r;
    bool fits = turned(s, r);
    if (fits && conv512::winograd_serves(r)) {
      if (conv512::winograd(r, dx, dy, w, bias, true)) return true;
    } else if (fits && winograd_serves(r) && winograd(r, dx, dy, w, bias, true)) {
      return true;
    } else if (fits && s.in_channels == s.out_channels && conv512::planes_serve(r)) {
      return conv512::planes(r, dx, dy, w, bias, true), true;
    }
    if (conv512::flat_serves(s, true)) return conv512::flat_input(s, dx, dy, w, bias), true;
    if (sees_little(s)) return little_input(s, dx, dy, w), false;
    if (conv512::product_serves(s, ConvPass::Input)) return conv512::product_input(s, dx, dy, w), false;
    if (conv512::direct_serves(s, true)) return conv512::direct_input(s, dx, dy, w, bias), true;
  }
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
    if (depthwise_serves(s)) return depthwise_input<T>(s, dx, dy, w), false;
  Conv<T>{s}.input(dx, dy, w);
  return false;
}
void input(const ConvShape& s, const View& dx, const View& dy, const View& w, const View* bias) {
  const PlainSums plain;
  if (dx.numel() == 0) return;
  blas::single_threaded();
  ConvShape r = s;
  if (pairs_first(s, dx.dtype, ConvPass::Input) ||
      (!(turned(s, r) && conv512::winograd_serves(r)) && half_conv_serves(s, dx.dtype, ConvPass::Input)))
    return half_conv_input(s, dx.as<bfloat16>(), dy.as<bfloat16>(), w.as<bfloat16>(),
                           bias ? bias->as<bfloat16>() : nullptr);
  with_types(dx, dy, w, bias, [&](auto* px, auto* py, auto* pw, auto* pb) {
    using T = std::remove_pointer_t<decltype(px)>;
    if (input_of<T>(s, px, py, pw, pb) || !pb) return;
    const int64_t plane = s.in_plane();
    parallel_for(0, s.batch * s.in_channels, std::max<int64_t>(1, 32768 / plane), [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i)
        for (T *p = px + i * plane, *end = p + plane, shift = pb[i % s.in_channels]; p < end; ++p) *p += shift;
    });
  });
}

void weight(const ConvShape& s, const View& dw, const View& dy, const View& x) {
  const PlainSums plain;
  if (dw.numel() == 0) return;
  blas::single_threaded();
  if (pairs_first(s, dw.dtype, ConvPass::Weight) ||
      (!conv512::winograd_weight_serves(s) && half_conv_serves(s, dw.dtype, ConvPass::Weight)))
    return half_conv_weight(s, dw.as<bfloat16>(), dy.as<bfloat16>(), x.as<bfloat16>());
  with_types(dw, dy, x, nullptr, [&](auto* pw, auto* py, auto* px, auto*) {
    using T = std::remove_pointer_t<decltype(pw)>;
    if constexpr (std::is_same_v<T, float>)
      if (s.channels_last && conv512::lanes_serve(s)) return conv512::lanes_weight(s, pw, py, px);
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
      if (s.channels_last) return conv512::rows_weight(s, pw, py, px);
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
      if (!(std::is_same_v<T, float> && is_product(s)) && takes_windows<T>(s, ConvPass::Weight))
        return windows_weight<T>(s, pw, py, px);
    if constexpr (std::is_same_v<T, double>)
      if (!is_pointwise(s) && conv512::rows_weight_serves(s, 8)) {
        WithLast<T> turned(s);
        turned.take_x(px), turned.take_y(py);
        return conv512::rows_weight(turned.last, pw, turned.y.get(), turned.x.get());
      }
    if constexpr (std::is_same_v<T, float>) {
      int64_t k = s.in_channels * s.taps();
      if (is_product(s)) return product(s.out_channels, k, s.batch, py, 1, s.out_channels, px, k, 1, pw, nullptr);
      if (conv512::winograd_weight_serves(s) && conv512::winograd_weight(s, pw, py, px)) return;
      if (dilated_serves(s, ConvPass::Weight) && dilated_weight(s, pw, py, px)) return;
    }
    if constexpr (std::is_same_v<T, float>) {
      if (conv512::turned_lanes_weight_serves(s)) return conv512::turned_lanes_weight(s, pw, py, px);
      if (conv512::groups_serve(s)) return conv512::groups_weight(s, pw, py, px);
      if (conv512::depthwise_weight_serves(s)) return conv512::depthwise_weight(s, pw, py, px);
      if (conv512::product_serves(s, ConvPass::Weight)) return conv512::product_weight(s, pw, py, px);
      if (conv512::dots_weight_serves(s)) return conv512::dots_weight(s, pw, py, px);
      if (conv512::direct_weight_serves(s)) return conv512::direct_weight(s, pw, py, px);
    }
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
      if (depthwise_serves(s)) return depthwise_weight<T>(s, pw, py, px);
    Conv<T>{s}.weight(pw, py, px);
  });
}

}  // namespace

extern const ConvKernels conv_kernels;
const ConvKernels conv_kernels = {takes_last, workspace, forward, input, weight};

}  // namespace rl::RL_ISA
