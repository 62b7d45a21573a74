// Transforms of short signals, for processors with AVX-512: a signal is a matrix of first x second elements, and the
// transforms of its columns and rows stay in registers. Complex numbers are kept as they are in memory, pairs (re, im),
// so that nothing is split or joined.
#pragma once
#include <cstdint>
#include <vector>

namespace rl::cpu {

template <class T> struct FftShort {
  int64_t n = 0;              // 0: there is none for this length
  int first = 0, second = 0;  // second is 1 where one transform does it all
  std::vector<T> twiddles;    // exp(-2 pi i u p / n) at (u, p): all real parts twice each, then the imaginary ones
  // Signals of outer * n elements, if it is not 1: again a matrix, whose rows are the short signals.
  int outer = 1;
  std::vector<T> outer_twiddles;  // exp(-2 pi i u p / (outer n)) at (u, p), pairs
  int64_t length() const { return outer * n; }
};

}  // namespace rl::cpu

namespace rl::avx512 {

using cpu::FftShort;

// Whether signals of `length` have a short transform, and the matrices it makes of them; the twiddle factors are left
// to the caller.
template <class T> bool fft_short_shape(FftShort<T>& plan, int64_t length);

// `count` signals of n elements next to each other, which start in_step and out_step scalars T apart. The signals may
// be transformed in place. forward and scale as in FftKernels.
template <class T> void fft_short_signals(const FftShort<T>& plan, const T* in, int64_t in_step, T* out,
                                          int64_t out_step, int64_t count, bool forward, T scale);

// Only where outer is 1: `count` signals side by side. A row has one number of each; rows are in_step and out_step
// scalars T apart.
template <class T> void fft_short_rows(const FftShort<T>& plan, const T* in, int64_t in_step, T* out, int64_t out_step,
                                       int64_t count, bool forward, T scale);

// Real signals of length 2 n as complex ones of length n. half_twiddles: exp(-2 pi i k / (2 n)) for k up to n.
// The half spectra, n + 1 elements each, from the transforms of `count` signals of n pairs, which lie `pitch` scalars T
// apart with room for one more pair; and from half spectra what their transforms backwards turn into pairs. Signal l of
// the spectra is at out + at[l], or in + at[l]. forward and scale as in FftKernels' r2c and c2r.
template <class T> void fft_half_from(T* z, int64_t pitch, int64_t count, int64_t n, const T* half_twiddles, T* out,
                                      const int64_t* at, bool forward, T scale);
// Elements first .. end - 1 of one signal, end <= n; here z[n] = z[0] is the caller's.
template <class T> void fft_half_part(const T* z, int64_t n, const T* half_twiddles, T* out, int64_t first, int64_t end,
                                      bool forward, T scale);
// The same for the elements [first, last) of one signal; z has room for a vector more than n.
template <class T> void fft_half_into_part(const T* signal, int64_t n, const T* half_twiddles, T* z, int64_t first,
                                           int64_t last, bool forward);
template <class T> void fft_half_into(const T* in, const int64_t* at, int64_t count, int64_t n, const T* half_twiddles,
                                      T* z, int64_t pitch, bool forward);

}  // namespace rl::avx512
