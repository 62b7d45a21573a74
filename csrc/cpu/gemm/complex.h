// GEMMs of complex matrices as GEMMs of real ones.
//
// Note [Complex GEMMs]
// A row of complex numbers is a row of twice as many real ones. With every x + iy of b written below itself as
// (x, y) and (-y, x), the real GEMM of a (in place) with this matrix is the complex GEMM.
#pragma once
#include <algorithm>
#include <complex>
#include <cstdint>
#include <utility>

#include "backend/matmul.h"
#include "base/parallel.h"
#include "cpu/gemm/gemm.h"
#include "cpu/loops/scratch.h"

namespace rl::RL_ISA {
namespace {

inline constexpr int64_t kComplexRows = 6;         // of the result at least, to be worth writing b twice
inline constexpr int64_t kComplexPart = 1 << 16;   // elements of b that are written at a time
inline constexpr int64_t kComplexColumns = 64;     // at least that many columns of them
inline constexpr double kComplexMost = 512 << 20;  // multiplications from which on OpenBLAS is as fast

template <class R> bool complex_gemm_profitable(int64_t m, int64_t n, int64_t k) {
  return m >= kComplexRows && n >= 4 && k >= 4 &&
         static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) < kComplexMost &&
         (sizeof(R) == 8 || g_float_precision == FloatPrecision::Highest) && cpu::gemm_available();
}

// Lines of `count` elements times alpha, each as two lines of reals: (x, y) and (-y, x), or for a matrix that is
// transposed, (x, -y) and (y, x).
template <bool transposed, class R> void write_twice(const std::complex<R>* from, int64_t lines, int64_t between,
                                                     int64_t count, int64_t step, std::complex<R> alpha, R* to) {
  const R ax = alpha.real(), ay = alpha.imag();
  auto each = [&](auto read) __attribute__((always_inline)) {
    for (int64_t i = 0; i < lines; ++i) {
      const R* x = reinterpret_cast<const R*>(from + i * between);
      R* __restrict first = to + i * 4 * count, * __restrict second = first + 2 * count;
      for (int64_t j = 0; j < count; ++j) {
        const auto [re, im] = read(x, j);
        first[2 * j] = re, first[2 * j + 1] = transposed ? -im : im;
        second[2 * j] = transposed ? im : -im, second[2 * j + 1] = re;
      }
    }
  };
  using Pair = std::pair<R, R>;
  if (alpha != R(1))
    each([=](const R* x, int64_t j) {
      const R re = x[2 * j * step], im = x[2 * j * step + 1];
      return Pair(re * ax - im * ay, re * ay + im * ax);
    });
  else if (step == 1) each([](const R* x, int64_t j) { return Pair(x[2 * j], x[2 * j + 1]); });
  else each([=](const R* x, int64_t j) { return Pair(x[2 * j * step], x[2 * j * step + 1]); });
}

// c (m, n) = alpha * a (m, k) @ b (k, n) + beta * d, rows of c and d with unit stride; d may be c. `shared`: threads
// write b together.
template <class R> void complex_rows(int64_t m, int64_t n, int64_t k, std::complex<R>* c, int64_t crs,
                                     const std::complex<R>* a, int64_t ars, int64_t acs, const std::complex<R>* b,
                                     int64_t brs, int64_t bcs, std::complex<R> alpha, R beta, const std::complex<R>* d,
                                     int64_t drs, bool shared) {
  Scratch<std::complex<R>> rows;
  if (acs != 1 && k > 1) {
    rows.reset(checked_mul(m, k));
    constexpr int64_t kSquare = 16;
    for (int64_t i0 = 0; i0 < m; i0 += kSquare)
      for (int64_t p = 0; p < k; ++p)
        for (int64_t i = i0; i < std::min(m, i0 + kSquare); ++i) rows[i * k + p] = a[i * ars + p * acs];
    a = rows.get(), ars = k;
  }
  const bool along = brs == 1 && bcs != 1;  // b stands along the sum: so does what is written of it
  const int64_t depth = std::min(k, kComplexPart / kComplexColumns);
  const int64_t width = std::min(n, std::max(kComplexColumns, kComplexPart / depth / 32 * 32));
  Scratch<R> twice(4 * depth * width);
  for (int64_t p = 0; p < k; p += depth) {
    const int64_t len = std::min(depth, k - p);
    for (int64_t j = 0; j < n; j += width) {
      const int64_t cols = std::min(width, n - j), lines = along ? cols : len, count = along ? len : cols;
      auto write = [&](int64_t first, int64_t last) {
        const std::complex<R>* from = b + p * brs + j * bcs + first * (along ? bcs : brs);
        R* to = twice.get() + first * 4 * count;
        if (along) write_twice<true>(from, last - first, bcs, count, brs, alpha, to);
        else write_twice<false>(from, last - first, brs, count, bcs, alpha, to);
      };
      if (shared) parallel_for(0, lines, std::max<int64_t>(1, 16384 / count), write);
      else write(0, lines);
      auto real = [](auto* x) { return reinterpret_cast<const R*>(x); };
      R* to = reinterpret_cast<R*>(c + j);
      const R* add = p ? to : d ? real(d + j) : nullptr;
      cpu::gemm(cpu::Gemm<R>{.m = m,
                             .n = 2 * cols,
                             .k = 2 * len,
                             .a = real(a + p),
                             .ars = 2 * ars,
                             .acs = 1,
                             .b = twice.get(),
                             .brs = along ? 1 : 2 * cols,
                             .bcs = along ? 2 * len : 1,
                             .c = to,
                             .crs = 2 * crs,
                             .ccs = 1,
                             .alpha = R(1),
                             .beta = add ? (p ? R(1) : beta) : R(0),
                             .d = add,
                             .drs = p ? 2 * crs : 2 * drs,
                             .dcs = 1});
    }
  }
}
// The same. The two halves of the rows of a medium GEMM each write b for themselves, which costs less than to wait for
// it.
template <class R> void complex_gemm(int64_t m, int64_t n, int64_t k, std::complex<R>* c, int64_t crs,
                                     const std::complex<R>* a, int64_t ars, int64_t acs, const std::complex<R>* b,
                                     int64_t brs, int64_t bcs, std::complex<R> alpha, R beta, const std::complex<R>* d,
                                     int64_t drs) {
  const double macs = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const bool split = m >= 32 && macs >= 65536 && macs < 4e6;
  const int64_t rows = split ? (m + 1) / 2 : m;
  parallel_for(0, split ? 2 : 1, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first * rows; i < std::min(m, last * rows); i += rows)
      complex_rows(std::min(rows, m - i), n, k, c + i * crs, crs, a + i * ars, ars, acs, b, brs, bcs, alpha, beta,
                   d ? d + i * drs : nullptr, drs, !split && macs >= 4e6);
  });
}

}  // namespace
}  // namespace rl::RL_ISA
