// Singular values.
#include "cpu/linalg/column_major.h"
#include "cpu/linalg/linalg.h"
#include "cpu/linalg/qr_tall.h"

namespace rl::cpu {
namespace {

constexpr int64_t kTallDense = 8;  // columns of a tall matrix from which on a QR of our own is profitable

template <class T> struct Svd {
  using R = lapack::real_t<T>;
  int m, n, code = 0;
  char job;
  T *a, *u, *vh;
  int lda, ldu, ldvh;
  R* s;

  // Of a matrix with an infinity: there is none, and LAPACK would iterate without end. A NaN is an error.
  void undefined(Outlier what) {
    if (what == Outlier::NaN) return void(code = -4);
    const T nan = std::numeric_limits<R>::quiet_NaN();
    std::fill_n(s, std::min(m, n), std::real(nan));
    if (job == 'N') return;
    const int64_t width = job == 'A' ? m : std::min(m, n), height = job == 'A' ? n : std::min(m, n);
    for (int64_t j = 0; j < width; ++j) std::fill_n(u + j * ldu, m, nan);
    for (int64_t j = 0; j < n; ++j) std::fill_n(vh + j * ldvh, height, nan);
  }
  void divide_and_conquer() {
    int64_t least = std::min(m, n), most = std::max(m, n);
    int64_t real =
        job == 'N' ? 7 * least : std::max(5 * least * least + 5 * least, 2 * most * least + 2 * least * least + least);
    Scratch<R> rwork(lapack::is_complex<T> ? real : 1);
    Scratch<int> iwork(8 * least);
    with_work<T>([&](T* work, int size) {
      if constexpr (lapack::is_complex<T>)
        lapack::gesdd<T>(job, m, n, a, lda, s, u, ldu, vh, ldvh, work, size, rwork.get(), iwork.get(), &code);
      else lapack::gesdd<T>(job, m, n, a, lda, s, u, ldu, vh, ldvh, work, size, iwork.get(), &code);
    });
  }
  void qr_iteration() {
    Scratch<R> rwork(5 * static_cast<int64_t>(std::min(m, n)));
    with_work<T>([&](T* work, int size) {
      if constexpr (lapack::is_complex<T>)
        lapack::gesvd<T>(job, job, m, n, a, lda, s, u, ldu, vh, ldvh, work, size, rwork.get(), &code);
      else lapack::gesvd<T>(job, job, m, n, a, lda, s, u, ldu, vh, ldvh, work, size, &code);
    });
  }
  // Wide matrices straight to bidiagonal form, without an LQ before: signs as other libraries have them.
  void wide() {
    Scratch<T> tauq(m), taup(m);
    Scratch<R> e(m), work(3 * static_cast<int64_t>(m) * m + 4 * static_cast<int64_t>(m));
    Scratch<int> iwork(8 * static_cast<int64_t>(m));
    with_work<T>(
        [&](T* w, int size) { lapack::gebrd<T>(m, n, a, lda, s, e.get(), tauq.get(), taup.get(), w, size, &code); });
    Scratch<R> ru(static_cast<int64_t>(m) * m), rv(static_cast<int64_t>(m) * m);
    R none;
    int inone;
    lapack::bdsdc<R>('L', 'I', m, s, e.get(), ru.get(), m, rv.get(), m, &none, &inone, work.get(), iwork.get(), &code);
    if (code) return;
    int height = job == 'A' ? n : m;
    for (int64_t j = 0; j < m; ++j)
      for (int64_t i = 0; i < m; ++i) u[j * ldu + i] = T(ru[j * m + i]);
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < height; ++i)
        vh[j * ldvh + i] = i < m && j < m ? T(rv[j * m + i]) : T(i >= m && i == j ? 1 : 0);
    char adjoint = lapack::is_complex<T> ? 'C' : 'T';
    with_work<T>(
        [&](T* w, int size) { lapack::ormbr<T>('Q', 'L', 'N', m, m, n, a, lda, tauq.get(), u, ldu, w, size, &code); });
    with_work<T>([&](T* w, int size) {
      lapack::ormbr<T>('P', 'R', adjoint, height, n, m, a, lda, taup.get(), vh, ldvh, w, size, &code);
    });
  }
  // By bidiagonalization, on our own GEMM. Wide matrices are decomposed as their transposes, whose bidiagonal form
  // is transposed: then reflections of rows and columns are exchanged.
  void by_bidiagonal() {
    const bool transposed = m < n;
    const int64_t most = std::max(m, n), k = std::min(m, n), ld = padded_ld<T>(most), ldp = padded_ld<T>(k);
    Scratch<T> q(checked_mul(ld, k)), p(checked_mul(ldp, k)), tauq(k), taup(k), e(k);
    move_matrix(most, k, a, transposed ? lda : 1, transposed ? 1 : lda, q.get(), 1, ld);
    for (int64_t j = 0; j < k; ++j) {
      std::fill(q.get() + j * ld + most, q.get() + (j + 1) * ld, T(0));
      std::fill_n(p.get() + j * ldp, ldp, T(0));
    }
    bidiagonal_columns(most, k, q.get(), ld, s, e.get(), tauq.get(), taup.get(), p.get(), ldp);
    const int size = static_cast<int>(k);
    T none;
    int inone;
    Scratch<int> iwork(8 * k);
    if (job == 'N') {
      Scratch<T> work(4 * k);
      lapack::bdsdc<T>(transposed ? 'L' : 'U', 'N', size, s, e.get(), &none, 1, &none, 1, &none, &inone, work.get(),
                       iwork.get(), &code);
      return;
    }
    Scratch<T> work(3 * k * k + 4 * k), left(k * k), right(k * k);
    lapack::bdsdc<T>(transposed ? 'L' : 'U', 'I', size, s, e.get(), left.get(), size, right.get(), size, &none, &inone,
                     work.get(), iwork.get(), &code);
    if (code) return;
    // (rows, width) with a small matrix in its corner and, beyond, ones on the diagonal; reflected.
    auto reflect = [&](T* to, int64_t ldt, int64_t rows, int64_t width, const T* from, int64_t rs, int64_t cs,
                       bool columns) {
      move_matrix(k, k, from, rs, cs, to, 1, ldt);
      for (int64_t j = 0; j < width; ++j) std::fill(to + j * ldt + (j < k ? k : 0), to + j * ldt + rows, T(0));
      for (int64_t j = k; j < width; ++j) to[j * ldt + j] = T(1);
      if (columns) reflect_columns(false, rows, width, k, q.get(), ld, tauq.get(), to, ldt);
      else reflect_columns(false, k - 1, width, k - 1, p.get() + 1, ldp, taup.get(), to + 1, ldt);
    };
    const int64_t width = job == 'A' ? m : k, height = job == 'A' ? n : k;
    reflect(u, ldu, m, width, left.get(), 1, k, !transposed);
    Scratch<T> v(checked_mul(n, height));
    reflect(v.get(), n, n, height, right.get(), k, 1, transposed);
    move_matrix(height, n, v.get(), n, 1, vh, 1, ldvh);
  }
  // Tall matrices by their QR first: A = Q R, R = U' S V^H, U = Q U'.
  void tall() {
    Scratch<T> tau(n), r(static_cast<int64_t>(n) * n), small(job == 'N' ? 1 : static_cast<int64_t>(n) * n);
    if constexpr (!lapack::is_complex<T>) {
      if (is_dense<T>(n, kTallDense)) {
        qr_columns(m, n, n, a, lda, tau.get());
        solve_triangular(a, lda, r.get(), small.get());
        if (job == 'N' || code) return;
        expand_left(small.get());
        return reflect_columns(false, m, job == 'A' ? m : n, n, a, lda, tau.get(), u, ldu);
      }
    }
    with_work<T>([&](T* w, int size) { lapack::geqrf<T>(m, n, a, lda, tau.get(), w, size, &code); });
    solve_triangular(a, lda, r.get(), small.get());
    expand_left(small.get());
    int width = job == 'A' ? m : n;
    with_work<T>(
        [&](T* w, int size) { lapack::ormqr<T>('L', 'N', m, width, n, a, lda, tau.get(), u, ldu, w, size, &code); });
  }
  // Whether A, of any strides, is tall enough for its own algorithm, and its values allow it.
  bool by_tall_qr(const T* from, int64_t rs, int64_t cs) {
    if constexpr (lapack::is_complex<T>) return false;
    else {
      if (job == 'A' || !TallQr<T>::fits(m, n)) return false;
      TallQr<T> qr(m, n, from, rs, cs);
      job == 'N' ? qr.reflect() : qr.decompose();
      if (!moderate(n, n, qr.r_factor(), qr.ld())) return false;
      Scratch<T> r(static_cast<int64_t>(n) * n), small(job == 'N' ? 1 : static_cast<int64_t>(n) * n);
      solve_triangular(qr.r_factor(), qr.ld(), r.get(), small.get());
      if (job == 'S' && code == 0) qr.expand(small.get(), n, n, u, ldu);
      return true;
    }
  }
  // s, vh and the small u of a triangular factor, which becomes r.
  void solve_triangular(const T* from, int64_t ld, T* r, T* small) {
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < n; ++i) r[j * n + i] = i <= j ? from[j * ld + i] : T(0);
    Svd<T> inner{n, n, 0, job == 'N' ? 'N' : 'S', r, small, vh, n, n, ldvh, s};
    inner.by_shape();
    code = inner.code;
  }
  void expand_left(const T* small) const {
    int64_t width = job == 'A' ? m : n;
    for (int64_t j = 0; j < width; ++j)
      for (int64_t i = 0; i < m; ++i) u[j * ldu + i] = i < n && j < n ? small[j * n + i] : T(i == j ? 1 : 0);
  }
  void by_shape() {
    int64_t least = std::min(m, n), most = std::max(m, n), threshold = least * 11 / 6;
    if constexpr (!lapack::is_complex<T>) {
      if (is_dense<T>(least) && (m >= n || most < 16 * least) && moderate(m, n, a, lda))
        return 2 * int64_t{m} >= 3 * int64_t{n} ? tall() : by_bidiagonal();
      if (is_dense<T>(n, kTallDense) && m >= 4 * n && moderate(m, n, a, lda)) return tall();
    }
    if (job == 'N' || lapack::is_complex<T>) divide_and_conquer();
    else if (n > m && most >= threshold && most < 16 * least && moderate(m, n, a, lda)) wide();
    else if (m > n && 2 * most >= 3 * least && most < threshold && moderate(m, n, a, lda)) tall();
    else divide_and_conquer();
  }
};

}  // namespace

void svd(const View& a, const View* u, const View& s, const View* vh, const View& info, SvdDriver driver) {
  int m = rows_of(a), n = cols_of(a), least = std::min(m, n);
  if (!least) {  // full bases of an empty matrix are identities
    visit_lapack(a.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      int64_t count = batch_count(a, 2);
      for (int64_t i = 0; i < count; ++i) item<int>(info, i) = 0;
      for (const View* v : {u, vh}) {
        if (!v) continue;
        for (int64_t i = 0; i < count; ++i) {
          ColMajor<T> x(*v, i, Access::Write);
          for (int64_t c = 0; c < cols_of(*v); ++c)
            for (int64_t r = 0; r < rows_of(*v); ++r) x.at(r, c) = T(r == c);
        }
      }
    });
    return;
  }
  bool full = u && (cols_of(*u) > least || rows_of(*vh) > least);
  visit_lapack(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using R = lapack::real_t<T>;
    for_batch(batch_count(a, 2), (u ? 20.0 : 4.0) * m * n * least, [&](int64_t i) {
      Column<R> values(s, i, Access::Write);
      Svd<T> job{m, n, 0, u ? (full ? 'A' : 'S') : 'N', nullptr, nullptr, nullptr, 1, 1, 1, values.data()};
      auto solve = [&] {
        if (const Outlier what = outlier<T>(a, i); what != Outlier::None) return job.undefined(what);
        if (driver != SvdDriver::QrIteration &&
            job.by_tall_qr(a.as<T>() + batch_offset(a, i, 2), a.strides[a.ndim - 2], a.strides[a.ndim - 1]))
          return;
        ColMajor<T> x(a, i, Access::Read, true);
        job.a = x.data(), job.lda = x.ld();
        if (driver == SvdDriver::QrIteration) job.qr_iteration();
        else job.by_shape();
      };
      if (u) {
        ColMajor<T> left(*u, i, Access::Write), right(*vh, i, Access::Write);
        job.u = left.data(), job.ldu = left.ld(), job.vh = right.data(), job.ldvh = right.ld();
        solve();
      } else {
        T none;
        job.u = job.vh = &none;
        solve();
      }
      item<int>(info, i) = job.code;
    });
  });
}

}  // namespace rl::cpu
