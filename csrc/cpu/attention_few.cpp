#include <algorithm>
#include <cmath>
#include <limits>

#include "base/parallel.h"
#include "cpu/attention.h"
#include "cpu/scratch.h"

#if defined(__x86_64__)
#include "cpu/attention_head.h"

namespace rl::cpu {
namespace {

constexpr int64_t kAhead = 16;  // rows; those of one head may lie far apart, so they are asked for

inline void ask_for(const float* row) { _mm_prefetch(reinterpret_cast<const char*>(row), _MM_HINT_T0); }

// s[j] = scale * q k[j], for the first `count` keys; the room is whole vectors.
void score(const float* q, const Head& k, int64_t count, float scale, float* s) {
  const __m512 factor = V::all(scale);
  for (int64_t j = 0; j < count; j += W) {
    __m512 sums[W];
#pragma GCC unroll 4
    for (int g = 0; g < W; g += 4) {
      // Behind the last key it is read again.
      auto row = [&](int64_t i) { return k.data + std::min(j + g + i, count - 1) * k.step; };
      const float *r0 = row(0), *r1 = row(1), *r2 = row(2), *r3 = row(3);
      const float *n0 = row(kAhead), *n1 = row(kAhead + 1), *n2 = row(kAhead + 2), *n3 = row(kAhead + 3);
      __m512 a0 = V::zero(), a1 = V::zero(), a2 = V::zero(), a3 = V::zero();
      int64_t c = 0;
      for (; c + W <= k.width; c += W) {
        ask_for(n0 + c), ask_for(n1 + c), ask_for(n2 + c), ask_for(n3 + c);
        const __m512 x = V::load(q + c);
        a0 = V::fma(V::load(r0 + c), x, a0), a1 = V::fma(V::load(r1 + c), x, a1);
        a2 = V::fma(V::load(r2 + c), x, a2), a3 = V::fma(V::load(r3 + c), x, a3);
      }
      if (c < k.width) {
        const auto lanes = first_lanes<float>(k.width - c);
        const __m512 x = V::load(q + c, lanes);
        a0 = V::fma(V::load(r0 + c, lanes), x, a0), a1 = V::fma(V::load(r1 + c, lanes), x, a1);
        a2 = V::fma(V::load(r2 + c, lanes), x, a2), a3 = V::fma(V::load(r3 + c, lanes), x, a3);
      }
      sums[g] = a0, sums[g + 1] = a1, sums[g + 2] = a2, sums[g + 3] = a3;
    }
    V::sums(sums, s + j);
    V::store(s + j, V::mul(V::load(s + j), factor));
  }
}

// o[c] = factor * sum of w[j] v[j][c], for NV vectors of columns, the last one masked.
template <int NV>
void mix(const float* w, const float* v, int64_t step, int64_t count, float factor, typename V::Mask last, float* o) {
  const auto full = static_cast<V::Mask>(~0u);
  auto lanes = [&](int i) { return i == NV - 1 ? last : full; };
  __m512 even[NV], odd[NV];
#pragma GCC unroll 4
  for (int i = 0; i < NV; ++i) even[i] = odd[i] = V::zero();
  int64_t j = 0;
  for (; j + 2 <= count; j += 2, v += 2 * step) {
    const float* next = j + kAhead + 2 <= count ? v + kAhead * step : v;
    const __m512 w0 = V::all(w[j]), w1 = V::all(w[j + 1]);
#pragma GCC unroll 4
    for (int i = 0; i < NV; ++i) {
      ask_for(next + i * W), ask_for(next + step + i * W);
      even[i] = V::fma(V::load(v + i * W, lanes(i)), w0, even[i]);
      odd[i] = V::fma(V::load(v + step + i * W, lanes(i)), w1, odd[i]);
    }
  }
  if (j < count) {
    const __m512 w0 = V::all(w[j]);
#pragma GCC unroll 4
    for (int i = 0; i < NV; ++i) even[i] = V::fma(V::load(v + i * W, lanes(i)), w0, even[i]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < NV; ++i) V::store(o + i * W, V::mul(_mm512_add_ps(even[i], odd[i]), V::all(factor)), lanes(i));
}

}  // namespace

void attention_few(bool causal, float scale, const View& out, const View& lse, const View& q, const View& k,
                   const View& v, const View* mask) {
  const int64_t heads = q.sizes[0] * q.sizes[1], queries = q.sizes[2], keys = k.sizes[2];
  const double numbers = static_cast<double>(keys) * static_cast<double>(k.sizes[3] + v.sizes[3]) + 1;
  const auto grain = std::max<int64_t>(1, static_cast<int64_t>(5e4 / numbers));
  parallel_for(0, heads, grain, [&](int64_t first, int64_t end) {
    Scratch<float> room(round_up(keys, W));
    float* weights = room.get();
    for (int64_t h = first; h < end; ++h) {
      const Head hq(q, h), hk(k, h), hv(v, h), ho(out, h);
      const HeadMask hm(mask, h);
      for (int64_t r = 0; r < queries; ++r) {
        const int64_t count = causal ? std::min(r + 1, keys) : keys;
        score(hq.data + r * hq.step, hk, count, scale, weights);
        if (mask) hm.apply(weights, r, count);
        float top;
        const float sum = exponentials(weights, count, count, &top);
        const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;  // a query that sees nothing gets nothing
        lse.as<float>()[h * queries + r] = sum == 0.0f ? kInfinity : top + std::log(sum);
        float* o = ho.data + r * ho.step;
        for (int64_t c = 0; c < hv.width; c += 4 * W) {
          const int64_t left = hv.width - c;
          auto run = [&](auto mixed, int64_t vectors) {
            mixed(weights, hv.data + c, hv.step, count, inverse, first_lanes<float>(left - (vectors - 1) * W), o + c);
          };
          if (left > 3 * W) run(mix<4>, 4);
          else if (left > 2 * W) run(mix<3>, 3);
          else if (left > W) run(mix<2>, 2);
          else run(mix<1>, 1);
        }
      }
    }
  });
}

}  // namespace rl::cpu
#include "cpu/avx512_end.h"
#else
namespace rl::cpu {
void attention_few(bool, float, const View&, const View&, const View&, const View&, const View&, const View*) {}
}  // namespace rl::cpu
#endif
