// Eigenvalues of general matrices.
#include "cpu/linalg/column_major.h"
#include "cpu/linalg/linalg.h"

namespace rl::cpu {

void eig(const View& a, const View& values, const View* vectors, const View& info) {
  int n = rows_of(a);
  visit_lapack(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using R = lapack::real_t<T>;
    using C = std::complex<R>;
    for_batch(batch_count(a, 2), 25.0 * n * n * n, [&](int64_t i) {
      int code = 0;
      if (n) {
        ColMajor<T> x(a, i, Access::Read, true);
        Column<C> w(values, i, Access::Write);
        char job = vectors ? 'V' : 'N';
        T none;
        if constexpr (lapack::is_complex<T>) {
          Scratch<R> rwork(2 * static_cast<int64_t>(n));
          auto run = [&](T* v, int ldv) {
            auto call = [&](T* work, int size) {
              lapack::geev<T>('N', job, n, x.data(), x.ld(), w.data(), &none, 1, v, ldv, work, size, rwork.get(),
                              &code);
            };
            with_work<T>(call);
          };
          if (vectors) {
            ColMajor<C> v(*vectors, i, Access::Write);
            run(v.data(), v.ld());
          } else {
            run(&none, 1);
          }
        } else {
          Scratch<R> re(n), im(n), v(vectors ? static_cast<int64_t>(n) * n : 1);
          int ldv = vectors ? n : 1;
          auto call = [&](T* work, int size) {
            lapack::geev<T>('N', job, n, x.data(), x.ld(), re.get(), im.get(), &none, 1, v.get(), ldv, work, size,
                            &code);
          };
          with_work<T>(call);
          for (int j = 0; j < n; ++j) w.data()[j] = C(re[j], im[j]);
          if (vectors) {  // conjugate pairs share two real columns: their real and imaginary parts
            ColMajor<C> out(*vectors, i, Access::Write);
            for (int64_t j = 0; j < n; ++j) {
              bool pair = im[j] != 0 && j + 1 < n;
              for (int64_t r = 0; r < n; ++r) {
                R x0 = v[j * n + r], x1 = pair ? v[(j + 1) * n + r] : R(0);
                out.at(r, j) = C(x0, x1);
                if (pair) out.at(r, j + 1) = C(x0, -x1);
              }
              j += pair;
            }
          }
        }
      }
      item<int>(info, i) = code;
    });
  });
}

}  // namespace rl::cpu
