// QR by Householder's reflections.
#include "cpu/linalg.h"
#include "cpu/linalg_layout.h"

namespace rl::cpu {
void geqrf(const View& a, const View& tau) {
  int m = rows_of(a), n = cols_of(a);
  if (!m || !n) return;
  visit_lapack(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_batch(batch_count(a, 2), 2.0 * m * n * std::min(m, n), [&](int64_t i) {
      ColMajor<T> x(a, i, Access::ReadWrite);
      Column<T> t(tau, i, Access::Write);
      if constexpr (!lapack::is_complex<T>) {
        if (is_dense<T>(std::min(m, n))) return qr_columns(m, n, x.data(), x.ld(), t.data());
      }
      int code = 0;
      with_work<T>([&](T* work, int size) { lapack::geqrf<T>(m, n, x.data(), x.ld(), t.data(), work, size, &code); });
    });
  });
}

void orgqr(const View& a, const View& tau) {
  int m = rows_of(a), n = cols_of(a), k = static_cast<int>(tau.sizes[tau.ndim - 1]);
  if (!m || !n) return;
  visit_lapack(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_batch(batch_count(a, 2), 2.0 * m * n * n, [&](int64_t i) {
      ColMajor<T> x(a, i, Access::ReadWrite);
      Column<T> t(tau, i, Access::Read);
      if constexpr (!lapack::is_complex<T>) {
        if (is_dense<T>(k)) return expand_columns(m, n, k, x.data(), x.ld(), t.data());
      }
      int code = 0;
      with_work<T>(
          [&](T* work, int size) { lapack::orgqr<T>(m, n, k, x.data(), x.ld(), t.data(), work, size, &code); });
    });
  });
}

void ormqr(const View& a, const View& tau, const View& c, bool left, bool adjoint) {
  int m = rows_of(c), n = cols_of(c), k = static_cast<int>(tau.sizes[tau.ndim - 1]);
  if (!m || !n) return;
  visit_lapack(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_batch(batch_count(c, 2), 2.0 * m * n * k, [&](int64_t i) {
      if constexpr (!lapack::is_complex<T>) {
        if (left && is_dense<T>(std::min(k, n))) {
          ColMajor<T> x(a, i, Access::Read), y(c, i, Access::ReadWrite);
          Column<T> t(tau, i, Access::Read);
          return reflect_columns(adjoint, m, n, k, x.data(), x.ld(), t.data(), y.data(), y.ld());
        }
      }
      // The routine restores what it writes into a, but writes: work on a copy.
      ColMajor<T> x(a, i, Access::Read, true), y(c, i, Access::ReadWrite);
      Column<T> t(tau, i, Access::Read);
      int code = 0;
      char side = left ? 'L' : 'R', op = adjoint ? (lapack::is_complex<T> ? 'C' : 'T') : 'N';
      with_work<T>([&](T* work, int size) {
        lapack::ormqr<T>(side, op, m, n, k, x.data(), x.ld(), t.data(), y.data(), y.ld(), work, size, &code);
      });
    });
  });
}

}  // namespace rl::cpu
