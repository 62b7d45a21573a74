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
  ops.def(k_airy_ai, function1<AiryAi, k_airy_ai>, "input", 0, "The Airy function Ai.", kSlow<AiryAi, 1>);
  ops.def(k_bessel_j0, function1<BesselJ0, k_bessel_j0>, "input", 0, "The Bessel function J of order 0.",
          kSlow<BesselJ0, 1>);
  ops.def(k_bessel_j1, function1<BesselJ1, k_bessel_j1>, "input", 0, "The Bessel function J of order 1.",
          kSlow<BesselJ1, 1>);
  ops.def(k_bessel_y0, function1<BesselY0, k_bessel_y0>, "input", 0, "The Bessel function Y of order 0.",
          kSlow<BesselY0, 1>);
  ops.def(k_bessel_y1, function1<BesselY1, k_bessel_y1>, "input", 0, "The Bessel function Y of order 1.",
          kSlow<BesselY1, 1>);
  ops.def(k_modified_bessel_i0, function1<ModifiedBesselI0, k_modified_bessel_i0>, "input", 0,
          "The modified Bessel function I of order 0.", kSlow<ModifiedBesselI0, 1>);
  ops.def(k_modified_bessel_i1, function1<ModifiedBesselI1, k_modified_bessel_i1>, "input", 0,
          "The modified Bessel function I of order 1.", kSlow<ModifiedBesselI1, 1>);
  ops.def(k_modified_bessel_k0, function1<ModifiedBesselK0, k_modified_bessel_k0>, "input", 0,
          "The modified Bessel function K of order 0.", kSlow<ModifiedBesselK0, 1>);
  ops.def(k_modified_bessel_k1, function1<ModifiedBesselK1, k_modified_bessel_k1>, "input", 0,
          "The modified Bessel function K of order 1.", kSlow<ModifiedBesselK1, 1>);
  ops.def(k_scaled_modified_bessel_k0, function1<ScaledModifiedBesselK0, k_scaled_modified_bessel_k0>, "x", 0,
          "e^x K0(x).", kSlow<ScaledModifiedBesselK0, 1>);
  ops.def(k_scaled_modified_bessel_k1, function1<ScaledModifiedBesselK1, k_scaled_modified_bessel_k1>, "x", 0,
          "e^x K1(x).", kSlow<ScaledModifiedBesselK1, 1>);
  ops.def(k_spherical_bessel_j0, function1<SphericalBesselJ0, k_spherical_bessel_j0>, "x", 0, "sin(x) / x.",
          kSlow<SphericalBesselJ0, 1>);
  define(ops, k_chebyshev_polynomial_t, tensor_first<function2<ChebyshevT, k_chebyshev_polynomial_t>>,
         number_first<function2<ChebyshevT, k_chebyshev_polynomial_t>>, "Chebyshev's T of degree n.",
         kSlow<ChebyshevT, 2>);
  define(ops, k_chebyshev_polynomial_u, tensor_first<function2<ChebyshevU, k_chebyshev_polynomial_u>>,
         number_first<function2<ChebyshevU, k_chebyshev_polynomial_u>>, "Chebyshev's U of degree n.",
         kSlow<ChebyshevU, 2>);
  define(ops, k_chebyshev_polynomial_v, tensor_first<function2<ChebyshevV, k_chebyshev_polynomial_v>>,
         number_first<function2<ChebyshevV, k_chebyshev_polynomial_v>>, "Chebyshev's V of degree n.",
         kSlow<ChebyshevV, 2>);
  define(ops, k_chebyshev_polynomial_w, tensor_first<function2<ChebyshevW, k_chebyshev_polynomial_w>>,
         number_first<function2<ChebyshevW, k_chebyshev_polynomial_w>>, "Chebyshev's W of degree n.",
         kSlow<ChebyshevW, 2>);
  define(ops, k_shifted_chebyshev_polynomial_t,
         tensor_first<function2<ShiftedChebyshevT, k_shifted_chebyshev_polynomial_t>>,
         number_first<function2<ShiftedChebyshevT, k_shifted_chebyshev_polynomial_t>>, "T of degree n at 2x - 1.",
         kSlow<ShiftedChebyshevT, 2>);
  define(ops, k_shifted_chebyshev_polynomial_u,
         tensor_first<function2<ShiftedChebyshevU, k_shifted_chebyshev_polynomial_u>>,
         number_first<function2<ShiftedChebyshevU, k_shifted_chebyshev_polynomial_u>>, "U of degree n at 2x - 1.",
         kSlow<ShiftedChebyshevU, 2>);
  define(ops, k_shifted_chebyshev_polynomial_v,
         tensor_first<function2<ShiftedChebyshevV, k_shifted_chebyshev_polynomial_v>>,
         number_first<function2<ShiftedChebyshevV, k_shifted_chebyshev_polynomial_v>>, "V of degree n at 2x - 1.",
         kSlow<ShiftedChebyshevV, 2>);
  define(ops, k_shifted_chebyshev_polynomial_w,
         tensor_first<function2<ShiftedChebyshevW, k_shifted_chebyshev_polynomial_w>>,
         number_first<function2<ShiftedChebyshevW, k_shifted_chebyshev_polynomial_w>>, "W of degree n at 2x - 1.",
         kSlow<ShiftedChebyshevW, 2>);
  define(ops, k_hermite_polynomial_h, tensor_first<function2<HermiteH, k_hermite_polynomial_h>>,
         number_first<function2<HermiteH, k_hermite_polynomial_h>>, "Hermite's H of degree n.", kSlow<HermiteH, 2>);
  define(ops, k_hermite_polynomial_he, tensor_first<function2<HermiteHe, k_hermite_polynomial_he>>,
         number_first<function2<HermiteHe, k_hermite_polynomial_he>>, "Hermite's He of degree n.", kSlow<HermiteHe, 2>);
  define(ops, k_laguerre_polynomial_l, tensor_first<function2<LaguerreL, k_laguerre_polynomial_l>>,
         number_first<function2<LaguerreL, k_laguerre_polynomial_l>>, "Laguerre's L of degree n.", kSlow<LaguerreL, 2>);
  define(ops, k_legendre_polynomial_p, tensor_first<function2<LegendreP, k_legendre_polynomial_p>>,
         number_first<function2<LegendreP, k_legendre_polynomial_p>>, "Legendre's P of degree n.", kSlow<LegendreP, 2>);
});

}  // namespace rl::ops
