#include "backend/backend.h"
#include "ops/elementwise/elementwise.h"
#include "ops/nn/rnn.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {

// The parts of (N, k H) along its second dimension.
static Tensor part(const Tensor& x, int64_t k, int64_t hidden) { return narrow(x, 1, k * hidden, hidden); }
static Tensor sigmoid_derivative(const Tensor& s) { return mul(s, sub(Scalar(1), s)); }  // of sigmoid, from its value
static Tensor tanh_derivative(const Tensor& t) { return sub(Scalar(1), mul(t, t)); }

// lstm_step: i, f, u, o = parts of the gates; c = sigmoid(f) c0 + sigmoid(i) tanh(u), h = sigmoid(o) tanh(c)
struct LstmStepBackward : Node {
  static constexpr const char* kName = "ThnnFusedLstmCellBackward0";
  static constexpr bool kStacks = true;
  Saved gates, cx, cy, workspace;
  Grads backward(const Grads& dy) {
    Tensor c0 = cx.unpack(*this);
    int64_t rows = c0.sizes()[0], hidden = c0.sizes()[1];
    if (grad_enabled() || lead(dy[0])) {
      Tensor g = gates.unpack(*this);
      Tensor i = sigmoid(part(g, 0, hidden)), f = sigmoid(part(g, 1, hidden)), u = tanh(part(g, 2, hidden)),
             o = sigmoid(part(g, 3, hidden));
      Tensor t = tanh(add(mul(f, c0), mul(i, u)));
      Tensor v = add(dy[1], mul(mul(dy[0], o), tanh_derivative(t)));
      Tensor pieces[] = {mul(mul(v, u), sigmoid_derivative(i)), mul(mul(v, c0), sigmoid_derivative(f)),
                         mul(mul(v, i), tanh_derivative(u)), mul(mul(dy[0], t), sigmoid_derivative(o))};
      return {cat(Span<Tensor>(pieces, 4), -1), mul(v, f)};
    }
    Tensor dgates = empty(Ints{rows, 4 * hidden}, c0.dtype(), c0.device()),
           dc0 = empty(Ints{rows, hidden}, c0.dtype(), c0.device());
    Tensor dh = contiguous(dy[0]), dc = contiguous(dy[1]), before = contiguous(c0);
    if (c0.numel())
      backend(dgates.device())
          .rnn->lstm_grad(rows, hidden, dgates.view(), dc0.view(), dh.view(), dc.view(), workspace.unpack(*this).view(),
                          cy.unpack(*this).view(), before.view());
    return {dgates, dc0};
  }
  FIELDS(gates, cx, cy, workspace)
};
std::tuple<Tensor, Tensor> lstm_step(const Tensor& gates, const Tensor& c0) {
  CHECK(gates.dim() == 2 && c0.dim() == 2 && gates.sizes()[0] == c0.sizes()[0] &&
            gates.sizes()[1] == checked_mul(4, c0.sizes()[1]) && gates.dtype() == c0.dtype() && is_float(c0.dtype()),
        Runtime, "lstm_step: expected gates (N, 4 H) and a state (N, H) of one float type, got ",
        to_text(gates.sizes()), " and ", to_text(c0.sizes()));
  int64_t rows = c0.sizes()[0], hidden = c0.sizes()[1];
  Tensor h = empty(c0.sizes(), c0.dtype(), c0.device()), c = empty(c0.sizes(), c0.dtype(), c0.device()),
         active = empty(gates.sizes(), c0.dtype(), c0.device());
  if (c0.numel()) {
    NoGrad raw;
    Tensor g = contiguous(gates), before = contiguous(c0);
    backend(h.device()).rnn->lstm(rows, hidden, h.view(), c.view(), active.view(), g.view(), before.view());
  }
  Tensor results[] = {h, c};
  record_all<LstmStepBackward>(Span<Tensor>(results, 2), {gates, c0}, [&](auto& n) {
    n.gates = save(gates);
    n.cx = save(c0);
    n.cy = save_output(n, c, 1);
    n.workspace = save(active);
  });
  return {h, c};
}

// gru_step: r = sigmoid(xr + yr), z = sigmoid(xz + yz), n = tanh(xn + r yn), h = n + z (h0 - n)
struct GruStepBackward : Node {
  static constexpr const char* kName = "ThnnFusedGruCellBackward0";
  static constexpr bool kStacks = true;
  Saved input_gates, hidden_gates, hx, workspace;
  Grads backward(const Grads& dy) {
    Tensor h0 = hx.unpack(*this), y = hidden_gates.unpack(*this);
    int64_t rows = h0.sizes()[0], hidden = h0.sizes()[1];
    if (grad_enabled() || lead(dy[0])) {
      Tensor x = input_gates.unpack(*this), yn = part(y, 2, hidden);
      Tensor r = sigmoid(add(part(x, 0, hidden), part(y, 0, hidden))),
             z = sigmoid(add(part(x, 1, hidden), part(y, 1, hidden)));
      Tensor n = tanh(add(part(x, 2, hidden), mul(r, yn)));
      Tensor dn = mul(mul(dy[0], sub(Scalar(1), z)), tanh_derivative(n)), dr = mul(mul(dn, yn), sigmoid_derivative(r)),
             dz = mul(mul(dy[0], sub(h0, n)), sigmoid_derivative(z));
      Tensor of_x[] = {dr, dz, dn}, of_y[] = {dr, dz, mul(dn, r)};
      return {cat(Span<Tensor>(of_x, 3), -1), cat(Span<Tensor>(of_y, 3), -1), mul(dy[0], z)};
    }
    Tensor dx = empty(Ints{rows, 3 * hidden}, h0.dtype(), h0.device()), dg = empty(dx.sizes(), h0.dtype(), h0.device());
    Tensor dh0 = empty(h0.sizes(), h0.dtype(), h0.device()), dh = contiguous(dy[0]), yc = contiguous(y),
           before = contiguous(h0);
    if (h0.numel())
      backend(dx.device())
          .rnn->gru_grad(rows, hidden, dx.view(), dg.view(), dh0.view(), dh.view(), workspace.unpack(*this).view(),
                         yc.view(), before.view());
    return {dx, dg, dh0};
  }
  FIELDS(input_gates, hidden_gates, hx, workspace)
};
Tensor gru_step(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& h0) {
  CHECK(input_gates.dim() == 2 && h0.dim() == 2 && input_gates.sizes() == hidden_gates.sizes() &&
            input_gates.sizes()[0] == h0.sizes()[0] && input_gates.sizes()[1] == checked_mul(3, h0.sizes()[1]) &&
            input_gates.dtype() == h0.dtype() && hidden_gates.dtype() == h0.dtype() && is_float(h0.dtype()),
        Runtime, "gru_step: expected gates (N, 3 H), (N, 3 H) and a state (N, H) of one float type, got ",
        to_text(input_gates.sizes()), ", ", to_text(hidden_gates.sizes()), " and ", to_text(h0.sizes()));
  Tensor h = empty(h0.sizes(), h0.dtype(), h0.device()), active = empty(input_gates.sizes(), h0.dtype(), h0.device());
  if (h0.numel()) {
    NoGrad raw;
    Tensor x = contiguous(input_gates), y = contiguous(hidden_gates), before = contiguous(h0);
    backend(h.device())
        .rnn->gru(h0.sizes()[0], h0.sizes()[1], h.view(), active.view(), x.view(), y.view(), before.view());
  }
  return record<GruStepBackward>(h, {input_gates, hidden_gates, h0}, [&](auto& n) {
    n.input_gates = save(input_gates);
    n.hidden_gates = save(hidden_gates);
    n.hx = save(h0);
    n.workspace = save(active);
  });
}

static const Register registered([](Ops& ops) {
  ops.def("_nn.lstm_step", lstm_step, "gates, cx", kNoOut,
          "(h, c) of a long short-term memory from the sums of its gates (N, 4 H).");
  ops.def("_nn.gru_step", gru_step, "input_gates, hidden_gates, hx", kNoOut,
          "h of a gated recurrent unit from its two halves (N, 3 H).");
});

}  // namespace rl::ops
