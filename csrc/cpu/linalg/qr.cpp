// QR by Householder's reflections.
#include "cpu/linalg/column_major.h"
#include "cpu/linalg/linalg.h"
#include "cpu/linalg/qr_tall.h"
#include "cpu/linalg/tiny.h"

namespace rl::cpu {
namespace {

constexpr int kReflected = 1;  // reflections are profitable for all that is not tiny

// A small matrix (m, n) of a batch and its taus.
template <class T> struct TinyQr {
  T *a, *tau;
  int64_t rs, cs, step;
  TinyQr(const View& matrices, const View& taus, int64_t i)
      : a(matrices.as<T>() + batch_offset(matrices, i, 2)),
        tau(taus.as<T>() + batch_offset(taus, i, 1)),
        rs(matrices.strides[matrices.ndim - 2]),
        cs(matrices.strides[matrices.ndim - 1]),
        step(taus.strides[taus.ndim - 1]) {}
  void get(TinyColumns<T>& x, int m, int n) const {
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < m; ++i) x.at[j][i] = a[i * rs + j * cs];
  }
  void put(const TinyColumns<T>& x, int m, int n) const {
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < m; ++i) a[i * rs + j * cs] = x.at[j][i];
  }
  bool factor(int m, int n) const {
    TinyColumns<T> x;
    get(x, m, n);
    if (!x.factor(m, n)) return false;
    put(x, m, n);
    for (int j = 0; j < std::min(m, n); ++j) tau[j * step] = x.tau[j];
    return true;
  }
  void expand(int m, int n, int k) const {
    TinyColumns<T> x;
    get(x, m, n);
    for (int j = 0; j < k; ++j) x.tau[j] = tau[j * step];
    x.expand(m, n, k);
    put(x, m, n);
  }
};

}  // namespace
bool is_tall(DType dtype, int64_t m, int64_t n) {
  if (dtype == DType::Float32) return TallQr<float>::fits(m, n);
  return dtype == DType::Float64 && TallQr<double>::fits(m, n);
}
void qr_tall(const View& a, const View* q, const View& r) {
  const int64_t m = rows_of(a), n = cols_of(a);
  visit_lapack(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!lapack::is_complex<T>)
      for_batch(batch_count(a, 2), 4.0 * m * n * n, [&](int64_t i) {
        TallQr<T> tall(m, n, a.as<T>() + batch_offset(a, i, 2), a.strides[a.ndim - 2], a.strides[a.ndim - 1]);
        tall.decompose();
        ColMajor<T> r_factor(r, i, Access::Write);
        for (int64_t j = 0; j < n; ++j)
          for (int64_t p = 0; p < n; ++p) r_factor.at(p, j) = p <= j ? tall.r_factor()[j * tall.ld() + p] : T(0);
        if (!q) return;
        ColMajor<T> y(*q, i, Access::Write);
        Scratch<T> unit(checked_mul(n, n));
        std::fill_n(unit.get(), n * n, T(0));
        for (int64_t j = 0; j < n; ++j) unit[j * (n + 1)] = T(1);
        tall.expand(unit.get(), n, n, y.data(), y.ld());
      });
  });
}

void geqrf(const View& a, const View& tau) {
  int m = rows_of(a), n = cols_of(a);
  if (!m || !n) return;
  visit_lapack(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_batch(batch_count(a, 2), 2.0 * m * n * std::min(m, n), [&](int64_t i) {
      if constexpr (!lapack::is_complex<T>)
        if (std::max(m, n) <= kTiny && TinyQr<T>(a, tau, i).factor(m, n)) return;
      ColMajor<T> x(a, i, Access::ReadWrite);
      Column<T> t(tau, i, Access::Write);
      if constexpr (!lapack::is_complex<T>) {
        if (is_dense<T>(std::min(m, n), kReflected))
          return qr_columns(m, n, std::min(m, n), x.data(), x.ld(), t.data());
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
      if constexpr (!lapack::is_complex<T>)
        if (m <= kTiny) return TinyQr<T>(a, tau, i).expand(m, n, k);
      ColMajor<T> x(a, i, Access::ReadWrite);
      Column<T> t(tau, i, Access::Read);
      if constexpr (!lapack::is_complex<T>) {
        if (is_dense<T>(k, kReflected)) return expand_columns(m, n, k, x.data(), x.ld(), t.data());
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
      if constexpr (!lapack::is_complex<T>)
        if (is_dense<T>(k, kReflected)) {  // C Q is (Q^T C^T)^T
          const Transposed other(c);
          ColMajor<T> x(a, i, Access::Read), y(left ? c : other.view, i, Access::ReadWrite);
          Column<T> t(tau, i, Access::Read);
          return reflect_columns(adjoint == left, left ? m : n, left ? n : m, k, x.data(), x.ld(), t.data(), y.data(),
                                 y.ld());
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
