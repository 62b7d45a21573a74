// Stages of Fourier transforms for processors with AVX-512.
#pragma once
#include <cstdint>

namespace rl::avx512 {

// A stage of radix r (2, 3, 4, 5, 7 or 8): signals of r * m elements, s side by side; x and y hold re, then im `half`
// after it. w are the twiddle factors of FftPlan::twiddles.
void fft_stage(int r, int64_t m, int64_t s, const float* x, float* y, int64_t half, const float* w);
void fft_stage(int r, int64_t m, int64_t s, const double* x, double* y, int64_t half, const double* w);

// The same for any odd r up to 31, with its roots exp(-2 pi i k / r).
void fft_stage_odd(int r, int64_t m, int64_t s, const float* x, float* y, int64_t half, const float* w,
                   const float* roots);
void fft_stage_odd(int r, int64_t m, int64_t s, const double* x, double* y, int64_t half, const double* w,
                   const double* roots);

// Sixteen signals of floats side by side, re and im separate. Each says whether it did what was asked: not for other
// numbers of lanes. Contiguous signals of pairs (re, im), which start at p + from[l], into rows and back, multiplied by
// `scale`.
bool fft_split(const float* p, const int64_t* from, int64_t pairs, int64_t lanes, float* re, float* im);
// Of those written back only the first `count` are.
bool fft_join(float* p, const int64_t* to, int64_t pairs, int64_t lanes, int64_t count, const float* re,
              const float* im, float scale);
// The same for neighbouring signals: `count` pairs (re, im) next to each other, then the next ones `stride` floats on;
// rows of `lanes`, with zeros from count on. Any number of lanes up to sixteen.
bool fft_split_rows(const float* p, int64_t stride, int64_t n, int64_t lanes, int64_t count, float* re, float* im);
bool fft_join_rows(float* p, int64_t stride, int64_t n, int64_t lanes, int64_t count, const float* re, const float* im,
                   float scale);
// The same for eight signals of doubles.
bool fft_split(const double* p, const int64_t* from, int64_t pairs, int64_t lanes, double* re, double* im);
bool fft_join(double* p, const int64_t* to, int64_t pairs, int64_t lanes, int64_t count, const double* re,
              const double* im, double scale);
bool fft_split_rows(const double* p, int64_t stride, int64_t n, int64_t lanes, int64_t count, double* re, double* im);
bool fft_join_rows(double* p, int64_t stride, int64_t n, int64_t lanes, int64_t count, const double* re,
                   const double* im, double scale);
// Half spectra of real signals of length 2 h from the transforms z of their pairs, and back.
bool fft_to_half(const float* zr, const float* zi, float* xr, float* xi, int64_t h, int64_t lanes,
                 const float* twiddles);
bool fft_from_half(const float* xr, const float* xi, float* zr, float* zi, int64_t h, int64_t lanes,
                   const float* twiddles);
// to[k] = the conjugate of from[-k], for complex numbers of floats
bool fft_mirror(float* to, const float* from, int64_t count);

}  // namespace rl::avx512
