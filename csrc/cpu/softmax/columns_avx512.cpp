// softmax along columns on 512-bit registers: a strip of them goes down the rows with its maxima and sums in registers.
#include "cpu/softmax/columns_avx512.h"

#include "base/dtype.h"
#include "cpu/isa.h"
#include "cpu/softmax/rows_avx512.h"

namespace rl::RL_ISA {
namespace {

constexpr int64_t kRows = 512;  // terms that are added one by one; such sums are added up again

// The last of V registers has the lanes `last`.
template <int V, class T> RL_STEP auto load_at(const T* x, int k, Mask last) {
  constexpr int64_t kL = kRegisterLanes<compute_t<T>>;
  return k < V - 1 ? load(x + kL * k) : load(x + kL * k, last);
}
template <int V, class T, class R> RL_STEP void store_at(T* y, int k, Mask last, R v) {
  constexpr int64_t kL = kRegisterLanes<compute_t<T>>;
  if (k < V - 1) store(y + kL * k, v);
  else store(y + kL * k, v, last);
}

// NaN reaches the sums, and through them the whole column, whether or not the maximum kept it.
template <class T, int V>
void columns(bool log, const T* x, int64_t x_stride, T* y, int64_t y_stride, int64_t rows, int64_t n) {
  using C = compute_t<T>;
  constexpr int64_t kL = kRegisterLanes<C>;
  const Mask last = lanes<C>(n - kL * (V - 1));
  decltype(all(C(0))) m[V], total[V];
#pragma GCC unroll 4
  for (int k = 0; k < V; ++k) m[k] = all(kNone<C>), total[k] = all(C(0));
  for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int k = 0; k < V; ++k) m[k] = simd::max(m[k], load_at<V>(x + r * x_stride, k, last));
  }
  const bool keep = !log && !is_half_v<T>;  // fp16 and bf16 would be rounded in between: they are computed again
  for (int64_t b = 0; b < rows; b += kRows) {
    decltype(all(C(0))) part[V];
#pragma GCC unroll 4
    for (int k = 0; k < V; ++k) part[k] = all(C(0));
    for (int64_t r = b; r < rows && r < b + kRows; ++r) {
#pragma GCC unroll 4
      for (int k = 0; k < V; ++k) {
        const auto e = exp_below_one(load_at<V>(x + r * x_stride, k, last) - m[k]);
        part[k] += e;
        if (keep) store_at<V>(y + r * y_stride, k, last, e);
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < V; ++k) total[k] += part[k];
  }
  if (!log) {
#pragma GCC unroll 4
    for (int k = 0; k < V; ++k) total[k] = all(C(1)) / total[k];
    for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 4
      for (int k = 0; k < V; ++k) {
        if constexpr (is_half_v<T>)
          store_at<V>(y + r * y_stride, k, last,
                      exp_below_one(load_at<V>(x + r * x_stride, k, last) - m[k]) * total[k]);
        else store_at<V>(y + r * y_stride, k, last, load_at<V>(y + r * y_stride, k, last) * total[k]);
      }
    }
    return;
  }
  alignas(64) C logs[V * kL];
#pragma GCC unroll 4
  for (int k = 0; k < V; ++k) store(logs + kL * k, total[k]);
#pragma GCC ivdep
  for (int64_t j = 0; j < V * kL; ++j) logs[j] = RL_ISA::log(logs[j]);
#pragma GCC unroll 4
  for (int k = 0; k < V; ++k) total[k] = load(logs + kL * k);
  for (int64_t r = 0; r < rows; ++r) {
    // One after the other: a large maximum would swallow the logarithm.
#pragma GCC unroll 4
    for (int k = 0; k < V; ++k)
      store_at<V>(y + r * y_stride, k, last, (load_at<V>(x + r * x_stride, k, last) - m[k]) - total[k]);
  }
}

// dx = y (dy - sum(y dy)), or for the logarithm dx = dy - exp(y) sum(dy).
template <class R> RL_STEP R gradient(bool log, R d, R y, R total) {
  return log ? d - exp(y) * total : y * (d - total);
}

template <class T, int V> void grad_columns(bool log, const T* dy, int64_t dy_stride, const T* y, int64_t y_stride,
                                            T* dx, int64_t x_stride, int64_t rows, int64_t n) {
  using C = compute_t<T>;
  const Mask last = lanes<C>(n - kRegisterLanes<C> * (V - 1));
  decltype(all(C(0))) total[V];
#pragma GCC unroll 4
  for (int k = 0; k < V; ++k) total[k] = all(C(0));
  for (int64_t b = 0; b < rows; b += kRows) {
    decltype(all(C(0))) part[V];
#pragma GCC unroll 4
    for (int k = 0; k < V; ++k) part[k] = all(C(0));
    for (int64_t r = b; r < rows && r < b + kRows; ++r) {
#pragma GCC unroll 4
      for (int k = 0; k < V; ++k) {
        const auto d = load_at<V>(dy + r * dy_stride, k, last);
        part[k] = log ? part[k] + d : fmadd(d, load_at<V>(y + r * y_stride, k, last), part[k]);
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < V; ++k) total[k] += part[k];
  }
  for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int k = 0; k < V; ++k)
      store_at<V>(
          dx + r * x_stride, k, last,
          gradient(log, load_at<V>(dy + r * dy_stride, k, last), load_at<V>(y + r * y_stride, k, last), total[k]));
  }
}

}  // namespace

// By the number of registers that the columns fill.
template <class T>
void softmax_columns(bool log, const T* x, int64_t x_stride, T* y, int64_t y_stride, int64_t rows, int64_t n) {
  static constexpr SoftmaxColumns<T> kOf[] = {&columns<T, 1>, &columns<T, 2>, &columns<T, 3>, &columns<T, 4>};
  kOf[(n - 1) / kRegisterLanes<compute_t<T>>](log, x, x_stride, y, y_stride, rows, n);
}
template <class T> void softmax_grad_columns(bool log, const T* dy, int64_t dy_stride, const T* y, int64_t y_stride,
                                             T* dx, int64_t x_stride, int64_t rows, int64_t n) {
  static constexpr SoftmaxGrad<T> kOf[] = {&grad_columns<T, 1>, &grad_columns<T, 2>, &grad_columns<T, 3>,
                                           &grad_columns<T, 4>};
  kOf[(n - 1) / kRegisterLanes<compute_t<T>>](log, dy, dy_stride, y, y_stride, dx, x_stride, rows, n);
}
template <class T> void softmax_grad_rows(bool log, const T* dy, int64_t dy_stride, const T* y, int64_t y_stride, T* dx,
                                          int64_t x_stride, int64_t rows, int64_t n) {
  using C = compute_t<T>;
  constexpr int64_t kL = kRegisterLanes<C>, kBlock = 1024;  // floats are summed within it, blocks as doubles
  for (int64_t r = 0; r < rows; ++r, dy += dy_stride, y += y_stride, dx += x_stride) {
    double sum = 0;
    for (int64_t b = 0; b < n; b += kBlock) {
      const int64_t end = n - b < kBlock ? n : b + kBlock;
      auto s = all(C(0)), t = s;
      int64_t i = b;
      for (; i + 2 * kL <= end; i += 2 * kL) {
        const auto d = load(dy + i), e = load(dy + i + kL);
        s = log ? s + d : fmadd(d, load(y + i), s);
        t = log ? t + e : fmadd(e, load(y + i + kL), t);
      }
      for (; i < end; i += kL) {
        const Mask some = lanes<C>(end - i);
        const auto d = simd::select(some, load(dy + i, some));
        s = log ? s + d : fmadd(d, simd::select(some, load(y + i, some)), s);
      }
      sum += static_cast<double>(simd::sum(s + t));
    }
    const auto total = all(static_cast<C>(sum));
    int64_t i = 0;
    for (; i + kL <= n; i += kL) store(dx + i, gradient(log, load(dy + i), load(y + i), total));
    if (i < n) {
      const Mask some = lanes<C>(n - i);
      store(dx + i, gradient(log, load(dy + i, some), load(y + i, some), total), some);
    }
  }
}

#define RL_SOFTMAX_OF(T)                                                                                         \
  template void softmax_columns(bool, const T*, int64_t, T*, int64_t, int64_t, int64_t);                         \
  template void softmax_grad_columns(bool, const T*, int64_t, const T*, int64_t, T*, int64_t, int64_t, int64_t); \
  template void softmax_grad_rows(bool, const T*, int64_t, const T*, int64_t, T*, int64_t, int64_t, int64_t);
RL_SOFTMAX_OF(float)
RL_SOFTMAX_OF(double)
RL_SOFTMAX_OF(bfloat16)
RL_SOFTMAX_OF(float16)
#undef RL_SOFTMAX_OF

}  // namespace rl::RL_ISA
