#include "ops/elementwise/lazy_view.h"

#include "ops/elementwise/elementwise.h"
#include "ops/ops.h"

namespace rl::ops {

static Tensor marked(const Tensor& x, bool conj, bool neg) {
  Tensor y = alias(x);
  y->conj = x->conj != conj;
  y->neg = x->neg != neg;
  g_lazy_views = g_lazy_views || y->lazy();
  return y;
}

// conj_view: y = conj(x) on x's memory        dx = conj(dy)
struct ConjViewBackward : Node {
  static constexpr const char* kName = "ConjBackward0";
  static constexpr bool kStacks = true;
  Grads backward(const Grads& dy) { return {conj(dy[0])}; }
};
Tensor conj_view(const Tensor& x) {
  if (!x.is_complex()) return x;
  return record_view<ConjViewBackward>(marked(x, true, false), x, [](auto&) {});
}

// neg_view: y = -x on x's memory        dx = -dy
struct NegViewBackward : Node {
  static constexpr const char* kName = "NegViewBackward0";
  static constexpr bool kStacks = true;
  Grads backward(const Grads& dy) { return {neg(dy[0])}; }
};
Tensor neg_view(const Tensor& x) {
  CHECK(x.dtype() != DType::Bool, Runtime,
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
        "`~` or `logical_not()` operator instead.");
  return record_view<NegViewBackward>(marked(x, false, true), x, [](auto&) {});
}

Tensor resolved(const Tensor& x) {
  if (!x->lazy()) return x;
  Tensor y;
  {
    NoGrad raw;
    y = marked(x, x->conj, x->neg);
    if (x->conj) y = conj(y);
    if (x->neg) y = neg(y);
  }
  return x->wants_grad() ? with_history(y, gradient_edge(x.get())) : y;
}

Tensor under(const Tensor& x) {
  Tensor y = x;
  if (y->conj) y = conj_view(y);
  if (y->neg) y = neg_view(y);
  return y;
}

Tensor as_under(const Tensor& x, const Tensor& values) {
  Tensor y = resolved(values);
  if (x->conj) y = conj(y);
  return x->neg ? neg(y) : y;
}

static Tensor resolve_conj(const Tensor& x) { return x->conj ? resolved(x) : x; }
static Tensor resolve_neg(const Tensor& x) { return x->neg ? resolved(x) : x; }
static bool is_conj(const Tensor& x) { return x->conj; }
static bool is_neg(const Tensor& x) { return x->neg; }
static void set_conj(const Tensor& x, bool on) {
  CHECK(!on || x.is_complex(), Runtime, "only complex tensors have a conjugate bit");
  x->conj = on;
  g_lazy_views = g_lazy_views || on;
}
static void set_neg(const Tensor& x, bool on) {
  x->neg = on;
  g_lazy_views = g_lazy_views || on;
}

static const Register registered([](Ops& ops) {
  ops.def("conj", conj_view, "input", kMethod | kView | kElementwise, R"(
    Takes the complex conjugate, without a copy; a real tensor is returned as it is.

    Returns:
        A view whose values are conjugated when they are read; resolve_conj() copies them.

    Example:
        >>> torch.conj(torch.tensor([1 + 2j]))
        tensor([1.-2.j]))");
  ops.def("_conj", conj_view, "input", kMethod | kView);
  ops.def("_neg_view", neg_view, "input", kMethod | kView, "The negative, as a view.");
  ops.def("conj_physical", conj, "input", kUnary, R"(
    Computes the complex conjugate in memory of its own; conj() is the view.

    Example:
        >>> torch.conj_physical(torch.tensor([1 + 2j, 3 - 1j]))
        tensor([1.-2.j, 3.+1.j]))");
  ops.def("resolve_conj", resolve_conj, "input", kMethod | kNoOut | kLazyOk | kElementwise, R"(
    Returns a conjugate view as a plain copy, anything else as it is.

    Example:
        >>> z = torch.tensor([1 + 2j]).conj()
        >>> z.resolve_conj().is_conj()
        False)");
  ops.def("resolve_neg", resolve_neg, "input", kMethod | kNoOut | kLazyOk | kElementwise, R"(
    Returns a negative view as a plain copy, anything else as it is.

    Example:
        >>> x = torch.tensor([1 + 2j]).conj().imag
        >>> x.resolve_neg().is_neg()
        False)");
  ops.def("is_conj", is_conj, "input", kMethod | kNoOut | kLazyOk, R"(
    Tells whether the tensor is a conjugate view, as conj() makes.

    Example:
        >>> z = torch.tensor([1 + 2j])
        >>> z.conj().is_conj(), z.conj().conj().is_conj()
        (True, False))");
  ops.def("is_neg", is_neg, "input", kMethod | kNoOut | kLazyOk, R"(
    Tells whether the tensor is a negative view, such as the imaginary part of a conjugate view.

    Example:
        >>> torch.tensor([1 + 2j]).conj().imag.is_neg()
        True)");
  ops.def("_set_conj", set_conj, "input, conj", kMethod | kNoFunction | kNoOut | kLazyOk);
  ops.def("_set_neg", set_neg, "input, neg", kMethod | kNoFunction | kNoOut | kLazyOk);
});

}  // namespace rl::ops
