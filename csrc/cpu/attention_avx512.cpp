#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/parallel.h"
#include "cpu/attention.h"
#include "cpu/gemm.h"
#include "cpu/scratch.h"

#if defined(__x86_64__)
#include "cpu/avx512_begin.h"

namespace rl::cpu {
namespace {

using V = Vec<float>;
constexpr int W = V::W;
constexpr int64_t kPanel = 2 * W, kSum = 256;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

// The matrix of one head: rows of unit stride.
struct Head {
  float* data;
  int64_t rows, width, step;
  Head(const View& v, int64_t index)
      : data(v.as<float>() + index / v.sizes[1] * v.strides[0] + index % v.sizes[1] * v.strides[1]),
        rows(v.sizes[2]),
        width(v.sizes[3]),
        step(v.sizes[2] > 1 ? v.strides[2] : std::max<int64_t>(v.sizes[3], 1)) {}
};

// What is added to the scores of one head; of a boolean mask, -inf where it is false.
struct HeadMask {
  const View* view;
  int64_t offset = 0;
  HeadMask(const View* mask, int64_t index) : view(mask) {
    if (view) offset = index / view->sizes[1] * view->strides[0] + index % view->sizes[1] * view->strides[1];
  }
  // A row has room for whole vectors.
  void apply(float* row, int64_t query, int64_t count) const {
    const int64_t at = offset + query * view->strides[2], step = view->strides[3];
    const bool* seen = view->dtype == DType::Bool ? view->as<bool>() + at : nullptr;
    const float* add = seen ? nullptr : view->as<float>() + at;
    if (step != 1) {
      for (int64_t j = 0; j < count; ++j)
        row[j] = seen ? (seen[j * step] ? row[j] : -kInfinity) : row[j] + add[j * step];
      return;
    }
    for (int64_t j = 0; j < count; j += W) {
      const auto lanes = first_lanes<float>(count - j);
      const __m512 x = V::load(row + j);
      if (seen) {
        const __m128i bytes = _mm_maskz_loadu_epi8(lanes, seen + j);
        V::store(row + j, _mm512_mask_mov_ps(V::all(-kInfinity), _mm_test_epi8_mask(bytes, bytes), x));
      } else {
        V::store(row + j, _mm512_add_ps(x, V::load(add + j, lanes)));
      }
    }
  }
};

// e^x for x <= 0: x = n ln2 + r, 2^n P(r). Results below the smallest normal number are 0; NaN stays.
inline __m512 exp_below_one(__m512 x) {
  const __m512 t = _mm512_roundscale_ps(_mm512_mul_ps(x, V::all(1.44269504f)), _MM_FROUND_TO_NEAREST_INT);
  const __m512 r = V::fma(t, V::all(-1.42860677e-6f), V::fma(t, V::all(-0.693145752f), x));
  __m512 p = V::fma(r, V::all(1.38888889e-3f), V::all(8.33333333e-3f));
  p = V::fma(p, r, V::all(4.16666667e-2f));
  p = V::fma(p, r, V::all(1.66666667e-1f));
  p = V::fma(p, r, V::all(0.5f));
  p = _mm512_add_ps(V::fma(p, V::mul(r, r), r), V::all(1.0f));
  return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, V::all(-87.33f), _CMP_NLT_UQ), p, t);
}

// In place: e^(x - top) of a row, 0 from `count` up to `padded`. Returns the sum; top is 0 where all are -inf.
inline float exponentials(float* row, int64_t count, int64_t padded, float* top) {
  __m512 most = V::all(-kInfinity);
  for (int64_t j = 0; j < count; j += W)
    most = _mm512_mask_max_ps(most, first_lanes<float>(count - j), V::load(row + j), most);
  const float m = _mm512_reduce_max_ps(most);
  *top = m == -kInfinity ? 0.0f : m;
  const __m512 shift = V::all(*top);
  __m512 sum = V::zero();
  int64_t j = 0;
  for (; j < count; j += W) {
    const auto lanes = first_lanes<float>(count - j);
    const __m512 e = _mm512_maskz_mov_ps(lanes, exp_below_one(_mm512_sub_ps(V::load(row + j), shift)));
    V::store(row + j, e);
    sum = _mm512_add_ps(sum, e);
  }
  for (; j < padded; j += W) V::store(row + j, V::zero());
  return _mm512_reduce_add_ps(sum);
}

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
