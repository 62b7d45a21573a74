#include "ops/elementwise/elementwise.h"
#include "ops/ops.h"

namespace rl::ops {

// Every other real number of a complex tensor's memory, as a view.
static Tensor part_view(const Tensor& x, int64_t part) {
  Ints strides(x.strides());
  for (int64_t& s : strides) s *= 2;
  Tensor y = alias_as(x, to_real(x.dtype()), x.sizes(), strides, 2 * x->offset + part);
  y->neg = part == 1 ? x->neg != x->conj : x->neg;  // Note [Lazy views]
  return y;
}

// real: y = Re x        dx = dy
struct RealBackward : Node {
  static constexpr const char* kName = "RealBackward0";
  static constexpr bool kStacks = true;
  Grads backward(const Grads& dy) { return {complex(dy[0], zeros_like(dy[0]))}; }
};
Tensor real(const Tensor& x) {
  if (!x.is_complex()) return x;
  return record_view<RealBackward>(part_view(x, 0), x, [](auto&) {});
}

// imag: y = Im x        dx = i dy
struct ImagBackward : Node {
  static constexpr const char* kName = "ImagBackward0";
  static constexpr bool kStacks = true;
  Grads backward(const Grads& dy) { return {complex(zeros_like(dy[0]), dy[0])}; }
};
Tensor imag(const Tensor& x) {
  CHECK(x.is_complex(), Runtime, "imag is not implemented for tensors with non-complex dtypes.");
  return record_view<ImagBackward>(part_view(x, 1), x, [](auto&) {});
}

// complex: y = re + i im        dre = Re dy, dim = Im dy
struct ComplexBackward : Node {
  static constexpr const char* kName = "ComplexBackward0";
  static constexpr bool kStacks = true;
  Grads backward(const Grads& dy) { return {needs(0) ? real(dy[0]) : Tensor(), needs(1) ? imag(dy[0]) : Tensor()}; }
};
static void check_parts(const Tensor& a, const Tensor& b) {
  bool float_type = a.dtype() == DType::Float32 || a.dtype() == DType::Float64 || a.dtype() == DType::Float16;
  CHECK(float_type, Runtime, "Expected both inputs to be Half, Float or Double tensors but got ",
        info(a.dtype()).legacy, " and ", info(b.dtype()).legacy);
  CHECK(a.dtype() == b.dtype(), Runtime, "Expected object of scalar type ", info(a.dtype()).legacy,
        " but got scalar type ", info(b.dtype()).legacy, " for second argument");
}
Tensor complex(const Tensor& re, const Tensor& im) {
  check_parts(re, im);
  return record<ComplexBackward>(binary("complex", Pointwise::MakeComplex, re, im, {.complex_result = true}), {re, im});
}

// polar: y = r e^(i a)        dr = Re(dy conj(e^(i a))), da = Re(dy conj(i y))
struct PolarBackward : Node {
  static constexpr const char* kName = "PolarBackward0";
  static constexpr bool kStacks = true;
  Saved angle, result;
  Grads backward(const Grads& dy) {
    Grads dx(2);
    if (needs(0)) {
      Tensor a = angle.unpack(*this);
      dx[0] = add(mul(real(dy[0]), cos(a)), mul(imag(dy[0]), sin(a)));
    }
    if (needs(1)) dx[1] = imag(mul(dy[0], conj(result.unpack(*this))));
    return dx;
  }
  FIELDS(angle, result)
};
static Tensor polar(const Tensor& r, const Tensor& angle) {
  check_parts(r, angle);
  Tensor y = binary("polar", Pointwise::MakePolar, r, angle, {.cost = 16, .complex_result = true});
  return record<PolarBackward>(y, {r, angle}, [&](auto& n) {
    n.angle = save(angle);
    n.result = save_output(n, y);
  });
}

// angle: y = the argument of x (0 or pi for reals)        dx = i dy x / |x|^2, 0 at 0 and for reals
struct AngleBackward : SelfNode {
  static constexpr const char* kName = "AngleBackward0";
  Grads backward(const Grads& dy) {
    Tensor z = x();
    if (!z.is_complex()) return {zeros_like(dy[0])};
    Tensor re = real(z), im = imag(z), scale = div(dy[0], add(square(re), square(im)));
    return {zero_where(eq(z, 0), complex(neg(mul(im, scale)), mul(re, scale)))};
  }
};
static constexpr Kernel kAngle{.op = Pointwise::Angle, .rule = Rule::RealFloat, .cost = 8};
static Tensor angle(const Tensor& x) { return from_self<AngleBackward>(unary("angle", kAngle, x), x); }

// view_as_real: (re, im) along a new last dimension        dx = view_as_complex(dy)
Tensor view_as_complex(const Tensor& x);
struct ViewAsRealBackward : Node {
  static constexpr const char* kName = "ViewAsRealBackward0";
  static constexpr bool kStacks = true;
  Grads backward(const Grads& dy) { return {view_as_complex(contiguous(dy[0]))}; }
};
Tensor view_as_real(const Tensor& x) {
  CHECK(x.is_complex(), Runtime, "view_as_real is only supported for complex tensors");
  CHECK(
      !x->conj, Runtime,
      "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can view it "
      "as real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the original.");
  Ints sizes(x.sizes()), strides(x.strides());
  for (int64_t& s : strides) s *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  Tensor y = alias_as(x, to_real(x.dtype()), sizes, strides, 2 * x->offset);
  y->neg = x->neg;
  return record_view<ViewAsRealBackward>(y, x, [](auto&) {});
}

// view_as_complex: pairs along the last dimension as complex numbers        dx = view_as_real(dy)
struct ViewAsComplexBackward : Node {
  static constexpr const char* kName = "ViewAsComplexBackward0";
  static constexpr bool kStacks = true;
  Grads backward(const Grads& dy) { return {view_as_real(dy[0])}; }
};
Tensor view_as_complex(const Tensor& x) {
  bool float_type = x.dtype() == DType::Float32 || x.dtype() == DType::Float64 || x.dtype() == DType::Float16;
  CHECK(float_type, Runtime,
        "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: ",
        info(x.dtype()).legacy);
  CHECK(x.dim() > 0, Runtime, "Input tensor must have one or more dimensions");
  int64_t last = x.dim() - 1;
  CHECK(x.sizes()[last] == 2, Runtime, "Tensor must have a last dimension of size 2");
  CHECK(x.strides()[last] == 1, Runtime, "Tensor must have a last dimension with stride 1");
  Ints sizes, strides;
  for (int64_t d = 0; d < last; ++d) {
    CHECK(x.sizes()[d] == 1 || x.strides()[d] % 2 == 0, Runtime,
          "Tensor must have a stride divisible by 2 for all but last dimension");
    sizes.push_back(x.sizes()[d]);
    strides.push_back(x.strides()[d] / 2);
  }
  CHECK(x->offset % 2 == 0, Runtime, "Tensor must have a storage_offset divisible by 2");
  Tensor y = alias_as(x, to_complex(x.dtype()), sizes, strides, x->offset / 2);
  y->neg = x->neg;
  return record_view<ViewAsComplexBackward>(y, x, [](auto&) {});
}

static const Register registered([](Ops& ops) {
  ops.def("real", real, "input", kView | kElementwise, R"(
    Shows the real parts of a complex tensor; a real tensor is returned as it is.

    Example:
        >>> torch.real(torch.tensor([1 + 2j, 3 + 4j]))
        tensor([1., 3.]))");
  ops.def("imag", imag, "input", kView | kElementwise, R"(
    Shows the imaginary parts of a complex tensor; real tensors are refused.

    Example:
        >>> z = torch.tensor([1 + 2j, 3 + 4j])
        >>> torch.imag(z)
        tensor([2., 4.])
        >>> z.imag[0] = 9
        >>> z
        tensor([1.+9.j, 3.+4.j]))");
  ops.def("view_as_real", view_as_real, "input", kView | kBatchable, R"(
    Shows complex numbers as pairs along a new last dimension.

    Example:
        >>> torch.view_as_real(torch.tensor([1 + 2j, 3 + 4j]))
        tensor([[1., 2.],
                [3., 4.]]))");
  ops.def("view_as_complex", view_as_complex, "input", kView | kCastFull, R"(
    Shows pairs along the last dimension, of size 2, as complex numbers.

    Example:
        >>> torch.view_as_complex(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([1.+2.j, 3.+4.j]))");
  ops.def("complex", complex, "real, imag", kExactOut | kElementwise, R"(
    Makes complex numbers of real and imaginary parts.

    Args:
        real: the real parts.
        imag: the imaginary parts, of the same type.

    Returns:
        Tensor: complex64 of float32, complex128 of float64.

    Example:
        >>> torch.complex(torch.tensor([1.0, 2.0]), torch.tensor([0.5, 0.0]))
        tensor([1.+0.5000j, 2.+0.0000j]))");
  ops.def("polar", polar, "abs, angle", kExactOut | kCastFull | kElementwise, R"(
    Makes complex numbers of absolute value and angle: abs * (cos(angle) + i sin(angle)).

    Args:
        abs: the absolute values.
        angle: the angles, in radians.

    Returns:
        Tensor: complex64 of float32, complex128 of float64.

    Example:
        >>> torch.polar(torch.tensor([1.0, 2.0]), torch.tensor([0.0, math.pi / 2]))
        tensor([ 1.0000e+00+0.j, -8.7423e-08+2.j]))");
  ops.def("angle", angle, "input", kMethod, R"(
    Takes the angle of complex numbers, in radians; of real ones, pi where negative, else 0.

    Gradient:
        Zero for real input.

    Example:
        >>> torch.angle(torch.tensor([1j, -1 + 0j]))
        tensor([1.5708, 3.1416])
        >>> torch.angle(torch.tensor([2.0, -2.0]))
        tensor([0.0000, 3.1416]))",
          kAngle);
});

}  // namespace rl::ops
