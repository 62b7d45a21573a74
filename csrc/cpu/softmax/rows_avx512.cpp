// The rows of softmax on 512-bit registers: short ones stay in them from their maximum to their quotients.
#include "cpu/softmax/rows_avx512.h"

#include "cpu/isa.h"
#include "cpu/softmax/max_sum.h"

namespace rl::RL_ISA {
namespace {

// A row that fits V registers.
template <class T, int V> void register_exp_sums(const T* x, int64_t x_stride, T* y, int64_t y_stride, int64_t rows,
                                                 int64_t n, T* greatest, T* sums) {
  constexpr int64_t kL = kRegisterLanes<T>;
  const Mask last = lanes<T>(n - kL * (V - 1));
  for (int64_t r = 0; r < rows; ++r, x += x_stride) {
    decltype(load(x)) v[V];
#pragma GCC unroll 4
    for (int k = 0; k < V - 1; ++k) v[k] = load(x + kL * k);
    v[V - 1] = load(x + kL * (V - 1), last);
    auto m = v[0];
    Mask odd = simd::unordered(m, m);  // NaN, which a maximum may lose
#pragma GCC unroll 4
    for (int k = 1; k < V; ++k) odd |= simd::unordered(v[k], v[k]), m = simd::max(m, v[k]);
    greatest[r] = odd ? static_cast<T>(__builtin_nanf("")) : simd::largest(m);
    const auto top = all(greatest[r]);
    auto s = all(T(0));
#pragma GCC unroll 4
    for (int k = 0; k < V; ++k) {
      v[k] = exp_below_one(v[k] - top);
      s += k < V - 1 ? v[k] : simd::select(last, v[k]);
    }
    sums[r] = simd::sum(s);
    if (!y) continue;
    const auto scale = all(T(1) / sums[r]);
#pragma GCC unroll 4
    for (int k = 0; k < V - 1; ++k) store(y + kL * k, v[k] * scale);
    store(y + kL * (V - 1), v[V - 1] * scale, last);
    y += y_stride;
  }
}

}  // namespace

template <class T>
void exp_sums(const T* x, int64_t x_stride, T* y, int64_t y_stride, int64_t rows, int64_t n, T* greatest, T* sums) {
  constexpr int64_t kL = kRegisterLanes<T>;
  if (n > 0 && n <= 4 * kL) {
    constexpr ExpSums<T> kShort[] = {&register_exp_sums<T, 1>, &register_exp_sums<T, 2>, &register_exp_sums<T, 3>,
                                     &register_exp_sums<T, 4>};
    return kShort[(n - 1) / kL](x, x_stride, y, y_stride, rows, n, greatest, sums);
  }
  constexpr int64_t kBlock = 1024;  // floats are summed within it, blocks as doubles
  for (int64_t r = 0; r < rows; ++r, x += x_stride) {
    auto m = all(kNone<T>), m2 = m;
    Mask odd = 0;  // NaN, which a maximum may lose
    int64_t i = 0;
    for (; i + 2 * kL <= n; i += 2 * kL) {
      const auto a = load(x + i), b = load(x + i + kL);
      odd |= simd::unordered(a, b);
      m = simd::max(m, a), m2 = simd::max(m2, b);
    }
    for (; i < n; i += kL) {
      const auto a = load(x + i, lanes<T>(n - i));
      odd |= simd::unordered(a, a);
      m = simd::max(m, a);
    }
    greatest[r] = odd ? static_cast<T>(__builtin_nanf("")) : simd::largest(simd::max(m, m2));
    const auto top = all(greatest[r]);
    double total = 0;
    for (int64_t b = 0; b < n; b += kBlock) {
      const int64_t end = n - b < kBlock ? n : b + kBlock;
      auto s = all(T(0)), t = s;
      for (i = b; i + 2 * kL <= end; i += 2 * kL) {
        const auto e = exp_below_one(load(x + i) - top), f = exp_below_one(load(x + i + kL) - top);
        s += e, t += f;
        if (y) store(y + i, e), store(y + i + kL, f);
      }
      for (; i < end; i += kL) {
        const Mask some = lanes<T>(end - i);
        const auto e = simd::select(some, exp_below_one(load(x + i, some) - top));
        s += e;
        if (y) store(y + i, e, some);
      }
      total += static_cast<double>(simd::sum(s + t));
    }
    sums[r] = static_cast<T>(total);
    if (!y) continue;
    const auto scale = all(static_cast<T>(1 / total));
    for (i = 0; i + kL <= n; i += kL) store(y + i, load(y + i) * scale);
    if (i < n) store(y + i, load(y + i, lanes<T>(n - i)) * scale, lanes<T>(n - i));
    y += y_stride;
  }
}
template void exp_sums(const float*, int64_t, float*, int64_t, int64_t, int64_t, float*, float*);
template void exp_sums(const double*, int64_t, double*, int64_t, int64_t, int64_t, double*, double*);

}  // namespace rl::RL_ISA
