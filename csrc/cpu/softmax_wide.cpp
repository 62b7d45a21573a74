// The rows of softmax on 512-bit registers: short ones stay in them from their maximum to their quotients.
#include "cpu/instructions.h"
#include "cpu/softmax_rows.h"
#ifdef RL_HAS_WIDE
#include "cpu/wide_math.h"

namespace rl::RL_ISA {
namespace {

template <class T> inline constexpr T kNone = -__builtin_inff();
template <class T> inline constexpr int64_t kWide = 64 / sizeof(T);
using Mask = __mmask16;  // of doubles the lower half

template <class T> RL_STEP Mask lanes(int64_t left) {
  return static_cast<Mask>(left >= kWide<T> ? (1 << kWide<T>)-1 : (1 << left) - 1);
}
RL_STEP F load(const float* x) { return _mm512_loadu_ps(x); }
RL_STEP D load(const double* x) { return _mm512_loadu_pd(x); }
RL_STEP F load(const float* x, Mask some) { return _mm512_mask_loadu_ps(all(kNone<float>), some, x); }
RL_STEP D load(const double* x, Mask some) {
  return _mm512_mask_loadu_pd(all(kNone<double>), static_cast<__mmask8>(some), x);
}
RL_STEP void store(float* y, F v) { _mm512_storeu_ps(y, v); }
RL_STEP void store(double* y, D v) { _mm512_storeu_pd(y, v); }
RL_STEP void store(float* y, F v, Mask some) { _mm512_mask_storeu_ps(y, some, v); }
RL_STEP void store(double* y, D v, Mask some) { _mm512_mask_storeu_pd(y, static_cast<__mmask8>(some), v); }
RL_STEP F only(F v, Mask some) { return _mm512_maskz_mov_ps(some, v); }
RL_STEP D only(D v, Mask some) { return _mm512_maskz_mov_pd(static_cast<__mmask8>(some), v); }
RL_STEP F larger(F a, F b) { return _mm512_max_ps(a, b); }
RL_STEP D larger(D a, D b) { return _mm512_max_pd(a, b); }
RL_STEP Mask unordered(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q); }
RL_STEP Mask unordered(D a, D b) { return _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q); }
RL_STEP float largest(F v) { return _mm512_reduce_max_ps(v); }
RL_STEP double largest(D v) { return _mm512_reduce_max_pd(v); }
RL_STEP float total_of(F v) { return _mm512_reduce_add_ps(v); }
RL_STEP double total_of(D v) { return _mm512_reduce_add_pd(v); }

// e^x of x <= 0. Of floats, what would not be a normal number is 0. NaN stays.
RL_STEP F exp_below_one(F x) {
  F power;
  const F e = exp_parts(x, power);
  const __mmask16 some = _mm512_cmp_ps_mask(x, all(-87.33f), _CMP_NLT_UQ);
  return _mm512_maskz_scalef_ps(some, e, power);
}
RL_STEP D exp_below_one(D x) {
  D power;
  const D e = exp_parts(x, power);
  return _mm512_maskz_scalef_pd(some_exp(x), e, power);
}

// A row that fits V registers.
template <class T, int V> RL_WIDE void short_exp_sums(const T* x, int64_t xapart, T* y, int64_t yapart, int64_t rows,
                                                      int64_t n, T* greatest, T* sums) {
  constexpr int64_t kL = kWide<T>;
  const Mask last = lanes<T>(n - kL * (V - 1));
  for (int64_t r = 0; r < rows; ++r, x += xapart) {
    decltype(load(x)) v[V];
#pragma GCC unroll 4
    for (int k = 0; k < V - 1; ++k) v[k] = load(x + kL * k);
    v[V - 1] = load(x + kL * (V - 1), last);
    auto m = v[0];
    Mask odd = unordered(m, m);  // NaN, which a maximum may lose
#pragma GCC unroll 4
    for (int k = 1; k < V; ++k) odd |= unordered(v[k], v[k]), m = larger(m, v[k]);
    greatest[r] = odd ? static_cast<T>(__builtin_nanf("")) : largest(m);
    const auto top = all(greatest[r]);
    auto s = all(T(0));
#pragma GCC unroll 4
    for (int k = 0; k < V; ++k) {
      v[k] = exp_below_one(v[k] - top);
      s += k < V - 1 ? v[k] : only(v[k], last);
    }
    sums[r] = total_of(s);
    if (!y) continue;
    const auto scale = all(T(1) / sums[r]);
#pragma GCC unroll 4
    for (int k = 0; k < V - 1; ++k) store(y + kL * k, v[k] * scale);
    store(y + kL * (V - 1), v[V - 1] * scale, last);
    y += yapart;
  }
}

template <class T> RL_WIDE void sums_in_registers(const T* x, int64_t xapart, T* y, int64_t yapart, int64_t rows,
                                                  int64_t n, T* greatest, T* sums) {
  constexpr int64_t kL = kWide<T>;
  if (n > 0 && n <= 4 * kL) {
    constexpr ExpSums<T> kShort[] = {&short_exp_sums<T, 1>, &short_exp_sums<T, 2>, &short_exp_sums<T, 3>,
                                     &short_exp_sums<T, 4>};
    return kShort[(n - 1) / kL](x, xapart, y, yapart, rows, n, greatest, sums);
  }
  constexpr int64_t kBlock = 1024;  // floats are summed within it, blocks as doubles
  for (int64_t r = 0; r < rows; ++r, x += xapart) {
    auto m = all(kNone<T>), m2 = m;
    Mask odd = 0;  // NaN, which a maximum may lose
    int64_t i = 0;
    for (; i + 2 * kL <= n; i += 2 * kL) {
      const auto a = load(x + i), b = load(x + i + kL);
      odd |= unordered(a, b);
      m = larger(m, a), m2 = larger(m2, b);
    }
    for (; i < n; i += kL) {
      const auto a = load(x + i, lanes<T>(n - i));
      odd |= unordered(a, a);
      m = larger(m, a);
    }
    greatest[r] = odd ? static_cast<T>(__builtin_nanf("")) : largest(larger(m, m2));
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
        const auto e = only(exp_below_one(load(x + i, some) - top), some);
        s += e;
        if (y) store(y + i, e, some);
      }
      total += static_cast<double>(total_of(s + t));
    }
    sums[r] = static_cast<T>(total);
    if (!y) continue;
    const auto scale = all(static_cast<T>(1 / total));
    for (i = 0; i + kL <= n; i += kL) store(y + i, load(y + i) * scale);
    if (i < n) store(y + i, load(y + i, lanes<T>(n - i)) * scale, lanes<T>(n - i));
    y += yapart;
  }
}

}  // namespace

template <class T> ExpSums<T> wide_exp_sums() { return cpu::has_avx512() ? &sums_in_registers<T> : nullptr; }
template ExpSums<float> wide_exp_sums<float>();
template ExpSums<double> wide_exp_sums<double>();

}  // namespace rl::RL_ISA
#else
namespace rl::RL_ISA {
template <class T> ExpSums<T> wide_exp_sums() { return nullptr; }
template ExpSums<float> wide_exp_sums<float>();
template ExpSums<double> wide_exp_sums<double>();
}  // namespace rl::RL_ISA
#endif
