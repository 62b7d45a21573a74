// The rows of softmax on 512-bit registers: short ones stay in them from their maximum to their quotients.
#include "cpu/instructions.h"
#include "cpu/softmax_rows.h"
#ifdef RL_HAS_WIDE
#include "cpu/wide_math.h"

namespace rl::RL_ISA {
namespace {

constexpr float kNone = -__builtin_inff();

RL_STEP __mmask16 lanes(int64_t left) { return static_cast<__mmask16>(left >= 16 ? 0xffff : (1 << left) - 1); }
RL_STEP F load_row(const float* x, int64_t left) { return _mm512_mask_loadu_ps(all(kNone), lanes(left), x); }

// e^x of x <= 0; what would not be a normal number is 0. NaN stays.
RL_STEP F exp_below_one(F x) {
  F power;
  const F e = exp_parts(x, power);
  const __mmask16 some = _mm512_cmp_ps_mask(x, all(-87.33f), _CMP_NLT_UQ);
  return _mm512_maskz_scalef_ps(some, e, power);
}

// A row that fits V registers.
template <int V> RL_WIDE void short_exp_sums(const float* x, int64_t xapart, float* y, int64_t yapart, int64_t rows,
                                             int64_t n, float* greatest, float* sums) {
  const __mmask16 last = lanes(n - 16 * (V - 1));
  for (int64_t r = 0; r < rows; ++r, x += xapart) {
    F v[V];
#pragma GCC unroll 4
    for (int k = 0; k < V - 1; ++k) v[k] = _mm512_loadu_ps(x + 16 * k);
    v[V - 1] = _mm512_mask_loadu_ps(all(kNone), last, x + 16 * (V - 1));
    F m = v[0];
    __mmask16 odd = _mm512_cmp_ps_mask(m, m, _CMP_UNORD_Q);  // NaN, which a maximum may lose
#pragma GCC unroll 4
    for (int k = 1; k < V; ++k) odd |= _mm512_cmp_ps_mask(v[k], v[k], _CMP_UNORD_Q), m = _mm512_max_ps(m, v[k]);
    greatest[r] = odd ? __builtin_nanf("") : _mm512_reduce_max_ps(m);
    const F top = all(greatest[r]);
    F s = _mm512_setzero_ps();
#pragma GCC unroll 4
    for (int k = 0; k < V; ++k) {
      v[k] = exp_below_one(_mm512_sub_ps(v[k], top));
      s = k < V - 1 ? _mm512_add_ps(s, v[k]) : _mm512_mask_add_ps(s, last, s, v[k]);
    }
    sums[r] = _mm512_reduce_add_ps(s);
    if (!y) continue;
    const F scale = all(1.0f / sums[r]);
#pragma GCC unroll 4
    for (int k = 0; k < V - 1; ++k) _mm512_storeu_ps(y + 16 * k, _mm512_mul_ps(v[k], scale));
    _mm512_mask_storeu_ps(y + 16 * (V - 1), last, _mm512_mul_ps(v[V - 1], scale));
    y += yapart;
  }
}

RL_WIDE void exp_sums(const float* x, int64_t xapart, float* y, int64_t yapart, int64_t rows, int64_t n,
                      float* greatest, float* sums) {
  if (n > 0 && n <= 64) {
    constexpr ExpSums kShort[] = {&short_exp_sums<1>, &short_exp_sums<2>, &short_exp_sums<3>, &short_exp_sums<4>};
    return kShort[(n - 1) / 16](x, xapart, y, yapart, rows, n, greatest, sums);
  }
  constexpr int64_t kBlock = 1024;  // floats are summed within it, blocks as doubles
  for (int64_t r = 0; r < rows; ++r, x += xapart) {
    F m = all(kNone), m2 = m;
    __mmask16 odd = 0;  // NaN, which a maximum may lose
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
      const F a = _mm512_loadu_ps(x + i), b = _mm512_loadu_ps(x + i + 16);
      odd |= _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q);
      m = _mm512_max_ps(m, a), m2 = _mm512_max_ps(m2, b);
    }
    for (; i < n; i += 16) {
      const F a = load_row(x + i, n - i);
      odd |= _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
      m = _mm512_max_ps(m, a);
    }
    greatest[r] = odd ? __builtin_nanf("") : _mm512_reduce_max_ps(_mm512_max_ps(m, m2));
    const F top = all(greatest[r]);
    double total = 0;
    for (int64_t b = 0; b < n; b += kBlock) {
      const int64_t end = n - b < kBlock ? n : b + kBlock;
      F s = _mm512_setzero_ps(), t = s;
      for (i = b; i + 32 <= end; i += 32) {
        const F e = exp_below_one(_mm512_sub_ps(_mm512_loadu_ps(x + i), top));
        const F f = exp_below_one(_mm512_sub_ps(_mm512_loadu_ps(x + i + 16), top));
        s = _mm512_add_ps(s, e), t = _mm512_add_ps(t, f);
        if (y) _mm512_storeu_ps(y + i, e), _mm512_storeu_ps(y + i + 16, f);
      }
      for (; i < end; i += 16) {
        const __mmask16 some = lanes(end - i);
        const F e = _mm512_maskz_mov_ps(some, exp_below_one(_mm512_sub_ps(load_row(x + i, end - i), top)));
        s = _mm512_add_ps(s, e);
        if (y) _mm512_mask_storeu_ps(y + i, some, e);
      }
      total += static_cast<double>(_mm512_reduce_add_ps(_mm512_add_ps(s, t)));
    }
    sums[r] = static_cast<float>(total);
    if (!y) continue;
    const F scale = all(static_cast<float>(1 / total));
    for (i = 0; i + 16 <= n; i += 16) _mm512_storeu_ps(y + i, _mm512_mul_ps(_mm512_loadu_ps(y + i), scale));
    if (i < n) _mm512_mask_storeu_ps(y + i, lanes(n - i), _mm512_mul_ps(load_row(y + i, n - i), scale));
    y += yapart;
  }
}

}  // namespace

ExpSums wide_exp_sums() { return cpu::has_avx512() ? &exp_sums : nullptr; }

}  // namespace rl::RL_ISA
#else
namespace rl::RL_ISA {
ExpSums wide_exp_sums() { return nullptr; }
}  // namespace rl::RL_ISA
#endif
