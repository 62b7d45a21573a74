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

constexpr int64_t kAhead = 16;    // rows; those of one head may lie far from each other, so they are asked for
constexpr int64_t kTogether = 5;  // queries from which on keys and values are read once for all of them

template <class T> void ask_for(const T* row) { _mm_prefetch(reinterpret_cast<const char*>(row), _MM_HINT_T0); }

// s (R, step) = scale * q (R, width) k', for the first `count` keys: a register of dot products at a time. The rows
// of s have room for whole vectors.
template <class T, int R> void score(const T* q, const Head<T>& k, int64_t count, T scale, T* s, int64_t step) {
  using V = Vec<T>;
  constexpr int W = V::W, S = W / R;
  for (int64_t j = 0; j < count; j += S) {
    // Behind the last key it is read again.
    const T* rows[S];
#pragma GCC unroll 16
    for (int i = 0; i < S; ++i) rows[i] = k.data + std::min(j + i, count - 1) * k.step;
    const int64_t ahead = j + kAhead + S <= count ? kAhead * k.step : 0;
    typename V::Reg acc[W];
#pragma GCC unroll 16
    for (int i = 0; i < W; ++i) acc[i] = V::zero();
    for (int64_t c = 0; c < k.width; c += W) {
      const auto lanes = first_lanes<T>(k.width - c);
      typename V::Reg x[R];
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) x[r] = V::load(q + r * k.width + c, lanes);
#pragma GCC unroll 16
      for (int i = 0; i < S; ++i) {
        ask_for(rows[i] + ahead + c);
        const typename V::Reg y = V::load(rows[i] + c, lanes);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) acc[r * S + i] = V::fma(x[r], y, acc[r * S + i]);
      }
    }
    alignas(64) T sums[W];
    lane_sums(acc, sums);
    V::store(sums, V::load(sums) * V::all(scale));
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) std::memcpy(s + r * step + j, sums + r * S, S * sizeof(T));
  }
}

// o[c] = sum of w[j] v[j][c], for NV vectors of columns, the last one masked.
template <int NV, class T>
void mix(const T* w, const T* v, int64_t step, int64_t count, typename Vec<T>::Mask last, T* o) {
  using V = Vec<T>;
  constexpr int W = V::W;
  const auto full = static_cast<typename V::Mask>(~0u);
  auto lanes = [&](int i) { return i == NV - 1 ? last : full; };
  typename V::Reg even[NV], odd[NV];
#pragma GCC unroll 4
  for (int i = 0; i < NV; ++i) even[i] = odd[i] = V::zero();
  int64_t j = 0;
  for (; j + 2 <= count; j += 2, v += 2 * step) {
    const T* next = j + kAhead + 2 <= count ? v + kAhead * step : v;
    const typename V::Reg w0 = V::all(w[j]), w1 = V::all(w[j + 1]);
#pragma GCC unroll 4
    for (int i = 0; i < NV; ++i) {
      ask_for(next + i * W), ask_for(next + step + i * W);
      even[i] = V::fma(V::load(v + i * W, lanes(i)), w0, even[i]);
      odd[i] = V::fma(V::load(v + step + i * W, lanes(i)), w1, odd[i]);
    }
  }
  if (j < count) {
    const typename V::Reg w0 = V::all(w[j]);
#pragma GCC unroll 4
    for (int i = 0; i < NV; ++i) even[i] = V::fma(V::load(v + i * W, lanes(i)), w0, even[i]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < NV; ++i) V::store(o + i * W, even[i] + odd[i], lanes(i));
}
template <class T> void mix_row(const T* w, const Head<T>& v, int64_t count, T* o) {
  constexpr int W = Vec<T>::W;
  for (int64_t c = 0; c < v.width; c += 4 * W) {
    const int64_t left = v.width - c;
    auto run = [&](auto mixed, int64_t vectors) {
      mixed(w, v.data + c, v.step, count, first_lanes<T>(left - (vectors - 1) * W), o + c);
    };
    if (left > 3 * W) run(mix<4, T>, 4);
    else if (left > 2 * W) run(mix<3, T>, 3);
    else if (left > W) run(mix<2, T>, 2);
    else run(mix<1, T>, 1);
  }
}
// Queries of the same keys, in lanes: NV registers of them. Weights are (keys, lanes).
template <class T, int NV> struct Together {
  using V = Vec<T>;
  static constexpr int W = V::W;
  static constexpr int64_t kLanes = NV * W, kSum = 256;
  int64_t begin, rows, queries;  // the row begin + r: query (begin + r) % queries of one head

  // weights = scale * k q', q packed as [width][lanes]
  void score(const Head<T>& k, int64_t count, const T* packed, T scale, T* weights) const {
    for (int64_t j = 0; j < count; j += kBlockRows) {
      const int64_t some = std::min<int64_t>(kBlockRows, count - j);
      blocks_of<T, NV>(false, true)[some](k.width, k.data + j * k.step, k.step, packed, kLanes, weights + j * kLanes,
                                          kLanes, scale, false, nullptr, first_lanes<T>(W));
    }
  }
  // `head`: the first of theirs.
  void apply(const View* mask, int64_t head, int64_t count, T* weights) const {
    for (int64_t j = 0; j < count; j += W)
      for (int v = 0; v < NV; ++v) {
        typename V::Reg r[W];
        bool chooses = false;
        for (int i = 0; i < W; ++i) {
          const int64_t row = v * W + i;
          const HeadMask<T> m(mask, head + (begin + std::min(row, rows - 1)) / queries);
          r[i] = row < rows ? m.some((begin + row) % queries, j, std::min<int64_t>(W, count - j)) : V::zero();
          chooses = m.chooses();
        }
        transpose(r);
        for (int i = 0; i < std::min<int64_t>(W, count - j); ++i) {
          T* at = weights + (j + i) * kLanes + v * W;
          V::store(at, chooses ? V::select(V::less(r[i], V::zero()), V::all(-kInfinity<T>), V::load(at))
                               : V::load(at) + r[i]);
        }
      }
  }
  // In place: e^(x - top) of each lane; sums and tops of all.
  void weigh(int64_t count, bool causal, T* weights, T* sums, T* tops) const {
    for (int v = 0; v < NV; ++v) {
      T last[W];  // key that a lane sees
      for (int i = 0; i < W; ++i) last[i] = static_cast<T>((begin + v * W + i) % queries);
      typename V::Reg top = V::all(-kInfinity<T>), sum = V::zero();
      const typename V::Reg ends = V::load(last);
      T* const from = weights + v * W;
      if (causal)
        for (int64_t j = 0; j < count; ++j) {
          const auto unseen = V::less(ends - V::all(static_cast<T>(j)), V::zero());
          V::store(from + j * kLanes, V::select(unseen, V::all(-kInfinity<T>), V::load(from + j * kLanes)));
        }
      for (int64_t j = 0; j < count; ++j) top = V::max(V::load(from + j * kLanes), top);
      top = V::select(V::equal(top, V::all(-kInfinity<T>)), V::zero(), top);
      for (int64_t j = 0; j < count; ++j) {
        const typename V::Reg e = exp_below_one(V::load(from + j * kLanes) - top);
        V::store(from + j * kLanes, e);
        sum += e;
      }
      V::store(sums + v * W, sum), V::store(tops + v * W, top);
    }
  }
  // o (rows, width) = weights' v
  void mix(const T* weights, const Head<T>& v, int64_t count, T* o) const {
    const int64_t tiles = (rows + kBlockRows - 1) / kBlockRows;
    for (int64_t c = 0; c < v.width; c += 2 * W) {
      const int64_t left = v.width - c;
      const bool two = left > W, masked = left < (two ? 2 * W : W);
      const BlockFn<T>* blocks = two ? blocks_of<T, 2>(masked, false) : blocks_of<T, 1>(masked, false);
      for (int64_t p = 0; p < count; p += kSum)
        for (int64_t t = 0; t < tiles; ++t) {
          const int64_t r = rows * t / tiles, some = rows * (t + 1) / tiles - r;
          blocks[some](std::min(kSum, count - p), weights + p * kLanes + r, kLanes, v.data + p * v.step + c, v.step,
                       o + r * v.width + c, v.width, T(1), p > 0, nullptr, first_lanes<T>(left - (two ? W : 0)));
        }
    }
  }
};

}  // namespace

template <class T> void attention_decode(bool causal, double scale, const View& out, const View& lse, const View& q,
                                         const View& k, const View& v, const View* mask) {
  const int64_t heads = k.sizes[1], share = q.sizes[1] / heads, queries = q.sizes[2], keys = k.sizes[2];
  const int64_t rows = share * queries, width = k.sizes[3], value_width = v.sizes[3], step = round_up(keys, 64);
  const double work =
      (static_cast<double>(keys) * static_cast<double>(width + value_width) + 1) * static_cast<double>((rows + 3) / 4);
  const auto grain = std::max<int64_t>(1, static_cast<int64_t>(5e4 / work));
  constexpr int64_t W = Vec<T>::W;
  // Rows that are scored together: four, or as many as two registers have lanes.
  const int64_t sets = rows < kTogether ? 1 : (rows + 2 * W - 1) / (2 * W), set = (rows + sets - 1) / sets;
  const int64_t lanes = rows < kTogether ? 4 : round_up(set, W);
  parallel_for(0, q.sizes[0] * heads, grain, [&](int64_t first, int64_t end) {
    Scratch<T> buffer(lanes * (step + width) + (rows + 4) * (width + value_width));
    T *weights = buffer.get(), *packed = weights + lanes * step, *asked = packed + lanes * width,
      *results = asked + (rows + 4) * width;
    std::fill(asked, asked + (rows + 4) * width, T(0));
    HeadReader<T> read_k, read_v;
    for (int64_t i = first; i < end; ++i) {
      const Head<T> hk = read_k(k, i, heads), hv = read_v(v, i, heads);
      // Row r: query r % queries of head r / queries among those of these keys.
      auto head = [&](int64_t r) { return i * share + r / queries; };
      auto row_of = [&](auto type, const View& t, int64_t r) {
        const Head<decltype(type)> h(t, head(r), q.sizes[1]);
        return h.data + r % queries * h.step;
      };
      for (int64_t r = 0; r < rows; ++r) {
        if constexpr (std::is_same_v<T, float>)
          if (is_half(q)) {
            widen_row(q, row_of(uint16_t{}, q, r), width, asked + r * width);
            continue;
          }
        std::memcpy(asked + r * width, row_of(T{}, q, r), static_cast<size_t>(width) * sizeof(T));
      }
      const int64_t most = causal ? std::min(queries, keys) : keys;
      T inverse[kFewQueries];
      auto close = [&](int64_t r, T top, T sum) {
        inverse[r] = sum == T(0) ? T(0) : T(1) / sum;  // a query that sees nothing gets nothing
        lse.as<T>()[head(r) * queries + r % queries] = sum == T(0) ? kInfinity<T> : top + std::log(sum);
      };
      auto together = [&](auto t) {
        pack_panel<T>(asked + t.begin * width, width, int64_t{1}, width, t.rows, lanes, lanes, packed);
        t.score(hk, most, packed, static_cast<T>(scale), weights);
        if (mask) t.apply(mask, head(0), most, weights);
        T sums[2 * W], tops[2 * W];
        t.weigh(most, causal, weights, sums, tops);
        for (int64_t r = 0; r < t.rows; ++r) close(t.begin + r, tops[r], sums[r]);
        t.mix(weights, hv, most, results + t.begin * value_width);
      };
      if (rows < kTogether) {
        (rows == 1   ? score<T, 1>
         : rows == 2 ? score<T, 2>
                     : score<T, 4>)(asked, hk, most, static_cast<T>(scale), weights, step);
        for (int64_t r = 0; r < rows; ++r) {
          const int64_t query = r % queries, count = causal ? std::min(query + 1, keys) : keys;
          T *row = weights + r * step, top;
          if (mask) HeadMask<T>(mask, head(r)).apply(row, query, count);
          const T sum = exponentials(row, count, round_up(most, W), &top);
          close(r, top, sum);
          mix_row(row, hv, count, results + r * value_width);
        }
      }
      for (int64_t r = 0; r < rows && rows >= kTogether; r += set) {
        const int64_t some = std::min(set, rows - r);
        if (lanes == W) together(Together<T, 1>{r, some, queries});
        else together(Together<T, 2>{r, some, queries});
      }
      for (int64_t r = 0; r < rows; ++r) {
        T* from = results + r * value_width;
        for (int64_t c = 0; c < value_width; ++c) from[c] *= inverse[r];
        if constexpr (std::is_same_v<T, float>)
          if (is_half(out)) {
            narrow_row(out, from, value_width, row_of(uint16_t{}, out, r));
            continue;
          }
        std::memcpy(row_of(T{}, out, r), from, static_cast<size_t>(value_width) * sizeof(T));
      }
    }
  });
}
template void attention_decode<float>(bool, double, const View&, const View&, const View&, const View&, const View&,
                                      const View*);
template void attention_decode<double>(bool, double, const View&, const View&, const View&, const View&, const View&,
                                       const View*);

}  // namespace rl::RL_ISA
