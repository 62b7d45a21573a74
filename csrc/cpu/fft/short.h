// Transforms of short lines, for processors with AVX-512: a line is a matrix of first x second numbers, and the
// transforms of its columns and rows stay in registers. Complex numbers are kept as they are in memory, pairs (re, im),
// so that nothing is split or joined.
#pragma once
#include <cstdint>
#include <vector>

namespace rl::cpu {

template <class T> struct FftShort {
  int64_t n = 0;              // 0: there is none for this length
  int first = 0, second = 0;  // second is 1 where one transform does it all
  std::vector<T> turns;       // exp(-2 pi i u p / n) at (u, p): all real parts twice each, then the imaginary ones
  // Lines of outer * n numbers, if it is not 1: again a matrix, whose rows are the short lines.
  int outer = 1;
  std::vector<T> outer_turns;  // exp(-2 pi i u p / (outer n)) at (u, p), pairs
  int64_t length() const { return outer * n; }
};

// Whether lines of `length` have a short transform, and the matrices it makes of them; the turns are left to the
// caller.
template <class T> bool fft_short_shape(FftShort<T>& plan, int64_t length);

// `count` lines of n numbers next to each other, which start in_step and out_step numbers T apart. The lines may be
// transformed in place. forward and scale as in FftKernels.
template <class T> void fft_short_lines(const FftShort<T>& plan, const T* in, int64_t in_step, T* out, int64_t out_step,
                                        int64_t count, bool forward, T scale);

// Only where outer is 1: `count` lines side by side. A row has one number of each; rows are in_step and out_step
// numbers T apart.
template <class T> void fft_short_rows(const FftShort<T>& plan, const T* in, int64_t in_step, T* out, int64_t out_step,
                                       int64_t count, bool forward, T scale);

// Real lines of length 2 n as complex ones of length n. half_turns: exp(-2 pi i k / (2 n)) for k up to n.
// The half spectra, n + 1 numbers each, from the transforms of `count` lines of n pairs, which lie `pitch` numbers T
// apart with room for one more pair; and from half spectra what their transforms backwards turn into pairs. Line l of
// the spectra is at out + at[l], or in + at[l]. forward and scale as in FftKernels' r2c and c2r.
template <class T> void fft_half_from(T* z, int64_t pitch, int64_t count, int64_t n, const T* half_turns, T* out,
                                      const int64_t* at, bool forward, T scale);
// Numbers first .. end - 1 of one line, end <= n; here z[n] = z[0] is the caller's.
template <class T> void fft_half_part(const T* z, int64_t n, const T* half_turns, T* out, int64_t first, int64_t end,
                                      bool forward, T scale);
// The same for the numbers [first, last) of one line; z has room for a vector more than n.
template <class T>
void fft_half_into_part(const T* line, int64_t n, const T* half_turns, T* z, int64_t first, int64_t last, bool forward);
template <class T> void fft_half_into(const T* in, const int64_t* at, int64_t count, int64_t n, const T* half_turns,
                                      T* z, int64_t pitch, bool forward);

}  // namespace rl::cpu
