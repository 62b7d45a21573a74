// The gamma family, Bessel functions that oscillate, and orthogonal polynomials: computed in double for all types. They
// gain as an RL_OVERLAY, but for the Bessel functions: these are long, and few programs call them.
#include "cpu/elementwise/bessel_oscillating.h"
#include "cpu/elementwise/reduced_range.h"
#include "cpu/elementwise/special_gamma.h"
#include "cpu/elementwise/special_incomplete.h"
#include "cpu/elementwise/special_polynomials.h"
#include "cpu/isa.h"

namespace rl::RL_ISA {
namespace {

// A function of doubles for elements of any type. Large enough for the compiler to leave it a call in a loop that
// should be vectors.
template <double (*F)(double)> inline constexpr auto kOf = [](auto x) __attribute__((always_inline)) {
  return static_cast<decltype(x)>(F(static_cast<double>(x)));
};

// Loops of two operands that go over blocks by themselves.
template <FlatLoop kFlat, class T>
void block_loop2(char* const* data, const int64_t* strides, int64_t n, const LoopParams& params) {
  static constexpr uint8_t kSizes[] = {sizeof(T), sizeof(T), sizeof(T)};
  if (n < 1) return;
  const bool flat = strides[0] == sizeof(T) && strides[1] == sizeof(T) && strides[2] == sizeof(T);
  if (n == 1 || flat) return kFlat(data, n, params);
  run_blocks(kFlat, kSizes, 3, data, strides, n, params);
}
// Run is a struct with run<T>(data, n).
template <class Run, class T> [[gnu::flatten]] void run_flat(char* const* data, int64_t n, const LoopParams&) {
  Run::template run<T>(data, n);
}
template <class Run> void blocks2(LoopTable& t, Pointwise op) {
  put_doubles<&block_loop2<&run_flat<Run, double>, double>, 2>(t, op);
}
template <bool kComplement> struct Incomplete {
  template <class T> RL_INLINE static void run(char* const* data, int64_t n) {
    special::igamma_run<T, kComplement>(data, n);
  }
};
template <class P> struct Polynomial {
  template <class T> RL_INLINE static void run(char* const* data, int64_t n) { special::polynomial_run<P, T>(data, n); }
};

// zeta(x, q) in blocks, what is not moderate once more. `one`: x is the same for all.
template <class T> RL_INLINE void zeta_run(const T* x, bool one, const T* q, T* out, int64_t n, double factor) {
  constexpr int64_t kBlock = 64;
  T xs[kBlock], qs[kBlock];
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t count = n - first < kBlock ? n - first : kBlock;
    T* y = out + first;
    for (int64_t i = 0; i < count; ++i) {
      xs[i] = one ? *x : x[first + i];
      qs[i] = q[first + i];
    }
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) {
      y[i] = static_cast<T>(factor * special::zeta_small<T>(static_cast<double>(xs[i]), static_cast<double>(qs[i])));
    }
    for (int64_t i = 0; i < count; ++i) {
      if (special::zeta_good(xs[i], qs[i], y[i])) continue;
      y[i] = static_cast<T>(factor * special::zeta(static_cast<double>(xs[i]), static_cast<double>(qs[i])));
    }
  }
}
struct HurwitzZeta {
  template <class T> RL_INLINE static void run(char* const* data, int64_t n) {
    zeta_run(reinterpret_cast<const T*>(data[1]), false, reinterpret_cast<const T*>(data[2]),
             reinterpret_cast<T*>(data[0]), n, 1);
  }
};
// (-1)^(n+1) n! zeta(n + 1, x)
template <class T> RL_INLINE void polygamma_run(char* const* data, int64_t n, const LoopParams& params) {
  const auto degree = static_cast<double>(params.i0);
  const T x = static_cast<T>(degree + 1);
  zeta_run(&x, true, reinterpret_cast<const T*>(data[1]), reinterpret_cast<T*>(data[0]), n,
           special::polygamma_factor(degree));
}
template <class T> [[gnu::flatten]] void polygamma_flat(char* const* data, int64_t n, const LoopParams& params) {
  polygamma_run<T>(data, n, params);
}

// log |Gamma|: blocks without negative values take half the time, and give the same bits.
template <class T> RL_INLINE void lgamma_run(char* const* data, int64_t n) {
  constexpr int64_t kBlock = 256;
  auto* in = reinterpret_cast<const T*>(data[1]);
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t count = n - first < kBlock ? n - first : kBlock;
    int low = 0;
    for (int64_t i = first; i < first + count; ++i) low |= !(in[i] > T(0));
    char* const at[] = {data[0] + first * static_cast<int64_t>(sizeof(T)),
                        data[1] + first * static_cast<int64_t>(sizeof(T))};
    if (low) {
      patched_run<[](auto x, auto y) { return special::lgamma_good(x, y); }, kOf<special::lgamma_any<T>>,
                  kOf<special::lgamma>, T>(at, count);
    } else {
      auto* out = reinterpret_cast<T*>(at[0]);
      auto* x = reinterpret_cast<const T*>(at[1]);
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) out[i] = kOf<special::lgamma_above<T>>(x[i]);
    }
  }
}
template <class T> [[gnu::flatten]] void lgamma_flat(char* const* data, int64_t n, const LoopParams&) {
  lgamma_run<T>(data, n);
}

#ifndef RL_OVERLAY
double far_j0(double x) { return ::j0(x); }
double far_j1(double x) { return ::j1(x); }
double far_y0(double x) { return x < 0 ? kNan<double> : ::y0(x); }
double far_y1(double x) { return x < 0 ? kNan<double> : ::y1(x); }
template <auto kFast, auto kSlow> void waves(LoopTable& t, Pointwise op) {
  constexpr auto kNear = [](double x, double) { return special::waves_reduced(x); };
  put_doubles<&reduced_range_loop<&patched_flat<kNear, kFast, kSlow, double>, double>, 1>(t, op);
}
#endif

}  // namespace

void put_gamma(LoopTable& t) {
  using enum Pointwise;
  put_reduced_range<&lgamma_flat<float>, &lgamma_flat<double>>(t, Lgamma);
  put_reduced_range<&polygamma_flat<float>, &polygamma_flat<double>>(t, Polygamma);
  reduced_range_floats<[](auto x) { return (x > 0); }, kOf<special::digamma_above>, kOf<special::digamma_any>>(t,
                                                                                                               Digamma);
  blocks2<HurwitzZeta>(t, Pointwise::Zeta);
  blocks2<Incomplete<false>>(t, Igamma);
  blocks2<Incomplete<true>>(t, Igammac);
#ifndef RL_OVERLAY
  waves<kOf<special::j0>, kOf<far_j0>>(t, BesselJ0);
  waves<kOf<special::j1>, kOf<far_j1>>(t, BesselJ1);
  waves<kOf<special::y0>, kOf<far_y0>>(t, BesselY0);
  waves<kOf<special::y1>, kOf<far_y1>>(t, BesselY1);
  waves<kOf<special::spherical_j0_small>, kOf<special::spherical_j0>>(t, SphericalBesselJ0);
#endif
  blocks2<Polynomial<special::ChebyshevT>>(t, ChebyshevT);
  blocks2<Polynomial<special::ChebyshevU>>(t, ChebyshevU);
  blocks2<Polynomial<special::ChebyshevV>>(t, ChebyshevV);
  blocks2<Polynomial<special::ChebyshevW>>(t, ChebyshevW);
  blocks2<Polynomial<special::Shifted<special::ChebyshevT>>>(t, ShiftedChebyshevT);
  blocks2<Polynomial<special::Shifted<special::ChebyshevU>>>(t, ShiftedChebyshevU);
  blocks2<Polynomial<special::Shifted<special::ChebyshevV>>>(t, ShiftedChebyshevV);
  blocks2<Polynomial<special::Shifted<special::ChebyshevW>>>(t, ShiftedChebyshevW);
  blocks2<Polynomial<special::Laguerre>>(t, LaguerreL);
  blocks2<Polynomial<special::Legendre>>(t, LegendreP);
  blocks2<Polynomial<special::HermiteH>>(t, HermiteH);
  blocks2<Polynomial<special::HermiteHe>>(t, HermiteHe);
}

}  // namespace rl::RL_ISA
