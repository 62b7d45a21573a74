#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/parallel.h"
#include "cpu/attention.h"
#include "cpu/scratch.h"

#if defined(__x86_64__)
#include "cpu/attention_head.h"

namespace rl::cpu {
namespace {

constexpr int64_t kPanel = 2 * W, kSum = 256;

// Rows to [width][32] panels, the next panel after width * 32 numbers.
void pack_turned(const Head& h, float* to) {
  for (int64_t j = 0; j < h.rows; j += kPanel)
    pack_panel(h.data + j * h.step, h.step, int64_t{1}, h.width, std::min(kPanel, h.rows - j), kPanel, kPanel,
               to + j * h.width);
}
// Rows to rows of `padded` numbers, zeros behind the last.
void pack_rows(const float* from, int64_t step, int64_t rows, int64_t width, int64_t padded, float* to) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < padded; c += W)
      V::store(to + r * padded + c, V::load(from + r * step + c, first_lanes<float>(width - c)));
}

// c (rows, width) = alpha * a @ b (+ c). b has rows of `ldb` numbers, whole vectors of them. a's unit stride is along
// the sum, or (kTurned) along the rows; the other one is `as`.
template <bool kTurned> void times(int64_t rows, int64_t width, int64_t k, const float* a, int64_t as, const float* b,
                                   int64_t ldb, float* c, int64_t ldc, float alpha, bool add) {
  for (int64_t j = 0; j < width; j += kPanel) {
    const bool two = width - j > W;
    const BlockFn<float>* blocks = two ? blocks_of<float, 2>(false, !kTurned) : blocks_of<float, 1>(false, !kTurned);
    const auto last = first_lanes<float>(width - j - (two ? W : 0));
    for (int64_t i = 0; i < rows; i += kBlockRows)
      blocks[std::min<int64_t>(kBlockRows, rows - i)](k, a + i * (kTurned ? 1 : as), as, b + j, ldb, c + i * ldc + j,
                                                      ldc, alpha, add, nullptr, last);
  }
}

// The sizes that the loops over one head share.
struct Shape {
  bool causal;
  int64_t queries, keys, width, value_width;
  int64_t padded_keys, padded_width, padded_value;
  int64_t block;  // queries taken together: so many that what is packed is read seldom, their scores few enough

  Shape(bool is_causal, const View& q, const View& k, const View& v)
      : causal(is_causal), queries(q.sizes[2]), keys(k.sizes[2]), width(q.sizes[3]), value_width(v.sizes[3]) {
    padded_keys = round_up(keys, kPanel), padded_width = round_up(width, W), padded_value = round_up(value_width, W);
    const int64_t in_cache = keys * (width + value_width) <= 8192 ? 1 : 4;
    block = kBlockRows * std::clamp<int64_t>(262144 / (kBlockRows * padded_keys), 1, in_cache);
  }
  // Keys that the queries below `end` see.
  int64_t seen(int64_t end) const { return causal ? std::min(end, keys) : keys; }
  // s[r] = alpha * rows of a @ turned, for queries [q0, q1): whole panels up to the last key seen. The rows are packed
  // first, to `room`.
  void scores(int64_t q0, int64_t q1, const float* a, int64_t step, int64_t k, const float* turned, float alpha,
              float* room, float* s) const {
    for (int64_t i = q0; i < q1; i += kBlockRows) {
      const int64_t rows = std::min<int64_t>(kBlockRows, q1 - i);
      pack_panel(a + i * step, step, int64_t{1}, k, rows, rows, rows, room + (i - q0) * k);
    }
    for (int64_t j = 0; j < seen(q1); j += kPanel)
      for (int64_t i = q0; i < q1; i += kBlockRows) {
        const int64_t rows = std::min<int64_t>(kBlockRows, q1 - i);
        if (j >= seen(i + rows)) continue;
        blocks_of<float, 2>(false, false)[rows](k, room + (i - q0) * k, rows, turned + j * k, kPanel,
                                                s + (i - q0) * padded_keys + j, padded_keys, alpha, false, nullptr,
                                                first_lanes<float>(W));
      }
  }
};

}  // namespace

void attention_forward(bool causal, float scale, const View& out, const View& lse, const View& q, const View& k,
                       const View& v, const View* mask) {
  if (q.sizes[2] <= kFewQueries) return attention_few(causal, scale, out, lse, q, k, v, mask);
  const Shape s(causal, q, k, v);
  const int64_t heads = q.sizes[0] * q.sizes[1];
  // Each part of a head packs its keys and values for itself.
  const double work = static_cast<double>(s.queries) * static_cast<double>(s.keys * (s.width + s.value_width)) + 1;
  int64_t parts = std::clamp<int64_t>(4 * num_threads() / std::max<int64_t>(heads, 1), 1, (s.queries + 95) / 96);
  const int64_t part = round_up((s.queries + parts - 1) / parts, s.block);
  parts = (s.queries + part - 1) / part;
  const auto grain = std::max<int64_t>(1, static_cast<int64_t>(1e6 * static_cast<double>(parts) / work));
  parallel_for(0, heads * parts, grain, [&](int64_t first, int64_t last) {
    Scratch<float> room(s.padded_keys * (s.width + s.padded_value + s.block) + s.block * s.width);
    float *turned = room.get(), *values = turned + s.padded_keys * s.width,
          *scores = values + s.padded_keys * s.padded_value, *rows = scores + s.padded_keys * s.block;
    for (int64_t t = first, packed = -1; t < last; ++t) {
      const int64_t h = t / parts, begin = t % parts * part, end = std::min(s.queries, begin + part);
      const Head hq(q, h), hk(k, h), hv(v, h), ho(out, h);
      const HeadMask hm(mask, h);
      if (packed != h) {
        pack_turned(hk, turned);
        pack_rows(hv.data, hv.step, s.keys, s.value_width, s.padded_value, values);
        packed = h;
      }
      for (int64_t q0 = begin; q0 < end; q0 += s.block) {
        const int64_t q1 = std::min(end, q0 + s.block);
        s.scores(q0, q1, hq.data, hq.step, s.width, turned, scale, rows, scores);
        float inverse[4 * kBlockRows];
        for (int64_t r = q0; r < q1; ++r) {
          float *row = scores + (r - q0) * s.padded_keys, top;
          const int64_t count = s.seen(r + 1);
          if (mask) hm.apply(row, r, count);
          const float sum = exponentials(row, count, round_up(s.seen(q1), W), &top);
          inverse[r - q0] = sum == 0.0f ? 0.0f : 1.0f / sum;  // a query that sees nothing gets nothing
          lse.as<float>()[h * s.queries + r] = sum == 0.0f ? kInfinity : top + std::log(sum);
        }
        for (int64_t p = 0; p < s.seen(q1); p += kSum)
          for (int64_t i = q0; i < q1; i += kBlockRows) {
            const int64_t i1 = std::min(q1, i + kBlockRows), len = std::min(kSum, s.seen(i1) - p);
            if (len <= 0) continue;
            times<false>(i1 - i, s.value_width, len, scores + (i - q0) * s.padded_keys + p, s.padded_keys,
                         values + p * s.padded_value, s.padded_value, ho.data + i * ho.step, ho.step, 1.0f, p > 0);
          }
        for (int64_t r = q0; r < q1; ++r) {
          float* o = ho.data + r * ho.step;
          const __m512 factor = V::all(inverse[r - q0]);
          for (int64_t c = 0; c < s.value_width; c += W) {
            const auto lanes = first_lanes<float>(s.value_width - c);
            V::store(o + c, V::mul(V::load(o + c, lanes), factor), lanes);
          }
        }
      }
    }
  });
}

// P = e^(S - lse), dV = P' dO, dP = dO V', dS = P (dP - row sums of dO O), dQ = scale dS K, dK = scale dS' Q
void attention_backward(bool causal, float scale, const View& dq, const View& dk, const View& dv, const View& dout,
                        const View& out, const View& lse, const View& q, const View& k, const View& v,
                        const View* mask) {
  const Shape s(causal, q, k, v);
  const int64_t heads = q.sizes[0] * q.sizes[1];
  const double work = 2.5 * static_cast<double>(s.queries) * static_cast<double>(s.keys * (s.width + s.value_width));
  parallel_for(
      0, heads, std::max<int64_t>(1, static_cast<int64_t>(1e6 / (work + 1))), [&](int64_t first, int64_t last) {
        const int64_t both = s.padded_width + s.padded_value;
        Scratch<float> room(s.padded_keys * (s.width + s.value_width + s.padded_width + both + 2 * s.block) +
                            s.block * both);
        float* next = room.get();
        auto take = [&](int64_t count) { return std::exchange(next, next + count); };
        float *turned_keys = take(s.padded_keys * s.width), *turned_values = take(s.padded_keys * s.value_width);
        float *key_rows = take(s.padded_keys * s.padded_width), *weights = take(s.padded_keys * s.block),
              *grads = take(s.padded_keys * s.block);
        float *sum_k = take(s.padded_keys * s.padded_width), *sum_v = take(s.padded_keys * s.padded_value);
        float *query_rows = take(s.block * s.padded_width), *grad_rows = take(s.block * s.padded_value);
        for (int64_t h = first; h < last; ++h) {
          const Head hq(q, h), hk(k, h), hv(v, h), ho(out, h), gq(dq, h), gk(dk, h), gv(dv, h), go(dout, h);
          const HeadMask hm(mask, h);
          pack_turned(hk, turned_keys);
          pack_turned(hv, turned_values);
          pack_rows(hk.data, hk.step, s.keys, s.width, s.padded_width, key_rows);
          std::fill(sum_k, sum_k + s.padded_keys * both, 0.0f);  // and sum_v behind it
          for (int64_t q0 = 0; q0 < s.queries; q0 += s.block) {
            const int64_t q1 = std::min(s.queries, q0 + s.block), n = q1 - q0, seen = s.seen(q1);
            s.scores(q0, q1, hq.data, hq.step, s.width, turned_keys, scale, query_rows, weights);
            s.scores(q0, q1, go.data, go.step, s.value_width, turned_values, 1.0f, grad_rows, grads);
            pack_rows(hq.data + q0 * hq.step, hq.step, n, s.width, s.padded_width, query_rows);
            pack_rows(go.data + q0 * go.step, go.step, n, s.value_width, s.padded_value, grad_rows);
            for (int64_t r = q0; r < q1; ++r) {
              const float *o = ho.data + r * ho.step, *d = grad_rows + (r - q0) * s.padded_value;
              __m512 product = V::zero();
              for (int64_t c = 0; c < s.value_width; c += W)
                product = V::fma(V::load(o + c, first_lanes<float>(s.value_width - c)), V::load(d + c), product);
              const __m512 dot = V::all(_mm512_reduce_add_ps(product)),
                           shift = V::all(lse.as<float>()[h * s.queries + r]);
              float *p = weights + (r - q0) * s.padded_keys, *g = grads + (r - q0) * s.padded_keys;
              const int64_t count = s.seen(r + 1);
              if (mask) hm.apply(p, r, count);
              int64_t j = 0;
              for (; j < count; j += W) {
                const auto lanes = first_lanes<float>(count - j);
                const __m512 w = _mm512_maskz_mov_ps(lanes, exp_below_one(_mm512_sub_ps(V::load(p + j), shift)));
                V::store(p + j, w);
                V::store(g + j, _mm512_maskz_mul_ps(lanes, w, _mm512_sub_ps(V::load(g + j), dot)));
              }
              for (; j < round_up(seen, W); j += W) V::store(p + j, V::zero()), V::store(g + j, V::zero());
            }
            // Of the keys from j on, the queries before j see none.
            for (int64_t j = 0; j < seen; j += kBlockRows) {
              const int64_t rows = std::min<int64_t>(kBlockRows, seen - j),
                            from = causal ? std::max(j - q0, int64_t{0}) : 0;
              const int64_t at = from * s.padded_keys + j;
              times<true>(rows, s.value_width, n - from, weights + at, s.padded_keys, grad_rows + from * s.padded_value,
                          s.padded_value, sum_v + j * s.padded_value, s.padded_value, 1.0f, true);
              times<true>(rows, s.width, n - from, grads + at, s.padded_keys, query_rows + from * s.padded_width,
                          s.padded_width, sum_k + j * s.padded_width, s.padded_width, scale, true);
            }
            for (int64_t p = 0; p < seen; p += kSum)
              for (int64_t i = q0; i < q1; i += kBlockRows) {
                const int64_t i1 = std::min(q1, i + kBlockRows), len = std::min(kSum, s.seen(i1) - p);
                if (len <= 0) continue;
                times<false>(i1 - i, s.width, len, grads + (i - q0) * s.padded_keys + p, s.padded_keys,
                             key_rows + p * s.padded_width, s.padded_width, gq.data + i * gq.step, gq.step, scale,
                             p > 0);
              }
          }
          for (int64_t r = 0; r < s.keys; ++r) {
            std::memcpy(gk.data + r * gk.step, sum_k + r * s.padded_width,
                        static_cast<size_t>(s.width) * sizeof(float));
            std::memcpy(gv.data + r * gv.step, sum_v + r * s.padded_value,
                        static_cast<size_t>(s.value_width) * sizeof(float));
          }
        }
      });
}

}  // namespace rl::cpu
#include "cpu/avx512_end.h"
#else
namespace rl::cpu {
void attention_forward(bool, float, const View&, const View&, const View&, const View&, const View&, const View*) {}
void attention_backward(bool, float, const View&, const View&, const View&, const View&, const View&, const View&,
                        const View&, const View&, const View&, const View*) {}
}  // namespace rl::cpu
#endif
