#include "cpu/fft/complex_avx512.h"
#include "cpu/fft/short.h"

namespace rl::RL_ISA {

using fft::First;
using fft::Pairs;

// X_k = (Z_k + conj Z_{n-k}) / 2 - i w^k (Z_k - conj Z_{n-k}) / 2
template <class T> void fft_half_part(const T* z, int64_t n, const T* half_twiddles, T* out, int64_t first, int64_t end,
                                      bool forward, T scale) {
  constexpr int W = Pairs<T>::W;
  const Pairs<T> by = fft::alternating(scale / 2, forward ? scale / 2 : -scale / 2);
  const Pairs<T> conjugate = fft::alternating(T(0), T(-0.0));
  for (int64_t k = first; k < end; k += W) {
    const First part(2 * (end - k));
    const Pairs<T> a = fft::load(z + 2 * k, part), w = fft::load(half_twiddles + 2 * k, part);
    const Pairs<T> b = flipped(fft::load_back(z + 2 * (n - k), n - k + 1), conjugate);
    const Pairs<T> x = (a + b) + minus_i(multiplied(a - b, real_parts(w), imag_parts(w)));
    fft::store(out + 2 * k, part, {x.v * by.v});
  }
}
template <class T> void fft_half_from(T* z, int64_t pitch, int64_t count, int64_t n, const T* half_twiddles, T* out,
                                      const int64_t* at, bool forward, T scale) {
  for (int64_t l = 0; l < count; ++l) __builtin_memcpy(z + l * pitch + 2 * n, z + l * pitch, 2 * sizeof(T));
  for (int64_t l = 0; l < count; ++l, z += pitch) {
    T* signal = out + at[l];
    fft_half_part(z, n, half_twiddles, signal, 0, n, forward, scale);
    signal[2 * n] = (z[0] - z[1]) * scale, signal[2 * n + 1] = T(0);
  }
}
// Z_k = X_k + conj X_{n-k} + i w^-k (X_k - conj X_{n-k}). A real result leaves no room for the imaginary parts of the
// first and the last number.
template <class T> void fft_half_into_part(const T* signal, int64_t n, const T* half_twiddles, T* z, int64_t first,
                                           int64_t last, bool forward) {
  constexpr int W = Pairs<T>::W;
  const Pairs<T> conjugate = fft::alternating(T(0), T(-0.0));
  const Pairs<T> here = forward ? conjugate : Pairs<T>{}, there = forward ? Pairs<T>{} : conjugate;
  for (int64_t k = first; k < last; k += W) {
    const First part(2 * (n - k));
    const Pairs<T> a = flipped(fft::load(signal + 2 * k, part), here);
    const Pairs<T> b = flipped(fft::load_back(signal + 2 * (n - k), n - k), there);
    const Pairs<T> w = flipped(fft::load(half_twiddles + 2 * k, part), conjugate);
    const Pairs<T> x = (a + b) - minus_i(multiplied(a - b, real_parts(w), imag_parts(w)));
    fft::store(z + 2 * k, x);
  }
  if (first == 0) z[0] = signal[0] + signal[2 * n], z[1] = signal[0] - signal[2 * n];
}
template <class T> void fft_half_into(const T* in, const int64_t* at, int64_t count, int64_t n, const T* half_twiddles,
                                      T* z, int64_t pitch, bool forward) {
  for (int64_t l = 0; l < count; ++l) fft_half_into_part(in + at[l], n, half_twiddles, z + l * pitch, 0, n, forward);
}

template void fft_half_part(const float*, int64_t, const float*, float*, int64_t, int64_t, bool, float);
template void fft_half_from(float*, int64_t, int64_t, int64_t, const float*, float*, const int64_t*, bool, float);
template void fft_half_into_part(const float*, int64_t, const float*, float*, int64_t, int64_t, bool);
template void fft_half_into(const float*, const int64_t*, int64_t, int64_t, const float*, float*, int64_t, bool);
template void fft_half_part(const double*, int64_t, const double*, double*, int64_t, int64_t, bool, double);
template void fft_half_from(double*, int64_t, int64_t, int64_t, const double*, double*, const int64_t*, bool, double);
template void fft_half_into_part(const double*, int64_t, const double*, double*, int64_t, int64_t, bool);
template void fft_half_into(const double*, const int64_t*, int64_t, int64_t, const double*, double*, int64_t, bool);

}  // namespace rl::RL_ISA
