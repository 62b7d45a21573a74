// LAPACK's routines by their common name, the type chosen by the first template argument:
// lapack::getrf<float>(m, n, a, lda, pivots, &info). Everything goes by pointer, as Fortran wants it.
#pragma once
#include <complex>
#include <cstddef>
#include <type_traits>

namespace rl::lapack {

template <class T> struct real_of {
  using type = T;
};
template <class T> struct real_of<std::complex<T>> {
  using type = T;
};
template <class T> using real_t = typename real_of<T>::type;
template <class T> inline constexpr bool is_complex = !std::is_same_v<T, real_t<T>>;

template <class A> auto by_pointer(A& a) {
  if constexpr (std::is_pointer_v<A>) return a;
  else return &a;
}

// Fortran's hidden lengths of character arguments follow the others; one too many does no harm.
template <class... A> void call(void (*routine)(), A... args) {
  reinterpret_cast<void (*)(decltype(by_pointer(args))..., size_t, size_t, size_t)>(routine)(by_pointer(args)..., 1, 1,
                                                                                             1);
}

#define RL_LAPACK_AS(name, s, d, c, z)                                                      \
  extern "C" {                                                                              \
  void scipy_##s##_();                                                                      \
  void scipy_##d##_();                                                                      \
  void scipy_##c##_();                                                                      \
  void scipy_##z##_();                                                                      \
  }                                                                                         \
  template <class T, class... A> void name(A... args) {                                     \
    if constexpr (std::is_same_v<T, float>) call(scipy_##s##_, args...);                    \
    else if constexpr (std::is_same_v<T, double>) call(scipy_##d##_, args...);              \
    else if constexpr (std::is_same_v<T, std::complex<float>>) call(scipy_##c##_, args...); \
    else call(scipy_##z##_, args...);                                                       \
  }
#define RL_LAPACK(name) RL_LAPACK_AS(name, s##name, d##name, c##name, z##name)
// clang-format off
RL_LAPACK(getrf)
RL_LAPACK(getrs)
RL_LAPACK(getri)
RL_LAPACK(potrf)
RL_LAPACK(potrs)
RL_LAPACK(potri)
RL_LAPACK(trsm)
RL_LAPACK(geqrf)
RL_LAPACK_AS(orgqr, sorgqr, dorgqr, cungqr, zungqr)
RL_LAPACK_AS(ormqr, sormqr, dormqr, cunmqr, zunmqr)
RL_LAPACK(gesdd)
RL_LAPACK(gesvd)
RL_LAPACK(gebrd)
RL_LAPACK_AS(bdsdc, sbdsdc, dbdsdc, sbdsdc, dbdsdc)
RL_LAPACK_AS(ormbr, sormbr, dormbr, cunmbr, zunmbr)
RL_LAPACK_AS(syevd, ssyevd, dsyevd, cheevd, zheevd)
RL_LAPACK_AS(sterf, ssterf, dsterf, ssterf, dsterf)
RL_LAPACK_AS(steqr, ssteqr, dsteqr, ssteqr, dsteqr)
RL_LAPACK_AS(laed2, slaed2, dlaed2, slaed2, dlaed2)
RL_LAPACK_AS(laed4, slaed4, dlaed4, slaed4, dlaed4)
RL_LAPACK_AS(lamrg, slamrg, dlamrg, slamrg, dlamrg)
RL_LAPACK(laic1)
RL_LAPACK(tzrzf)
RL_LAPACK_AS(ormrz, sormrz, dormrz, cunmrz, zunmrz)
RL_LAPACK(geev)
RL_LAPACK(gels)
RL_LAPACK(gelsy)
RL_LAPACK(gelsd)
RL_LAPACK(gelss)
RL_LAPACK(sytrf)
RL_LAPACK(sytrs)
RL_LAPACK_AS(hetrf, ssytrf, dsytrf, chetrf, zhetrf)
RL_LAPACK_AS(hetrs, ssytrs, dsytrs, chetrs, zhetrs)
// clang-format on
#undef RL_LAPACK
#undef RL_LAPACK_AS

}  // namespace rl::lapack
