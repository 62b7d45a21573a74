#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/parallel.h"
#include "cpu/attention/attention.h"
#include "cpu/attention/head.h"
#include "cpu/loops/scratch.h"

namespace rl::RL_ISA {
namespace {

template <class T> constexpr int64_t kPanel = 2 * Vec<T>::W;
constexpr int64_t kSum = 256;

// Rows to [width][kPanel] panels, the next panel after width * kPanel elements.
template <class T> void pack_transposed(const Head<T>& h, T* to) {
  for (int64_t j = 0; j < h.rows; j += kPanel<T>)
    pack_panel<T>(h.data + j * h.step, h.step, int64_t{1}, h.width, std::min(kPanel<T>, h.rows - j), kPanel<T>,
                  kPanel<T>, to + j * h.width);
}
// Rows to rows of `padded` elements, zeros behind the last.
template <class T> void pack_rows(const T* from, int64_t step, int64_t rows, int64_t width, int64_t padded, T* to) {
  using V = Vec<T>;
  constexpr int W = V::W;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < padded; c += W)
      V::store(to + r * padded + c, V::load(from + r * step + c, first_lanes<T>(width - c)));
}

// c (rows, width) = alpha * a @ b (+ c). b has rows of `ldb` elements, whole vectors of them. a's unit stride is along
// the sum, or (kTurned) along the rows; the other one is `as`.
template <bool kTransposed, class T> void times(int64_t rows, int64_t width, int64_t k, const T* a, int64_t as,
                                                const T* b, int64_t ldb, T* c, int64_t ldc, T alpha, bool add) {
  constexpr int W = Vec<T>::W;
  for (int64_t j = 0; j < width; j += kPanel<T>) {
    const bool two = width - j > W;
    const BlockFn<T>* blocks = two ? blocks_of<T, 2>(false, !kTransposed) : blocks_of<T, 1>(false, !kTransposed);
    const auto last = first_lanes<T>(width - j - (two ? W : 0));
    for (int64_t i = 0; i < rows; i += kBlockRows)
      blocks[std::min<int64_t>(kBlockRows, rows - i)](k, a + i * (kTransposed ? 1 : as), as, b + j, ldb,
                                                      c + i * ldc + j, ldc, alpha, add, nullptr, last);
  }
}

// The sizes that the loops over one head share.
template <class T> struct Shape {
  using V = Vec<T>;
  static constexpr int W = V::W;
  static constexpr int64_t kPanel = 2 * W;
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
  // s[r] = alpha * rows of a @ transposed, for queries [q0, q1): whole panels up to the last key seen. The rows are
  // packed first, to `buffer`.
  void scores(int64_t q0, int64_t q1, const T* a, int64_t step, int64_t k, const T* transposed, T alpha, T* buffer,
              T* s) const {
    for (int64_t i = q0; i < q1; i += kBlockRows) {
      const int64_t rows = std::min<int64_t>(kBlockRows, q1 - i);
      pack_panel(a + i * step, step, int64_t{1}, k, rows, rows, rows, buffer + (i - q0) * k);
    }
    for (int64_t j = 0; j < seen(q1); j += kPanel)
      for (int64_t i = q0; i < q1; i += kBlockRows) {
        const int64_t rows = std::min<int64_t>(kBlockRows, q1 - i);
        if (j >= seen(i + rows)) continue;
        blocks_of<T, 2>(false, false)[rows](k, buffer + (i - q0) * k, rows, transposed + j * k, kPanel,
                                            s + (i - q0) * padded_keys + j, padded_keys, alpha, false, nullptr,
                                            first_lanes<T>(W));
      }
  }
};

template <class T> void forward_of(bool causal, T scale, const View& out, const View& lse, const View& q, const View& k,
                                   const View& v, const View* mask) {
  using V = Vec<T>;
  constexpr int W = V::W;
  if (q.sizes[2] * (q.sizes[1] / k.sizes[1]) <= kFewQueries)
    return attention_decode<T>(causal, scale, out, lse, q, k, v, mask);
  const Shape<T> s(causal, q, k, v);
  const int64_t all = q.sizes[1], heads = q.sizes[0] * all;
  // Each part of a head packs its keys and values for itself.
  const double work = static_cast<double>(s.queries) * static_cast<double>(s.keys * (s.width + s.value_width)) + 1;
  int64_t parts = std::clamp<int64_t>(4 * num_threads() / std::max<int64_t>(heads, 1), 1, (s.queries + 95) / 96);
  const int64_t part = round_up((s.queries + parts - 1) / parts, s.block);
  parts = (s.queries + part - 1) / part;
  const auto grain = std::max<int64_t>(1, static_cast<int64_t>(1e6 * static_cast<double>(parts) / work));
  parallel_for(0, heads * parts, grain, [&](int64_t first, int64_t last) {
    Scratch<T> buffer(s.padded_keys * (s.width + s.padded_value + s.block) + s.block * s.width);
    T *transposed = buffer.get(), *values = transposed + s.padded_keys * s.width,
      *scores = values + s.padded_keys * s.padded_value, *rows = scores + s.padded_keys * s.block;
    HeadReader<T> read_q, read_k, read_v;
    Scratch<T> results(is_half(out) ? s.queries * s.value_width : 1);
    for (int64_t t = first, packed = -1; t < last; ++t) {
      const int64_t h = t / parts, begin = t % parts * part, end = std::min(s.queries, begin + part);
      const Head<T> hq = read_q(q, h, all), ho = is_half(out) ? Head<T>(results.get(), out) : Head<T>(out, h, all);
      const HeadMask<T> hm(mask, h);
      if (packed != h) {
        const Head<T> hk = read_k(k, h, all), hv = read_v(v, h, all);
        pack_transposed(hk, transposed);
        pack_rows(hv.data, hv.step, s.keys, s.value_width, s.padded_value, values);
        packed = h;
      }
      for (int64_t q0 = begin; q0 < end; q0 += s.block) {
        const int64_t q1 = std::min(end, q0 + s.block);
        s.scores(q0, q1, hq.data, hq.step, s.width, transposed, scale, rows, scores);
        T inverse[4 * kBlockRows];
        for (int64_t r = q0; r < q1; ++r) {
          T* row = scores + (r - q0) * s.padded_keys;
          const int64_t count = s.seen(r + 1);
          if (mask) hm.apply(row, r, count);
          inverse[r - q0] = weigh(row, count, round_up(s.seen(q1), W), lse.as<T>() + h * s.queries + r);
        }
        for (int64_t p = 0; p < s.seen(q1); p += kSum)
          for (int64_t i = q0; i < q1; i += kBlockRows) {
            const int64_t i1 = std::min(q1, i + kBlockRows), len = std::min(kSum, s.seen(i1) - p);
            if (len <= 0) continue;
            times<false>(i1 - i, s.value_width, len, scores + (i - q0) * s.padded_keys + p, s.padded_keys,
                         values + p * s.padded_value, s.padded_value, ho.data + i * ho.step, ho.step, T(1), p > 0);
          }
        for (int64_t r = q0; r < q1; ++r) {
          T* o = ho.data + r * ho.step;
          const typename V::Reg factor = V::all(inverse[r - q0]);
          for (int64_t c = 0; c < s.value_width; c += W) {
            const auto lanes = first_lanes<T>(s.value_width - c);
            V::store(o + c, V::load(o + c, lanes) * factor, lanes);
          }
          if constexpr (std::is_same_v<T, float>)
            if (is_half(out)) {
              const Head<uint16_t> to(out, h, all);
              narrow_row(out, o, s.value_width, to.data + r * to.step);
            }
        }
      }
    }
  });
}

// P = e^(S - lse), dV = P' dO, dP = dO V', dS = P (dP - row sums of dO O), dQ = scale dS K, dK = scale dS' Q
template <class T> void backward_of(bool causal, T scale, const View& dq, const View& dk, const View& dv,
                                    const View& dout, const View& out, const View& lse, const View& q, const View& k,
                                    const View& v, const View* mask) {
  using V = Vec<T>;
  constexpr int W = V::W;
  const Shape<T> s(causal, q, k, v);
  const int64_t all = q.sizes[1], heads = q.sizes[0] * all;
  const double work = 2.5 * static_cast<double>(s.queries) * static_cast<double>(s.keys * (s.width + s.value_width));
  parallel_for(
      0, heads, std::max<int64_t>(1, static_cast<int64_t>(1e6 / (work + 1))), [&](int64_t first, int64_t last) {
        const int64_t both = s.padded_width + s.padded_value;
        Scratch<T> buffer(s.padded_keys * (s.width + s.value_width + s.padded_width + both + 2 * s.block) +
                          s.block * both);
        T* next = buffer.get();
        auto take = [&](int64_t count) { return std::exchange(next, next + count); };
        T *transposed_keys = take(s.padded_keys * s.width), *transposed_values = take(s.padded_keys * s.value_width);
        T *key_rows = take(s.padded_keys * s.padded_width), *weights = take(s.padded_keys * s.block),
          *grads = take(s.padded_keys * s.block);
        T *sum_k = take(s.padded_keys * s.padded_width), *sum_v = take(s.padded_keys * s.padded_value);
        T *query_rows = take(s.block * s.padded_width), *grad_rows = take(s.block * s.padded_value);
        for (int64_t h = first; h < last; ++h) {
          const Head<T> hq(q, h, all), hk(k, h, all), hv(v, h, all), ho(out, h, all), gq(dq, h, all), gk(dk, h, all),
              gv(dv, h, all), go(dout, h, all);
          const HeadMask<T> hm(mask, h);
          pack_transposed(hk, transposed_keys);
          pack_transposed(hv, transposed_values);
          pack_rows(hk.data, hk.step, s.keys, s.width, s.padded_width, key_rows);
          std::fill(sum_k, sum_k + s.padded_keys * both, T(0));  // and sum_v behind it
          for (int64_t q0 = 0; q0 < s.queries; q0 += s.block) {
            const int64_t q1 = std::min(s.queries, q0 + s.block), n = q1 - q0, seen = s.seen(q1);
            s.scores(q0, q1, hq.data, hq.step, s.width, transposed_keys, scale, query_rows, weights);
            s.scores(q0, q1, go.data, go.step, s.value_width, transposed_values, T(1), grad_rows, grads);
            pack_rows(hq.data + q0 * hq.step, hq.step, n, s.width, s.padded_width, query_rows);
            pack_rows(go.data + q0 * go.step, go.step, n, s.value_width, s.padded_value, grad_rows);
            for (int64_t r = q0; r < q1; ++r) {
              const T *o = ho.data + r * ho.step, *d = grad_rows + (r - q0) * s.padded_value;
              typename V::Reg product = V::zero();
              for (int64_t c = 0; c < s.value_width; c += W)
                product = V::fma(V::load(o + c, first_lanes<T>(s.value_width - c)), V::load(d + c), product);
              const typename V::Reg dot = V::all(V::sum(product)), shift = V::all(lse.as<T>()[h * s.queries + r]);
              T *p = weights + (r - q0) * s.padded_keys, *g = grads + (r - q0) * s.padded_keys;
              const int64_t count = s.seen(r + 1);
              if (mask) hm.apply(p, r, count);
              int64_t j = 0;
              for (; j < count; j += W) {
                const auto lanes = first_lanes<T>(count - j);
                const typename V::Reg w = V::select(lanes, exp_below_one(V::load(p + j) - shift));
                V::store(p + j, w);
                V::store(g + j, V::select(lanes, w * (V::load(g + j) - dot)));
              }
              for (; j < round_up(seen, W); j += W) V::store(p + j, V::zero()), V::store(g + j, V::zero());
            }
            // Of the keys from j on, the queries before j see none.
            for (int64_t j = 0; j < seen; j += kBlockRows) {
              const int64_t rows = std::min<int64_t>(kBlockRows, seen - j),
                            from = causal ? std::max(j - q0, int64_t{0}) : 0;
              const int64_t at = from * s.padded_keys + j;
              times<true>(rows, s.value_width, n - from, weights + at, s.padded_keys, grad_rows + from * s.padded_value,
                          s.padded_value, sum_v + j * s.padded_value, s.padded_value, T(1), true);
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
            std::memcpy(gk.data + r * gk.step, sum_k + r * s.padded_width, static_cast<size_t>(s.width) * sizeof(T));
            std::memcpy(gv.data + r * gv.step, sum_v + r * s.padded_value,
                        static_cast<size_t>(s.value_width) * sizeof(T));
          }
        }
      });
}

}  // namespace

void attention_forward(bool causal, double scale, const View& out, const View& lse, const View& q, const View& k,
                       const View& v, const View* mask) {
  if (q.dtype == DType::Float64) return forward_of<double>(causal, scale, out, lse, q, k, v, mask);
  forward_of<float>(causal, static_cast<float>(scale), out, lse, q, k, v, mask);
}
void attention_backward(bool causal, double scale, const View& dq, const View& dk, const View& dv, const View& dout,
                        const View& out, const View& lse, const View& q, const View& k, const View& v,
                        const View* mask) {
  if (q.dtype == DType::Float64) return backward_of<double>(causal, scale, dq, dk, dv, dout, out, lse, q, k, v, mask);
  backward_of<float>(causal, static_cast<float>(scale), dq, dk, dv, dout, out, lse, q, k, v, mask);
}

}  // namespace rl::RL_ISA
