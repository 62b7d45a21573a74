// How to transform a signal of n complex numbers, and the tables for it.
//
// A signal is kept as separate real and imaginary arrays of n rows, each row holding the same element of `lanes`
// signals side by side: every butterfly runs along a row, which the compiler turns into vectors.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/fft/short.h"
#include "cpu/isa.h"

namespace rl::RL_ISA {

// A number of length 1.
struct Root {
  double re, im;
};

template <class T> struct FftPlan {
  int64_t n = 0;
  std::vector<int> radices;  // their product is n; empty when the chirp transform is used
  std::vector<T> twiddles;   // per stage: (p, u) -> exp(-2 pi i p u / n_stage), u = 1 .. r - 1, re then im
  std::vector<T> roots;      // exp(-2 pi i k / r) of the general radices, in their order, re then im
  // The chirp transform (Bluestein) for lengths with large prime factors: a convolution of length `chirp->n`.
  std::shared_ptr<const FftPlan> chirp;
  std::vector<T> chirp_factor;    // exp(-pi i k^2 / n), re then im, n of each
  std::vector<T> chirp_spectrum;  // of the conjugate chirp, divided by chirp->n, re then im
  std::vector<T> half_twiddles;   // exp(-2 pi i k / (2 n)), k = 0 .. n: for real signals of length 2 n

  // See Note [Long transforms]. A long signal, as a matrix of first->n rows and second->n columns, is transformed
  // along both; run() does not do that. The twiddle factors between: exp(-2 pi i k j / n) from whole multiples of
  // kFine, what is left of them, and the twiddle factors of the first kSide columns of each row.
  static constexpr int64_t kLong = 8192, kFine = 1024, kSide = 16;
  std::shared_ptr<const FftPlan> first, second;
  std::vector<Root> coarse, fine;
  std::vector<T> side_twiddles;    // (first->n, 2, kSide), re then im
  Root twiddle(int64_t k) const {  // 0 <= k < n
    const Root &a = coarse[static_cast<size_t>(k / kFine)], &b = fine[static_cast<size_t>(k % kFine)];
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }

  cpu::FftShort<T> short_plan;  // short signals, complex ones

  // Signals that are transformed one by one, each by all threads: as a matrix, or by a chirp whose transforms are.
  bool is_long() const { return first || (chirp && chirp->first); }

  // x and y: 2 * rows() * lanes elements each, re first. The result is in the buffer that is returned.
  T* run(T* x, T* y, int64_t lanes) const;
  int64_t rows() const { return chirp ? chirp->n : n; }
  size_t bytes() const;
};

// The plan for signals of n; kept for the next call, in a store of bounded size.
template <class T> std::shared_ptr<const FftPlan<T>> fft_plan(int64_t n);

}  // namespace rl::RL_ISA
