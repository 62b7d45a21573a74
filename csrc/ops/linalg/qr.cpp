// QR decompositions and products of Householder's reflections.
#include <algorithm>

#include "backend/backend.h"
#include "ops/elementwise/pointwise.h"
#include "ops/linalg/linalg.h"
#include "ops/linalg/matmul.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {

// qr: A = Q R with Q^H Q = I and a real diagonal of R. With K = Q^H dQ and G = dR R^H (m >= n):
//   C = tril(K - K^H + G^H, -1) + triu(G, 1) + diag(Re G + i Im K)
//   dA = (dQ + Q (C - K)) R^-H
// Wide matrices A = (A1 A2), R = (R1 R2): dA2 = Q dR2, and dQ gains A2 dR2^H in the formula for A1.
struct QrBackward : Node {
  static constexpr const char* kName = "LinalgQrBackward0";
  static constexpr bool kUndefinedOk = true;
  static constexpr bool kStacks = true;
  Saved self, Q, R;
  int64_t mode = 0;  // 0 reduced, 1 complete, 2 r
  Grads backward(const Grads& dy) {
    CHECK(mode != 2, Runtime,
          "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, "
          "mode='reduced') if you "
          "are going to use backward.");
    Tensor q = Q.unpack(*this), r = R.unpack(*this);
    int64_t m = rows(q), n = cols(r), k = std::min(m, n);
    CHECK(mode != 1 || m <= n, Runtime,
          "The QR decomposition is not differentiable when mode='complete' and nrows > ncols");
    int64_t given = dy[0].defined() ? 0 : 1;
    if (!dy[given].defined()) return {Tensor()};
    Tensor dq = dy[0].defined() ? dy[0] : zeros(led(dy[given], q.sizes(), given), q.dtype(), q.device());
    Tensor dr = dy[1].defined() ? dy[1] : zeros(led(dy[given], r.sizes(), given), r.dtype(), r.device());
    Tensor r1 = r, dr1 = dr, wide;
    if (n > k) {
      Tensor a2 = narrow(self.unpack(*this), -1, k, n - k), dr2 = narrow(dr, -1, k, n - k);
      wide = matmul(q, dr2);
      dq = add(dq, matmul(a2, mH(dr2)));
      r1 = narrow(r, -1, 0, k);
      dr1 = narrow(dr, -1, 0, k);
    }
    Tensor kk = matmul(mH(q), dq), g = matmul(triu(dr1), mH(r1));
    Tensor on_diagonal = diagonal_of(g);
    if (q.is_complex()) {
      Tensor phase = diagonal_of(kk);
      on_diagonal = add(as_complex(real_of(diagonal_of(g))), sub(phase, as_complex(real_of(phase))));
    }
    Tensor c = add(add(tril(add(sub(kk, mH(kk)), mH(g)), -1), triu(g, 1)), diag_embed(on_diagonal));
    Tensor da = solve_triangular(mH(r1), add(dq, matmul(q, sub(c, kk))), false, false, false);
    return {n > k ? cat({da, wide}, -1) : da};
  }
  FIELDS(self, Q, R, mode)
};
// Any shape, as LAPACK does it.
static void by_reflections(const Tensor& a, const std::string& mode, Tensor& q, Tensor& r) {
  int64_t m = rows(a), n = cols(a), k = std::min(m, n), width = mode == "complete" ? m : k;
  Device device = a.device();
  Tensor packed = column_copy(a), tau = zeros(with(batch_of(a), {k}), a.dtype(), device);
  backend(packed.device()).linalg->geqrf(packed.view(), tau.view());
  if (mode == "complete" && m > n) {
    r = zeros(with(batch_of(a), {m, n}), a.dtype(), device);
    copy_into(narrow(r, -2, 0, k), triu(narrow(packed, -2, 0, k)));
  } else {
    r = triu(narrow(packed, -2, 0, k));
  }
  if (mode != "r" && width == n) {  // the reflections become what they stand for
    q = packed;
    if (q.numel()) backend(q.device()).linalg->orgqr(q.view(), tau.view());
  } else if (mode != "r") {
    q = column_major(with(batch_of(a), {m, width}), a.dtype(), device);
    if (q.numel()) {
      fill_raw(q, Scalar(0));
      copy_into(narrow(q, -1, 0, k), narrow(packed, -1, 0, k));
      backend(q.device()).linalg->orgqr(q.view(), tau.view());
    }
  }
}
static std::tuple<Tensor, Tensor> qr_of(const char* name, const Tensor& a, const std::string& mode) {
  check_matrix(name, a);
  check_linalg_type(name, a);
  CHECK(mode == "reduced" || mode == "complete" || mode == "r", Runtime, "qr received unrecognized mode '", mode,
        "' but expected one of 'reduced' (default), 'r', or 'complete'");
  int64_t m = rows(a), n = cols(a);
  Device device = a.device();
  Tensor q = empty({0}, a.dtype(), device), r;
  {
    NoGrad raw;
    if (mode != "complete" && a.numel() && backend(device).linalg->is_tall(a.dtype(), m, n)) {
      r = empty(with(batch_of(a), {n, n}), a.dtype(), device);
      if (mode != "r") q = column_major(with(batch_of(a), {m, n}), a.dtype(), device);
      const View columns = q.view();
      backend(a.device()).linalg->qr_tall(a.view(), mode == "r" ? nullptr : &columns, r.view());
    } else {
      by_reflections(a, mode, q, r);
    }
  }
  Tensor results[] = {q, r};
  record_all<QrBackward>({results, 2}, {a}, [&](auto& node) {
    node.mode = mode == "reduced" ? 0 : mode == "complete" ? 1 : 2;
    if (n > m) node.self = save(a);
    node.Q = save_output(node, q, 0);
    node.R = save_output(node, r, 1);
  });
  return {q, r};
}
static std::tuple<Tensor, Tensor> linalg_qr(const Tensor& a, const std::string& mode) {
  return qr_of("linalg.qr", a, mode);
}
static std::tuple<Tensor, Tensor> qr(const Tensor& a, bool some) {
  return qr_of("torch.qr", a, some ? "reduced" : "complete");
}

static std::tuple<Tensor, Tensor> geqrf(const Tensor& a) {
  check_matrix("torch.geqrf", a, "input");
  check_linalg_type("torch.geqrf", a);
  Tensor packed = column_copy(a), tau = empty(with(batch_of(a), {std::min(rows(a), cols(a))}), a.dtype(), a.device());
  backend(packed.device()).linalg->geqrf(packed.view(), tau.view());
  return {record_not_differentiable("geqrf", packed, {a}), record_not_differentiable("geqrf", tau, {a})};
}

// The product of reflections H_i = I - tau_i v_i v_i^H, applied to x from the left, last first (or, adjoint, first
// first). Composed of ops: this is how the products below are differentiated.
static Tensor reflect(const Tensor& a, const Tensor& tau, Tensor x, bool adjoint) {
  int64_t m = rows(a), k = tau.sizes()[tau.dim() - 1];
  Tensor unit = identity(m, cols(a), a.dtype(), a.device()), vectors = add(tril(a, -1), unit);
  for (int64_t step = 0; step < k; ++step) {
    int64_t i = adjoint ? step : k - 1 - step;
    Tensor v = narrow(vectors, -1, i, 1), t = unsqueeze(narrow(tau, -1, i, 1), -1);
    if (adjoint) t = conj(t);
    x = sub(x, matmul(mul(v, t), matmul(mH(v), x)));
  }
  return x;
}
static Tensor householder_product(const Tensor& a, const Tensor& tau) {
  const char* name = "torch.linalg.householder_product";
  check_matrix(name, a, "input");
  check_linalg_type(name, a);
  CHECK(rows(a) >= cols(a), Runtime, name, ": input.shape[-2] must be greater than or equal to input.shape[-1]");
  CHECK(tau.dim() >= 1 && cols(a) >= tau.sizes()[tau.dim() - 1], Runtime, name,
        ": input.shape[-1] must be greater than or equal to tau.shape[-1]");
  CHECK(a.dim() - tau.dim() == 1 && batch_of(tau, 1) == batch_of(a), Runtime, name,
        ": Expected tau to have one dimension less than input and the same batch, got ", to_text(a.sizes()), " and ",
        to_text(tau.sizes()));
  check_same_type(name, a, tau);
  if (will_record({a, tau})) {
    // The unit columns of a's own batch; with no reflections they are the result, and still depend on a by name.
    Tensor columns = add(triu(a, cols(a)), identity(rows(a), cols(a), a.dtype(), a.device()));
    return reflect(a, tau, columns, false);
  }
  Tensor q = column_copy(a);
  if (q.numel()) backend(q.device()).linalg->orgqr(q.view(), tau.view());
  return q;
}
static Tensor ormqr(const Tensor& a, const Tensor& tau, const Tensor& c, bool left, bool adjoint) {
  const char* name = "torch.ormqr";
  check_matrix(name, a, "input");
  check_matrix(name, c, "other");
  check_linalg_type(name, a);
  int64_t k = tau.dim() ? tau.sizes()[tau.dim() - 1] : 0;
  CHECK((left ? rows(c) : cols(c)) >= k, Runtime, name, ": other.shape[", left ? -2 : -1,
        "] must be greater than or equal to tau.shape[-1]");
  CHECK((left ? rows(c) : cols(c)) == rows(a), Runtime, name, ": other.shape[", left ? -2 : -1,
        "] must be equal to input.shape[-2]");
  CHECK(cols(a) >= k, Runtime, name, ": tau.shape[-1] must be less than or equal to input.shape[-1]");
  CHECK(a.dim() - tau.dim() == 1 && a.dim() == c.dim() && batch_of(a) == batch_of(c) && batch_of(tau, 1) == batch_of(a),
        Runtime, name, ": batch dimensions of input, tau and other must agree, got ", to_text(a.sizes()), ", ",
        to_text(tau.sizes()), " and ", to_text(c.sizes()));
  check_same_type(name, a, tau);
  check_same_type(name, a, c);
  if (will_record({a, tau, c})) {
    if (left) return reflect(a, tau, c, adjoint);
    return mH(reflect(a, tau, mH(c), !adjoint));
  }
  Tensor y = column_copy(c);
  if (y.numel()) backend(a.device()).linalg->ormqr(a.view(), tau.view(), y.view(), left, adjoint);
  return y;
}

static const Register registered([](Ops& ops) {
  ops.def("linalg.qr", linalg_qr, "A, mode='reduced'", kCastFull | kExactOut | kFreeOut, R"(
    Factors matrices: A = Q R, the columns of Q orthonormal and R upper triangular.

    Args:
        mode: 'reduced': Q has as many columns as R has rows; 'complete': Q is square; 'r': R alone.

    Returns:
        A named tuple with the fields Q and R; Q is empty for mode 'r'.

    Gradient:
        For mode 'reduced', or square matrices, whose first columns are independent.

    Example:
        >>> Q, R = torch.linalg.qr(torch.tensor([[3.0, 1.0], [4.0, 2.0]]))
        >>> Q, R
        (tensor([[-0.6000, -0.8000],
                [-0.8000,  0.6000]]), tensor([[-5.0000, -2.2000],
                [ 0.0000,  0.4000]])))",
          "Q, R");
  ops.def("qr", qr, "input, some=True", kMethod | kCastFull, R"(
    Factors matrices: A = Q R; the old name of torch.linalg.qr().

    Args:
        input: a matrix, or a batch of matrices.
        some: whether Q has as many columns as R has rows, instead of being square.

    Returns:
        A named tuple with the fields Q and R.

    Example:
        >>> Q, R = torch.linalg.qr(torch.tensor([[3.0, 1.0], [4.0, 2.0]]))
        >>> R
        tensor([[-5.0000, -2.2000],
                [ 0.0000,  0.4000]]))",
          "Q, R");
  ops.def("geqrf", geqrf, "input", kMethod | kCastFull, R"(
    Factors matrices A = Q R in packed form: R above, the reflections that make up Q below the diagonal.

    Args:
        input: a matrix, or a batch of matrices.

    Returns:
        A named tuple: a, the packed matrix, and tau, the factors of the reflections.

    Gradient:
        Not differentiable; torch.linalg.qr() is.

    Example:
        >>> a, tau = torch.geqrf(torch.tensor([[3.0, 1.0], [4.0, 2.0]]))
        >>> torch.linalg.householder_product(a, tau)
        tensor([[-0.6000, -0.8000],
                [-0.8000,  0.6000]]))",
          "a, tau");
  ops.def("linalg.householder_product", householder_product, "input, tau", kCastFull, R"(
    Multiplies Householder reflections, and returns the first columns of the product.

    Args:
        input: the vectors of the reflections below the diagonal, as geqrf() packs them.
        tau: their factors.

    Example:
        >>> a, tau = torch.geqrf(torch.tensor([[3.0, 1.0], [4.0, 2.0]]))
        >>> torch.linalg.householder_product(a, tau)
        tensor([[-0.6000, -0.8000],
                [-0.8000,  0.6000]]))");
  ops.def("orgqr", householder_product, "input, input2", kMethod | kCastFull, R"(
    Multiplies Householder reflections; see torch.linalg.householder_product().

    Args:
        input: the vectors of the reflections below the diagonal, as geqrf() packs them.
        input2: their factors.

    Example:
        >>> torch.orgqr(*torch.geqrf(torch.tensor([[3.0, 1.0], [4.0, 2.0]])))
        tensor([[-0.6000, -0.8000],
                [-0.8000,  0.6000]]))");
  ops.def("ormqr", ormqr, "input, tau, other, left=True, transpose=False", kMethod | kCastFull, R"(
    Multiplies a matrix with the Q of packed reflections, without making Q.

    Args:
        input: the vectors of the reflections below the diagonal, as geqrf() packs them.
        tau: their factors.
        other: the matrix.
        left: whether Q stands on the left, instead of on the right.
        transpose: whether Q^H is meant.

    Example:
        >>> a, tau = torch.geqrf(torch.tensor([[3.0, 1.0], [4.0, 2.0]]))
        >>> torch.ormqr(a, tau, torch.tensor([[5.0], [0.0]]), transpose=True)
        tensor([[-3.],
                [-4.]]))");
});

}  // namespace rl::ops
