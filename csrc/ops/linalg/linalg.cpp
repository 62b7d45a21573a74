#include "ops/linalg/linalg.h"

#include <algorithm>

#include "backend/backend.h"
#include "ops/elementwise/pointwise.h"
#include "ops/linalg/matmul.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {

void check_matrix(const char* name, const Tensor& a, const char* argument) {
  CHECK(a.dim() >= 2, Runtime, name, ": The input tensor ", argument, " must have at least 2 dimensions, got shape ",
        to_text(a.sizes()));
}
void check_square(const char* name, const Tensor& a, const char* argument) {
  check_matrix(name, a, argument);
  CHECK(rows(a) == cols(a), Runtime, name, ": ", argument, " must be batches of square matrices, but they are ",
        rows(a), " by ", cols(a), " matrices");
}
void check_linalg_type(const char* name, const Tensor& a) {
  CHECK(a.is_float() || a.is_complex(), Runtime, name, ": Expected a floating point or complex tensor as input. Got ",
        info(a.dtype()).legacy);
  CHECK(a.item_size() >= (a.is_complex() ? 8 : 4), Runtime, name, ": Low precision dtypes not supported. Got ",
        info(a.dtype()).legacy);
}
void check_same_type(const char* name, const Tensor& a, const Tensor& b) {
  CHECK(a.dtype() == b.dtype(), Runtime, name, ": Expected both inputs to have the same dtype, but got ",
        info(a.dtype()).legacy, " and ", info(b.dtype()).legacy, " instead");
  CHECK(a.device() == b.device(), Runtime, name, ": Expected both inputs to be on the same device, but found ",
        to_text(a.device()), " and ", to_text(b.device()), " instead.");
}

void check_info(const char* name, const Tensor& info) {
  if (!info.has_values()) return;
  const Tensor host = to_host(info);
  const int32_t* codes = host.data<int32_t>();
  for (int64_t i = 0; i < info.numel(); ++i) {
    int32_t code = codes[i];
    if (code == 0) continue;
    std::string where = info.dim() ? text("(Batch element ", i, "): ") : std::string();
    std::string_view op(name);
    auto is = [&](std::string_view part) { return op.find(part) != std::string_view::npos; };
    if (code < 0) {
      CHECK(!is("svd"), Linalg, name, ": ", where,
            "The algorithm failed to converge because the input matrix contained non-finite values.");
      fail(ErrorKind::Runtime, name, ": ", where, "Argument ", -code,
           " has illegal value. Most certainly there is a bug in the implementation.");
    }
    CHECK(!is("inv"), Linalg, name, ": ", where, "The diagonal element ", code,
          " is zero, the inversion could not be completed because the input matrix is singular.");
    CHECK(!is("solve"), Linalg, name, ": ", where, "The solver failed because the input matrix is singular.");
    CHECK(!is("cholesky"), Linalg, name, ": ", where,
          "The factorization could not be completed because the input is not positive-definite (the leading minor of "
          "order ",
          code, " is not positive-definite).");
    CHECK(!is("eig"), Linalg, name, ": ", where,
          "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
          "eigenvalues (error code: ",
          code, ").");
    CHECK(!is("svd"), Linalg, name, ": ", where,
          "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
          "singular values (error code: ",
          code, ").");
    CHECK(!is("lstsq"), Linalg, name, ": ", where,
          "The least squares solution could not be computed because the input matrix does not have full rank "
          "(error code: ",
          code, ").");
    CHECK(!is("lu_factor"), Linalg, name, ": ", where, "U[", code, ",", code,
          "] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the "
          "factorization, consider calling "
          "linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)");
    fail(ErrorKind::Linalg, name, ": ", where, "the factorization failed (error code: ", code, ")");
  }
}

Ints with(IntSpan batch, std::initializer_list<int64_t> more) {
  Ints sizes(batch);
  for (int64_t n : more) sizes.push_back(n);
  return sizes;
}

Tensor column_major(IntSpan sizes, DType dtype, Device device) {
  Ints strides = contiguous_strides(sizes);
  int64_t n = sizes.size();
  strides[n - 2] = 1;
  strides[n - 1] = std::max<int64_t>(1, sizes[n - 2]);
  return empty_strided(sizes, strides, dtype, device);
}
Tensor column_copy(const Tensor& a, IntSpan batch) {
  Tensor copy = column_major(with(batch, {rows(a), cols(a)}), a.dtype(), a.device());
  copy_into(copy, a);
  return copy;
}
Tensor lu_copy(const Tensor& a) {
  if (!backend(a.device()).linalg->by_rows(a.dtype(), rows(a), cols(a))) return column_copy(a);
  // Rows of large ones begin on cache lines, which two threads then never share, and not all in the same set of the
  // first cache.
  const int64_t line = 64 / a.item_size(), whole = (cols(a) + line - 1) / line * line;
  const bool small = rows(a) * cols(a) < 2048;
  const int64_t ld = small ? cols(a) : whole * a.item_size() % 1024 == 0 ? whole + line : whole;
  Ints strides = contiguous_strides(with(batch_of(a), {rows(a), ld}));
  Tensor copy = empty_strided(a.sizes(), strides, a.dtype(), a.device());
  copy_into(copy, a);
  return copy;
}
Tensor broadcast_batch(const Tensor& a, IntSpan batch, int64_t inner) {
  Ints sizes(batch);
  for (int64_t i = a.dim() - inner; i < a.dim(); ++i) sizes.push_back(a.sizes()[i]);
  return alias(a, sizes, broadcast_strides(a, sizes), a->offset);
}

Tensor identity(int64_t m, int64_t n, DType dtype, Device device) {
  Tensor t = zeros({m, n}, dtype);
  visit_compute(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* p = t.template data<T>();
    for (int64_t i = 0; i < std::min(m, n); ++i) p[i * n + i] = T(1);
  });
  return to_device(t, device);
}
Tensor scale_columns(const Tensor& a, const Tensor& d) { return mul(a, unsqueeze(d, -2)); }
Tensor scale_rows(const Tensor& a, const Tensor& d) { return mul(a, unsqueeze(d, -1)); }

// real_of: y = Re x        dx = dy
struct RealPartBackward : Node {
  static constexpr const char* kName = "RealBackward0";
  static constexpr bool kStacks = true;
  Grads backward(const Grads& dy) { return {as_complex(dy[0])}; }
};
Tensor real_of(const Tensor& a) {
  if (!a.is_complex()) return a;
  DType real = to_real(a.dtype());
  Ints strides(a.strides());
  for (int64_t& s : strides) s *= 2;
  Tensor y = empty(a.sizes(), real, a.device());
  copy_into(y, alias_as(a, real, a.sizes(), strides, a->offset * 2));
  return record<RealPartBackward>(y, {a});
}
Tensor as_complex(const Tensor& a) { return cast(a, to_complex(a.dtype())); }

}  // namespace rl::ops
