// Special functions that have no derivative here, as in torch: asking for it is an error that names the function.
#include "ops/elementwise/elementwise.h"
#include "ops/ops.h"

namespace rl::ops {

template <Pointwise kOp, int kOperands>
constexpr Kernel kSlow{.op = kOp, .operands = kOperands, .rule = Rule::Float, .cost = 64};
template <Pointwise kOp, const char* const& kName> static Tensor function1(const Tensor& x) {
  return record_not_differentiable(kName, unary(kName, kSlow<kOp, 1>, x), {x});
}
template <Pointwise kOp, const char* const& kName> static Tensor function2(const Value& x, const Value& n) {
  return record_not_differentiable(kName, binary(kName, kSlow<kOp, 2>, x, n), {x, n});
}

#define DEFINE_NAME(name) static constexpr const char* k_##name = "special." #name
DEFINE_NAME(airy_ai);
DEFINE_NAME(bessel_j0);
DEFINE_NAME(bessel_j1);
DEFINE_NAME(bessel_y0);
DEFINE_NAME(bessel_y1);
DEFINE_NAME(modified_bessel_i0);
DEFINE_NAME(modified_bessel_i1);
DEFINE_NAME(modified_bessel_k0);
DEFINE_NAME(modified_bessel_k1);
DEFINE_NAME(scaled_modified_bessel_k0);
DEFINE_NAME(scaled_modified_bessel_k1);
DEFINE_NAME(spherical_bessel_j0);
DEFINE_NAME(chebyshev_polynomial_t);
DEFINE_NAME(chebyshev_polynomial_u);
DEFINE_NAME(chebyshev_polynomial_v);
DEFINE_NAME(chebyshev_polynomial_w);
DEFINE_NAME(shifted_chebyshev_polynomial_t);
DEFINE_NAME(shifted_chebyshev_polynomial_u);
DEFINE_NAME(shifted_chebyshev_polynomial_v);
DEFINE_NAME(shifted_chebyshev_polynomial_w);
DEFINE_NAME(hermite_polynomial_h);
DEFINE_NAME(hermite_polynomial_he);
DEFINE_NAME(laguerre_polynomial_l);
DEFINE_NAME(legendre_polynomial_p);
#undef DEFINE_NAME

using TensorFirst = Tensor (*)(const Tensor& x, const Value& n);
using NumberFirst = Tensor (*)(const Scalar& x, const Tensor& n);
static void define(Ops& ops, const char* name, TensorFirst f, NumberFirst g, const char* doc, const Kernel& kernel) {
  ops.def(name, f, "x, n", 0, doc, kernel);
  ops.def(name, g, "x, n");
}

static const Register registered([](Ops& ops) {
  using enum Pointwise;
  ops.def(k_airy_ai, function1<AiryAi, k_airy_ai>, "input", 0, R"(
    Computes the Airy function Ai(x), the solution of y'' = x y that vanishes for large x.

    Gradient:
        Not differentiable: backward() raises.

    Example:
        >>> torch.special.airy_ai(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([0.5356, 0.3550, 0.1353]))",
          kSlow<AiryAi, 1>);
  ops.def(k_bessel_j0, function1<BesselJ0, k_bessel_j0>, "input", 0, R"(
    Computes the Bessel function of the first kind of order 0.

    Gradient:
        Not differentiable: backward() raises.

    Example:
        >>> torch.special.bessel_j0(torch.tensor([0.0, 1.0, 2.0]))
        tensor([1.0000, 0.7652, 0.2239]))",
          kSlow<BesselJ0, 1>);
  ops.def(k_bessel_j1, function1<BesselJ1, k_bessel_j1>, "input", 0, R"(
    Computes the Bessel function of the first kind of order 1.

    Gradient:
        Not differentiable: backward() raises.

    Example:
        >>> torch.special.bessel_j1(torch.tensor([0.0, 1.0, 2.0]))
        tensor([0.0000, 0.4401, 0.5767]))",
          kSlow<BesselJ1, 1>);
  ops.def(k_bessel_y0, function1<BesselY0, k_bessel_y0>, "input", 0, R"(
    Computes the Bessel function of the second kind of order 0: -inf at 0.

    Gradient:
        Not differentiable: backward() raises.

    Example:
        >>> torch.special.bessel_y0(torch.tensor([0.0, 1.0, 2.0]))
        tensor([  -inf, 0.0883, 0.5104]))",
          kSlow<BesselY0, 1>);
  ops.def(k_bessel_y1, function1<BesselY1, k_bessel_y1>, "input", 0, R"(
    Computes the Bessel function of the second kind of order 1: -inf at 0.

    Gradient:
        Not differentiable: backward() raises.

    Example:
        >>> torch.special.bessel_y1(torch.tensor([0.0, 1.0, 2.0]))
        tensor([   -inf, -0.7812, -0.1070]))",
          kSlow<BesselY1, 1>);
  ops.def(k_modified_bessel_i0, function1<ModifiedBesselI0, k_modified_bessel_i0>, "input", 0, R"(
    Computes the modified Bessel function of the first kind of order 0, as i0().

    Gradient:
        Not differentiable: backward() raises.

    Example:
        >>> torch.special.modified_bessel_i0(torch.tensor([0.0, 1.0, 2.0]))
        tensor([1.0000, 1.2661, 2.2796]))",
          kSlow<ModifiedBesselI0, 1>);
  ops.def(k_modified_bessel_i1, function1<ModifiedBesselI1, k_modified_bessel_i1>, "input", 0, R"(
    Computes the modified Bessel function of the first kind of order 1, as special.i1().

    Gradient:
        Not differentiable: backward() raises.

    Example:
        >>> torch.special.modified_bessel_i1(torch.tensor([0.0, 1.0, 2.0]))
        tensor([0.0000, 0.5652, 1.5906]))",
          kSlow<ModifiedBesselI1, 1>);
  ops.def(k_modified_bessel_k0, function1<ModifiedBesselK0, k_modified_bessel_k0>, "input", 0, R"(
    Computes the modified Bessel function of the second kind of order 0: infinite at 0.

    Gradient:
        Not differentiable: backward() raises.

    Example:
        >>> torch.special.modified_bessel_k0(torch.tensor([0.0, 1.0, 2.0]))
        tensor([   inf, 0.4210, 0.1139]))",
          kSlow<ModifiedBesselK0, 1>);
  ops.def(k_modified_bessel_k1, function1<ModifiedBesselK1, k_modified_bessel_k1>, "input", 0, R"(
    Computes the modified Bessel function of the second kind of order 1: infinite at 0.

    Gradient:
        Not differentiable: backward() raises.

    Example:
        >>> torch.special.modified_bessel_k1(torch.tensor([0.0, 1.0, 2.0]))
        tensor([   inf, 0.6019, 0.1399]))",
          kSlow<ModifiedBesselK1, 1>);
  ops.def(k_scaled_modified_bessel_k0, function1<ScaledModifiedBesselK0, k_scaled_modified_bessel_k0>, "x", 0, R"(
    Computes e^x K0(x), which does not underflow for large x.

    Gradient:
        Not differentiable: backward() raises.

    Example:
        >>> torch.special.scaled_modified_bessel_k0(torch.tensor([1.0, 100.0]))
        tensor([1.1445, 0.1252]))",
          kSlow<ScaledModifiedBesselK0, 1>);
  ops.def(k_scaled_modified_bessel_k1, function1<ScaledModifiedBesselK1, k_scaled_modified_bessel_k1>, "x", 0, R"(
    Computes e^x K1(x), which does not underflow for large x.

    Gradient:
        Not differentiable: backward() raises.

    Example:
        >>> torch.special.scaled_modified_bessel_k1(torch.tensor([1.0, 100.0]))
        tensor([1.6362, 0.1258]))",
          kSlow<ScaledModifiedBesselK1, 1>);
  ops.def(k_spherical_bessel_j0, function1<SphericalBesselJ0, k_spherical_bessel_j0>, "x", 0, R"(
    Computes the spherical Bessel function of order 0: sin(x) / x, and 1 at 0.

    Gradient:
        Not differentiable: backward() raises.

    Example:
        >>> torch.special.spherical_bessel_j0(torch.tensor([0.0, 1.0]))
        tensor([1.0000, 0.8415]))",
          kSlow<SphericalBesselJ0, 1>);
  define(ops, k_chebyshev_polynomial_t, tensor_first<function2<ChebyshevT, k_chebyshev_polynomial_t>>,
         number_first<function2<ChebyshevT, k_chebyshev_polynomial_t>>, R"(
    Computes the Chebyshev polynomial of the first kind: T_n(cos t) = cos(n t).

    Gradient:
        Not differentiable: backward() raises.

    Example:
        >>> torch.special.chebyshev_polynomial_t(torch.tensor([0.0, 0.5, 1.0]), 2)
        tensor([-1.0000, -0.5000,  1.0000]))",
         kSlow<ChebyshevT, 2>);
  define(ops, k_chebyshev_polynomial_u, tensor_first<function2<ChebyshevU, k_chebyshev_polynomial_u>>,
         number_first<function2<ChebyshevU, k_chebyshev_polynomial_u>>, R"(
    Computes the Chebyshev polynomial of the second kind: U_n(cos t) sin(t) = sin((n + 1) t).

    Gradient:
        Not differentiable: backward() raises.

    Example:
        >>> torch.special.chebyshev_polynomial_u(torch.tensor([0.0, 0.5, 1.0]), 2)
        tensor([-1.,  0.,  3.]))",
         kSlow<ChebyshevU, 2>);
  define(ops, k_chebyshev_polynomial_v, tensor_first<function2<ChebyshevV, k_chebyshev_polynomial_v>>,
         number_first<function2<ChebyshevV, k_chebyshev_polynomial_v>>, R"(
    Computes the Chebyshev polynomial of the third kind: V_n(cos t) cos(t / 2) = cos((n + 1/2) t).

    Gradient:
        Not differentiable: backward() raises.

    Example:
        >>> torch.special.chebyshev_polynomial_v(torch.tensor([0.0, 0.5, 1.0]), 2)
        tensor([-1., -1.,  1.]))",
         kSlow<ChebyshevV, 2>);
  define(ops, k_chebyshev_polynomial_w, tensor_first<function2<ChebyshevW, k_chebyshev_polynomial_w>>,
         number_first<function2<ChebyshevW, k_chebyshev_polynomial_w>>, R"(
    Computes the Chebyshev polynomial of the fourth kind: W_n(cos t) sin(t / 2) = sin((n + 1/2) t).

    Gradient:
        Not differentiable: backward() raises.

    Example:
        >>> torch.special.chebyshev_polynomial_w(torch.tensor([0.0, 0.5, 1.0]), 2)
        tensor([-1.,  1.,  5.]))",
         kSlow<ChebyshevW, 2>);
  define(ops, k_shifted_chebyshev_polynomial_t,
         tensor_first<function2<ShiftedChebyshevT, k_shifted_chebyshev_polynomial_t>>,
         number_first<function2<ShiftedChebyshevT, k_shifted_chebyshev_polynomial_t>>, R"(
    Computes the Chebyshev polynomial of the first kind at 2x - 1, for x from 0 to 1.

    Gradient:
        Not differentiable: backward() raises.

    Example:
        >>> torch.special.shifted_chebyshev_polynomial_t(torch.tensor([0.0, 0.5, 1.0]), 2)
        tensor([ 1., -1.,  1.]))",
         kSlow<ShiftedChebyshevT, 2>);
  define(ops, k_shifted_chebyshev_polynomial_u,
         tensor_first<function2<ShiftedChebyshevU, k_shifted_chebyshev_polynomial_u>>,
         number_first<function2<ShiftedChebyshevU, k_shifted_chebyshev_polynomial_u>>, R"(
    Computes the Chebyshev polynomial of the second kind at 2x - 1, for x from 0 to 1.

    Gradient:
        Not differentiable: backward() raises.

    Example:
        >>> torch.special.shifted_chebyshev_polynomial_u(torch.tensor([0.0, 0.5, 1.0]), 2)
        tensor([ 3., -1.,  3.]))",
         kSlow<ShiftedChebyshevU, 2>);
  define(ops, k_shifted_chebyshev_polynomial_v,
         tensor_first<function2<ShiftedChebyshevV, k_shifted_chebyshev_polynomial_v>>,
         number_first<function2<ShiftedChebyshevV, k_shifted_chebyshev_polynomial_v>>, R"(
    Computes the Chebyshev polynomial of the third kind at 2x - 1, for x from 0 to 1.

    Gradient:
        Not differentiable: backward() raises.

    Example:
        >>> torch.special.shifted_chebyshev_polynomial_v(torch.tensor([0.0, 0.5, 1.0]), 2)
        tensor([ 5., -1.,  1.]))",
         kSlow<ShiftedChebyshevV, 2>);
  define(ops, k_shifted_chebyshev_polynomial_w,
         tensor_first<function2<ShiftedChebyshevW, k_shifted_chebyshev_polynomial_w>>,
         number_first<function2<ShiftedChebyshevW, k_shifted_chebyshev_polynomial_w>>, R"(
    Computes the Chebyshev polynomial of the fourth kind at 2x - 1, for x from 0 to 1.

    Gradient:
        Not differentiable: backward() raises.

    Example:
        >>> torch.special.shifted_chebyshev_polynomial_w(torch.tensor([0.0, 0.5, 1.0]), 2)
        tensor([ 1., -1.,  5.]))",
         kSlow<ShiftedChebyshevW, 2>);
  define(ops, k_hermite_polynomial_h, tensor_first<function2<HermiteH, k_hermite_polynomial_h>>,
         number_first<function2<HermiteH, k_hermite_polynomial_h>>, R"(
    Computes the Hermite polynomial of the physicists: H_0 = 1, H_1 = 2x, H_(n+1) = 2x H_n - 2n H_(n-1).

    Gradient:
        Not differentiable: backward() raises.

    Example:
        >>> torch.special.hermite_polynomial_h(torch.tensor([0.0, 1.0, 2.0]), 2)
        tensor([-2.,  2., 14.]))",
         kSlow<HermiteH, 2>);
  define(ops, k_hermite_polynomial_he, tensor_first<function2<HermiteHe, k_hermite_polynomial_he>>,
         number_first<function2<HermiteHe, k_hermite_polynomial_he>>, R"(
    Computes the Hermite polynomial of the statisticians: He_0 = 1, He_1 = x, He_(n+1) = x He_n - n He_(n-1).

    Gradient:
        Not differentiable: backward() raises.

    Example:
        >>> torch.special.hermite_polynomial_he(torch.tensor([0.0, 1.0, 2.0]), 2)
        tensor([-1.,  0.,  3.]))",
         kSlow<HermiteHe, 2>);
  define(ops, k_laguerre_polynomial_l, tensor_first<function2<LaguerreL, k_laguerre_polynomial_l>>,
         number_first<function2<LaguerreL, k_laguerre_polynomial_l>>, R"(
    Computes the Laguerre polynomial: L_0 = 1, L_1 = 1 - x, (n + 1) L_(n+1) = (2n + 1 - x) L_n - n L_(n-1).

    Gradient:
        Not differentiable: backward() raises.

    Example:
        >>> torch.special.laguerre_polynomial_l(torch.tensor([0.0, 1.0, 2.0]), 2)
        tensor([ 1.0000, -0.5000, -1.0000]))",
         kSlow<LaguerreL, 2>);
  define(ops, k_legendre_polynomial_p, tensor_first<function2<LegendreP, k_legendre_polynomial_p>>,
         number_first<function2<LegendreP, k_legendre_polynomial_p>>, R"(
    Computes the Legendre polynomial: P_0 = 1, P_1 = x, (n + 1) P_(n+1) = (2n + 1) x P_n - n P_(n-1).

    Gradient:
        Not differentiable: backward() raises.

    Example:
        >>> torch.special.legendre_polynomial_p(torch.tensor([0.0, 0.5, 1.0]), 2)
        tensor([-0.5000, -0.1250,  1.0000]))",
         kSlow<LegendreP, 2>);
});

}  // namespace rl::ops
