// Fourier transforms. Linear, so that their gradients are transforms again.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "backend/backend.h"
#include "ops/elementwise/pointwise.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {
namespace {

SmallVector<int, 4> as_dims(const Ints& dims) {
  SmallVector<int, 4> out;
  for (int64_t d : dims) out.push_back(static_cast<int>(d));
  return out;
}
void check_lengths(const Tensor& t, const Ints& dims) {
  for (int64_t d : dims)
    CHECK(t.sizes()[d] >= 1, Runtime, "Invalid number of data points (", t.sizes()[d], ") specified");
}

}  // namespace

// fft_c2c: complex or real to complex        dx = scale * the transform of dy with the other sign
static Tensor fft_c2c(const Tensor& x, const Ints& dims, double scale, bool forward);
struct FftC2cBackward : Node {
  static constexpr const char* kName = "FftC2CBackward0";
  static constexpr bool kStacks = true;
  Ints dim;
  double scale = 1;
  bool forward = true;
  Grads backward(const Grads& dy) { return {fft_c2c(dy[0], shifted(dim, lead(dy[0])), scale, !forward)}; }
  FIELDS(dim, scale, forward)
};
static Tensor fft_c2c(const Tensor& x, const Ints& dims, double scale, bool forward) {
  check_lengths(x, dims);
  Tensor y = empty(x.sizes(), to_complex(x.dtype()), x.device());
  if (dims.empty()) copy_into(y, x);
  else
    backend(y.device())
        .fft->c2c(y.view(), x.view(), as_dims(dims).data(), static_cast<int>(dims.size()), forward, scale);
  return record<FftC2cBackward>(y, {x}, [&](auto& n) {
    n.dim = dims;
    n.scale = scale;
    n.forward = forward;
  });
}

// A dimension cut to length n, or filled with zeros.
struct PadEndBackward : Node {
  static constexpr const char* kName = "ConstantPadNdBackward0";
  static constexpr bool kStacks = true;
  int64_t dim = 0, length = 0;
  Grads backward(const Grads& dy) { return {narrow(dy[0], dim + lead(dy[0]), 0, length)}; }
  FIELDS(dim, length)
};
static Tensor padded(const Tensor& x, int64_t dim, int64_t n) {
  if (x.sizes()[dim] == n) return x;
  if (x.sizes()[dim] > n) return narrow(x, dim, 0, n);
  Ints sizes(x.sizes());
  int64_t length = sizes[dim];
  sizes[dim] = n;
  Tensor y = zeros(sizes, x.dtype(), x.device());
  {
    NoGrad raw;
    copy_into(narrow(y, dim, 0, length), x);
  }
  return record<PadEndBackward>(y, {x}, [&](auto& node) {
    node.dim = dim;
    node.length = length;
  });
}

// fft_r2c: real to half a complex spectrum        dx = Re(scale * the full transform of dy, filled up, with the other
// sign)
static Tensor fft_r2c(const Tensor& x, const Ints& dims, double scale, bool forward);
static Tensor fft_c2r(const Tensor& x, const Ints& dims, double scale, bool forward, int64_t n);
static Tensor weighted(const Tensor& x, int64_t dim, int64_t n, double inner);
struct FftR2cBackward : Node {
  static constexpr const char* kName = "FftR2CBackward0";
  static constexpr bool kStacks = true;
  Ints dim;
  double scale = 1;
  bool forward = true;
  int64_t last = 0;
  Grads backward(const Grads& dy) {
    // Re of the full transform of a half filled spectrum: the other dimensions transform freely, the last one as c2r of
    // dy with its inner values halved, since c2r counts each of them twice.
    Ints dims = shifted(dim, lead(dy[0]));
    return {fft_c2r(weighted(dy[0], dims[dims.size() - 1], last, 0.5), dims, scale, !forward, last)};
  }
  FIELDS(dim, scale, forward, last)
};
static Tensor fft_r2c(const Tensor& x, const Ints& dims, double scale, bool forward) {
  check_lengths(x, dims);
  Ints sizes(x.sizes());
  int64_t last = dims[dims.size() - 1], n = sizes[last];
  sizes[last] = n / 2 + 1;
  Tensor y = empty(sizes, to_complex(x.dtype()), x.device());
  backend(y.device()).fft->r2c(y.view(), x.view(), as_dims(dims).data(), static_cast<int>(dims.size()), forward, scale);
  return record<FftR2cBackward>(y, {x}, [&](auto& node) {
    node.dim = dims;
    node.scale = scale;
    node.forward = forward;
    node.last = n;
  });
}

// Multiplies by `inner` the values along dim that a half spectrum of n stands for twice.
static Tensor weighted(const Tensor& x, int64_t dim, int64_t n, double inner) {
  int64_t kept = n / 2 + 1;
  Tensor w = full({kept}, Scalar(inner), to_real(x.dtype()));
  for (int64_t i : {int64_t{0}, n % 2 == 0 ? n / 2 : int64_t{0}}) {
    if (w.dtype() == DType::Float32) w.data<float>()[i] = 1;
    else w.data<double>()[i] = 1;
  }
  Ints sizes(x.dim(), 1);
  sizes[dim] = kept;
  return mul(x, reshape(to_device(w, x.device()), sizes));
}

// fft_c2r: half a complex spectrum to n real values        dx = the half transform of dy, its inner values doubled
struct FftC2rBackward : Node {
  static constexpr const char* kName = "FftC2RBackward0";
  static constexpr bool kStacks = true;
  Ints dim;
  double scale = 1;
  bool forward = false;
  int64_t last = 0;
  Grads backward(const Grads& dy) {
    Ints dims = shifted(dim, lead(dy[0]));
    return {weighted(fft_r2c(dy[0], dims, scale, !forward), dims[dims.size() - 1], last, 2)};
  }
  FIELDS(dim, scale, forward, last)
};
static Tensor fft_c2r(const Tensor& x, const Ints& dims, double scale, bool forward, int64_t n) {
  CHECK(n >= 1, Runtime, "Invalid number of data points (", n, ") specified");
  int64_t last = dims[dims.size() - 1];
  CHECK(x.sizes()[last] == n / 2 + 1, Runtime, "fft: expected ", n / 2 + 1, " values along dimension ", last, ", got ",
        x.sizes()[last]);
  Ints sizes(x.sizes());
  sizes[last] = n;
  Tensor y = empty(sizes, to_real(x.dtype()), x.device());
  backend(y.device()).fft->c2r(y.view(), x.view(), as_dims(dims).data(), static_cast<int>(dims.size()), forward, scale);
  return record<FftC2rBackward>(y, {x}, [&](auto& node) {
    node.dim = dims;
    node.scale = scale;
    node.forward = forward;
    node.last = n;
  });
}

// What the functions of torch.fft are made of. `n` may differ from the input's length: cut, or filled with zeros.
namespace {

int64_t wrapped(int64_t dim, const Tensor& x) {
  CHECK(x.dim() > 0, Index, "Dimension specified as ", dim, " but tensor has no dimensions");
  return wrap_dim(dim, x.dim());
}
void check_norm(const std::optional<std::string>& norm) {
  CHECK(!norm || *norm == "backward" || *norm == "forward" || *norm == "ortho", Runtime,
        "Invalid normalization mode: \"", norm.value_or(""), "\"");
}
double scale_of(const std::optional<std::string>& norm, double count, bool forward) {
  std::string mode = norm.value_or("backward");
  if (mode == "ortho") return 1 / std::sqrt(count);
  return (mode == "forward") == forward ? 1 / count : 1;
}
// The type that is transformed: integers become the default float type.
Tensor promoted(const char* name, const Tensor& x, bool to_complex_type) {
  Tensor t = is_integral(x.dtype(), true) ? cast(x, default_dtype()) : x;
  CHECK(t.dtype() != DType::BFloat16 && t.dtype() != DType::Float16 && t.dtype() != DType::Complex32, Runtime, name,
        ": Unsupported dtype ", info(x.dtype()).legacy);
  return to_complex_type && !t.is_complex() ? cast(t, to_complex(t.dtype())) : t;
}

}  // namespace

static Tensor fft_1d(const Tensor& x, std::optional<int64_t> n, int64_t dim, const std::optional<std::string>& norm,
                     bool forward, const char* name) {
  check_norm(norm);
  int64_t d = wrapped(dim, x);
  CHECK(!n || *n >= 1, Runtime, "Invalid number of data points (", n.value_or(0), ") specified");
  int64_t count = n.value_or(x.sizes()[d]);
  CHECK(count >= 1, Runtime, "Invalid number of data points (", count, ") specified");
  Tensor t = promoted(name, x, false);
  double scale = scale_of(norm, static_cast<double>(count), forward);
  t = padded(t, d, count);
  return fft_c2c(t, {d}, scale, forward);
}
static Tensor fft(const Tensor& x, std::optional<int64_t> n, int64_t dim, const std::optional<std::string>& norm) {
  return fft_1d(x, n, dim, norm, true, "fft");
}
static Tensor ifft(const Tensor& x, std::optional<int64_t> n, int64_t dim, const std::optional<std::string>& norm) {
  return fft_1d(x, n, dim, norm, false, "ifft");
}

static Tensor real_to_half(const char* name, const Tensor& x, std::optional<int64_t> n, int64_t dim,
                           const std::optional<std::string>& norm, bool forward) {
  check_norm(norm);
  CHECK(!x.is_complex(), Runtime, name, " expects a real input tensor, but got ", info(x.dtype()).legacy);
  int64_t d = wrapped(dim, x);
  int64_t count = n.value_or(x.sizes()[d]);
  CHECK(count >= 1, Runtime, "Invalid number of data points (", count, ") specified");
  return fft_r2c(padded(promoted(name, x, false), d, count), {d}, scale_of(norm, static_cast<double>(count), forward),
                 forward);
}
static Tensor rfft(const Tensor& x, std::optional<int64_t> n, int64_t dim, const std::optional<std::string>& norm) {
  return real_to_half("rfft", x, n, dim, norm, true);
}
static Tensor ihfft(const Tensor& x, std::optional<int64_t> n, int64_t dim, const std::optional<std::string>& norm) {
  return real_to_half("ihfft", x, n, dim, norm, false);
}

static Tensor half_to_real(const char* name, const Tensor& x, std::optional<int64_t> n, int64_t dim,
                           const std::optional<std::string>& norm, bool forward) {
  check_norm(norm);
  int64_t d = wrapped(dim, x);
  int64_t count = n.value_or(2 * (x.sizes()[d] - 1));
  CHECK(count >= 1, Runtime, "Invalid number of data points (", count, ") specified");
  return fft_c2r(padded(promoted(name, x, true), d, count / 2 + 1), {d},
                 scale_of(norm, static_cast<double>(count), forward), forward, count);
}
static Tensor irfft(const Tensor& x, std::optional<int64_t> n, int64_t dim, const std::optional<std::string>& norm) {
  return half_to_real("irfft", x, n, dim, norm, false);
}
static Tensor hfft(const Tensor& x, std::optional<int64_t> n, int64_t dim, const std::optional<std::string>& norm) {
  return half_to_real("hfft", x, n, dim, norm, true);
}

namespace {

// The dimensions and lengths that s and dim name, as torch reads them.
struct Shape {
  Ints dims, sizes;
};
Shape shape_of(const Tensor& x, const std::optional<Ints>& s, const std::optional<Ints>& dim, bool half = false) {
  Shape r;
  if (dim) {
    for (int64_t d : *dim) {
      int64_t w = wrapped(d, x);
      CHECK(!r.dims.contains(w), Runtime, "FFT dims must be unique");
      r.dims.push_back(w);
    }
    CHECK(!s || s->size() == r.dims.size(), Runtime, "When given, dim and shape arguments must have the same length");
  } else if (s) {
    CHECK(s->size() <= x.dim(), Runtime, "Got shape with ", s->size(), " values but input tensor only has ", x.dim(),
          " dimensions.");
    for (int64_t i = 0; i < s->size(); ++i) r.dims.push_back(x.dim() - s->size() + i);
  } else {
    for (int64_t i = 0; i < x.dim(); ++i) r.dims.push_back(i);
  }
  for (int64_t i = 0; i < r.dims.size(); ++i) {
    int64_t n = s ? (*s)[i] : -1;
    bool last = half && i + 1 == r.dims.size();
    if (n == -1) n = last ? 2 * (x.sizes()[r.dims[i]] - 1) : x.sizes()[r.dims[i]];
    CHECK(n >= 1, Runtime, "Invalid number of data points (", n, ") specified");
    r.sizes.push_back(n);
  }
  return r;
}
double count_of(const Shape& s) {
  double n = 1;
  for (int64_t v : s.sizes) n *= static_cast<double>(v);
  return n;
}
Tensor resized(Tensor x, const Shape& s, bool half) {
  for (int64_t i = 0; i < s.dims.size(); ++i)
    x = padded(x, s.dims[i], half && i + 1 == s.dims.size() ? s.sizes[i] / 2 + 1 : s.sizes[i]);
  return x;
}

}  // namespace

static Tensor fftn_any(const char* name, const Tensor& x, const std::optional<Ints>& s, const std::optional<Ints>& dim,
                       const std::optional<std::string>& norm, bool forward) {
  check_norm(norm);
  Shape shape = shape_of(x, s, dim);
  Tensor t = resized(promoted(name, x, false), shape, false);
  return fft_c2c(t, shape.dims, scale_of(norm, count_of(shape), forward), forward);
}
static Tensor fftn(const Tensor& x, const std::optional<Ints>& s, const std::optional<Ints>& dim,
                   const std::optional<std::string>& norm) {
  return fftn_any("fftn", x, s, dim, norm, true);
}
static Tensor ifftn(const Tensor& x, const std::optional<Ints>& s, const std::optional<Ints>& dim,
                    const std::optional<std::string>& norm) {
  return fftn_any("ifftn", x, s, dim, norm, false);
}
static Tensor rfftn_any(const char* name, const Tensor& x, const std::optional<Ints>& s, const std::optional<Ints>& dim,
                        const std::optional<std::string>& norm, bool forward) {
  check_norm(norm);
  CHECK(!x.is_complex(), Runtime, name, " expects a real-valued input tensor, but got ", info(x.dtype()).legacy);
  Shape shape = shape_of(x, s, dim);
  CHECK(!shape.dims.empty(), Runtime, name, " must transform at least one axis");
  return fft_r2c(resized(promoted(name, x, false), shape, false), shape.dims, scale_of(norm, count_of(shape), forward),
                 forward);
}
static Tensor rfftn(const Tensor& x, const std::optional<Ints>& s, const std::optional<Ints>& dim,
                    const std::optional<std::string>& norm) {
  return rfftn_any("rfftn", x, s, dim, norm, true);
}
static Tensor ihfftn(const Tensor& x, const std::optional<Ints>& s, const std::optional<Ints>& dim,
                     const std::optional<std::string>& norm) {
  return rfftn_any("ihfftn", x, s, dim, norm, false);
}
static Tensor irfftn_any(const char* name, const Tensor& x, const std::optional<Ints>& s,
                         const std::optional<Ints>& dim, const std::optional<std::string>& norm, bool forward) {
  check_norm(norm);
  CHECK(x.dim() > 0 || (dim && !dim->empty()), Runtime, name, " must transform at least one axis");
  Shape shape = shape_of(x, s, dim, true);
  CHECK(!shape.dims.empty(), Runtime, name, " must transform at least one axis");
  Tensor t = resized(promoted(name, x, true), shape, true);
  return fft_c2r(t, shape.dims, scale_of(norm, count_of(shape), forward), forward, shape.sizes[shape.sizes.size() - 1]);
}
static Tensor irfftn(const Tensor& x, const std::optional<Ints>& s, const std::optional<Ints>& dim,
                     const std::optional<std::string>& norm) {
  return irfftn_any("irfftn", x, s, dim, norm, false);
}
static Tensor hfftn(const Tensor& x, const std::optional<Ints>& s, const std::optional<Ints>& dim,
                    const std::optional<std::string>& norm) {
  return irfftn_any("hfftn", x, s, dim, norm, true);
}

static const Register registered([](Ops& ops) {
  const char* one = "input, n=None, dim=-1, norm=None";
  const char* many = "input, s=None, dim=None, norm=None";
  const char* two = "input, s=None, dim=(-2, -1), norm=None";
  ops.def("fft.fft", fft, one, kCastFull | kFreeOut, R"(
    Computes the discrete Fourier transform of signals: y[k] = sum over j of x[j] e^(-2 pi i j k / n).

    Example:
        >>> torch.fft.fft(torch.tensor([1.0, 2.0, 3.0, 4.0]))
        tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j]))");
  ops.def("fft.ifft", ifft, one, kCastFull | kFreeOut, R"(
    Inverts fft(): x[j] = 1/n sum over k of y[k] e^(2 pi i j k / n).

    Example:
        >>> torch.fft.ifft(torch.tensor([10 + 0j, -2 + 2j, -2 + 0j, -2 - 2j])).real
        tensor([1., 2., 3., 4.]))");
  ops.def("fft.rfft", rfft, one, kCastFull | kFreeOut, R"(
    Transforms real signals, and returns the frequencies that are not implied: n // 2 + 1 of n.

    Example:
        >>> torch.fft.rfft(torch.tensor([1.0, 2.0, 3.0, 4.0]))
        tensor([10.+0.j, -2.+2.j, -2.+0.j]))");
  ops.def("fft.irfft", irfft, one, kCastFull | kFreeOut, R"(
    Inverts rfft(): a real signal of half of its frequencies.

    Args:
        n: the length of the result; None takes 2 * (size - 1), so give it for odd lengths.

    Example:
        >>> torch.fft.irfft(torch.fft.rfft(torch.tensor([1.0, 2.0, 3.0])), n=3)
        tensor([1., 2., 3.]))");
  ops.def("fft.hfft", hfft, one, kCastFull | kFreeOut, R"(
    Transforms a signal that is Hermitian, of which the first half is given, into real frequencies.

    Args:
        n: the length of the result; None takes 2 * (size - 1).

    Example:
        >>> torch.fft.hfft(torch.tensor([4 + 0j, 1 - 1j, 3 + 0j]))
        tensor([ 9., -1.,  5.,  3.]))");
  ops.def("fft.ihfft", ihfft, one, kCastFull | kFreeOut | kExactOut, R"(
    Inverts hfft(): half of the Hermitian signal whose frequencies are real.

    Example:
        >>> torch.fft.ihfft(torch.tensor([1.0, 2.0, 3.0])).abs()
        tensor([2.0000, 0.5774]))");
  ops.def("fft.fftn", fftn, many, kCastFull | kFreeOut, R"(
    Computes the discrete Fourier transform of several dimensions.

    Example:
        >>> torch.fft.fftn(torch.ones(2, 2, 2)).abs().sum()
        tensor(8.))");
  ops.def("fft.ifftn", ifftn, many, kCastFull | kFreeOut, R"(
    Inverts fftn().

    Example:
        >>> torch.fft.ifftn(torch.fft.fftn(torch.eye(2))).real
        tensor([[1., 0.],
                [0., 1.]]))");
  ops.def("fft.rfftn", rfftn, many, kCastFull | kFreeOut, R"(
    Transforms several dimensions of real input, and returns n // 2 + 1 frequencies of the last one.

    Example:
        >>> torch.fft.rfftn(torch.ones(2, 2, 4)).shape
        torch.Size([2, 2, 3]))");
  ops.def("fft.irfftn", irfftn, many, kCastFull | kFreeOut, R"(
    Inverts rfftn(): a real signal of half of its frequencies.

    Args:
        s: the lengths of the result; None takes those of input, and 2 * (size - 1) for the last one.

    Example:
        >>> torch.fft.irfftn(torch.fft.rfftn(torch.eye(2)))
        tensor([[1., 0.],
                [0., 1.]]))");
  ops.def("fft.hfftn", hfftn, many, kCastFull | kFreeOut, R"(
    Transforms several dimensions of a signal that is Hermitian, of which half of the last one is given.

    Args:
        s: the lengths of the result; None takes those of input, and 2 * (size - 1) for the last one.

    Example:
        >>> torch.fft.hfftn(torch.ones(2, 2, dtype=torch.complex64))
        tensor([[4., 0.],
                [0., 0.]]))");
  ops.def("fft.ihfftn", ihfftn, many, kCastFull | kFreeOut, R"(
    Inverts hfftn().

    Example:
        >>> torch.fft.ihfftn(torch.ones(2, 2)).abs()
        tensor([[1., 0.],
                [0., 0.]]))");
  ops.def("fft.fft2", fftn, two, kCastFull | kFreeOut, R"(
    Computes the discrete Fourier transform of two dimensions, such as those of images.

    Example:
        >>> torch.fft.fft2(torch.ones(2, 2))
        tensor([[4.+0.j, 0.+0.j],
                [0.+0.j, 0.+0.j]]))");
  ops.def("fft.ifft2", ifftn, two, kCastFull | kFreeOut, R"(
    Inverts fft2().

    Example:
        >>> torch.fft.ifft2(torch.fft.fft2(torch.eye(2))).real
        tensor([[1., 0.],
                [0., 1.]]))");
  ops.def("fft.rfft2", rfftn, two, kCastFull | kFreeOut, R"(
    Transforms two dimensions of real input, and returns n // 2 + 1 frequencies of the last one.

    Example:
        >>> torch.fft.rfft2(torch.ones(2, 4)).shape
        torch.Size([2, 3]))");
  ops.def("fft.irfft2", irfftn, two, kCastFull | kFreeOut, R"(
    Inverts rfft2(): real images of half of their frequencies.

    Args:
        s: the lengths of the result; None takes those of input, and 2 * (size - 1) for the last one.

    Example:
        >>> torch.fft.irfft2(torch.fft.rfft2(torch.eye(2)))
        tensor([[1., 0.],
                [0., 1.]]))");
  ops.def("fft.hfft2", hfftn, two, kCastFull | kFreeOut, R"(
    Transforms two dimensions of a signal that is Hermitian, of which half of the last one is given.

    Args:
        s: the lengths of the result; None takes those of input, and 2 * (size - 1) for the last one.

    Example:
        >>> torch.fft.hfft2(torch.ones(2, 2, dtype=torch.complex64))
        tensor([[4., 0.],
                [0., 0.]]))");
  ops.def("fft.ihfft2", ihfftn, two, kCastFull | kFreeOut, R"(
    Inverts hfft2().

    Example:
        >>> torch.fft.ihfft2(torch.ones(2, 2)).abs()
        tensor([[1., 0.],
                [0., 0.]]))");
});

}  // namespace rl::ops
