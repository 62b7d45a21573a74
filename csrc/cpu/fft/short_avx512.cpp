#include <algorithm>

#include "cpu/fft/batch_avx512.h"
#include "cpu/fft/short.h"

namespace rl::RL_ISA {

template <class T> bool fft_short_shape(FftShort<T>& plan, int64_t length) {
  constexpr int W = Pairs<T>::W;
  if (length < 2 || length > kMost * kMost * kMost) return false;
  auto inner = [&](int64_t m) {
    plan.n = m;
    for (int a : {16, 8, 4, 2})
      if (m == a * W) return plan.first = a, plan.second = W, true;
    if (m <= kMost && is_one(static_cast<int>(m))) return plan.first = static_cast<int>(m), plan.second = 1, true;
    for (int a = 4; a <= kMost; ++a)  // the flattest matrix
      if (m % a == 0 && m / a <= a && is_one(a) && is_one(static_cast<int>(m / a)))
        return plan.first = a, plan.second = static_cast<int>(m / a), true;
    return plan.n = 0, false;
  };
  if (inner(length)) return true;
  // Rows that fill registers, and are short, are best.
  for (int a : {8, 16})
    if (length % (a * W) == 0 && length / a <= 16 * W && inner(length / a)) return plan.outer = a, true;
  for (int a : {8, 16})
    if (length % (a * W) == 0 && inner(length / a)) return plan.outer = a, true;
  return false;
}

template <class T> void fft_short_signals(const FftShort<T>& plan, const T* in, int64_t in_step, T* out,
                                          int64_t out_step, int64_t count, bool forward, T scale) {
  const Ends<T> ends(forward, scale);
  if (plan.outer == 1) return inner_signals(plan, in, in_step, out, out_step, count, ends);
  for (int64_t i = 0; i < count; ++i) {
    if (plan.outer == 8) outer_signal<8>(plan, in + i * in_step, out + i * out_step, ends);
    else outer_signal<16>(plan, in + i * in_step, out + i * out_step, ends);
  }
}

template <class T> void fft_short_rows(const FftShort<T>& plan, const T* in, int64_t in_step, T* out, int64_t out_step,
                                       int64_t count, bool forward, T scale) {
  constexpr int64_t W = Pairs<T>::W;
  const Ends<T> ends(forward, scale);
  for (int64_t i = 0; i < count; i += W)
    side_by_side(plan, in + 2 * i, in_step, out + 2 * i, out_step, count - i >= W ? First(32) : First(2 * (count - i)),
                 ends);
}

template bool fft_short_shape(FftShort<float>&, int64_t);
template bool fft_short_shape(FftShort<double>&, int64_t);
template void fft_short_signals(const FftShort<float>&, const float*, int64_t, float*, int64_t, int64_t, bool, float);
template void fft_short_signals(const FftShort<double>&, const double*, int64_t, double*, int64_t, int64_t, bool,
                                double);
template void fft_short_rows(const FftShort<float>&, const float*, int64_t, float*, int64_t, int64_t, bool, float);
template void fft_short_rows(const FftShort<double>&, const double*, int64_t, double*, int64_t, int64_t, bool, double);

}  // namespace rl::RL_ISA
