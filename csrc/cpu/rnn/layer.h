// One layer of a recurrent network in one direction, by tiles of a few rows and one register of units of each gate:
// the GEMM with the packed weights, then the cell on the sums while they are in the first cache.
// Included once per register width, with RL_RNN_BYTES set, after everything that it uses.
#pragma once
#if RL_RNN_BYTES == 64
#include "cpu/simd/transpose_avx512.h"
#endif
#include "cpu/rnn/lanes.h"
#include "cpu/rnn/operands.h"
#include "cpu/rnn/steps.h"
#include "cpu/rnn/strassen_steps.h"

namespace rl::RL_ISA {
namespace {

// Accumulators and GEMMs that a cell needs: kGates gates over panels of kUnits registers of units.
template <RnnCell kCell> struct Cell {
  static constexpr int kGates = kCell == RnnCell::Lstm ? 4 : kCell == RnnCell::Gru ? 3 : 1;
  static constexpr int kUnits = kGates == 1 ? 2 : 1;
  static constexpr int kColumns = kGates * kUnits;                                          // registers of a panel
  static constexpr int kKept = kCell == RnnCell::Lstm ? 5 : kCell == RnnCell::Gru ? 4 : 0;  // for backward
  static constexpr int kDeltas = kGates == 1 ? 1 : 4;                                       // of dgates
};

#if RL_RNN_BYTES == 64
// to[q * step + i] = dword q of row i, for sixteen rows of k elements, of which the first `rows` exist; the others are
// zeros
template <class S> void transpose_rows(const S* from, int64_t k, int64_t rows, float* to, int64_t step) {
  constexpr int64_t kTaken = 64 / sizeof(S);  // elements of a register
  for (int64_t q = 0; q < k; q += kTaken) {
    const int64_t left = std::min(kTaken, k - q);
    __m512 r[16];
    for (int i = 0; i < 16; ++i) {
      const S* row = from + i * k + q;
      if (i >= rows) r[i] = _mm512_setzero_ps();
      else if constexpr (sizeof(S) == 4) r[i] = _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << left) - 1), row);
      else r[i] = _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(static_cast<__mmask32>((uint64_t{1} << left) - 1), row));
    }
    transpose(r);
    for (int64_t i = 0; i < dwords<S>(left); ++i) _mm512_storeu_ps(to + (q / kSteps<S> + i) * step, r[i]);
  }
}
#endif
// weights (G H, k) to [panel][part][dwords of k][registers of a part]: one part of all gates and units, or parts of
// `at_once` registers
template <RnnCell kCell, class S>
void pack_weights(const S* w, int64_t hidden, int64_t k, compute_t<S>* to, int64_t at_once = Cell<kCell>::kColumns) {
  using C = Cell<kCell>;
  using T = compute_t<S>;
  constexpr int64_t kUnits = C::kUnits * W<T>, kWidth = C::kColumns * W<T>;
  const int64_t step = at_once * W<T>, kw = dwords<S>(k);
  parallel_for(0, (hidden + kUnits - 1) / kUnits, std::max<int64_t>(1, 65536 / (k * kWidth + 1)),
               [&](int64_t p0, int64_t p1) {
                 for (int64_t p = p0; p < p1; ++p) {
                   auto column = [&](int64_t c) { return to + p * kw * kWidth + c / step * kw * step + c % step; };
#if RL_RNN_BYTES == 64
                   if constexpr (std::is_same_v<T, float>) {
                     for (int64_t c = 0; c < kWidth; c += 16) {
                       int64_t unit = p * kUnits + c % kUnits;
                       transpose_rows(w + (c / kUnits * hidden + unit) * k, k, hidden - unit, column(c), step);
                     }
                     continue;
                   }
#endif
                   for (int64_t q = 0; q < k; q += 16) {
                     int64_t end = std::min(k, q + 16);
                     for (int64_t c = 0; c < kWidth; ++c) {
                       int64_t unit = p * kUnits + c % kUnits, gate = c / kUnits;
                       const S* row = w + (gate * hidden + unit) * k;
                       for (int64_t i = q; i < end; ++i)
                         column(c)[i * step] = unit < hidden ? static_cast<T>(row[i]) : T(0);
                     }
                   }
                 }
               });
}
// biases (G H), their sum where there are two, to [panel][gate][units]
template <RnnCell kCell, class S> void pack_bias(const View* a, const View* b, int64_t hidden, compute_t<S>* to) {
  using C = Cell<kCell>;
  using T = compute_t<S>;
  constexpr int64_t kUnits = C::kUnits * W<T>, kWidth = C::kColumns * W<T>;
  for (int64_t p = 0; p * kUnits < hidden; ++p)
    for (int64_t c = 0; c < kWidth; ++c) {
      int64_t unit = p * kUnits + c % kUnits, at = c / kUnits * hidden + unit;
      T sum = 0;
      if (unit < hidden && a) sum += static_cast<T>(a->as<S>()[at]);
      if (unit < hidden && b) sum += static_cast<T>(b->as<S>()[at]);
      to[p * kWidth + c] = sum;
    }
}

// sums (rows of x, panels, a panel's width) = x times the weights, and biases
template <RnnCell kCell, class S> void input_sums(const View& x, const compute_t<S>* rows, int64_t panels,
                                                  const compute_t<S>* w, const compute_t<S>* bias, compute_t<S>* sums) {
  using T = compute_t<S>;
  constexpr int64_t kWidth = Cell<kCell>::kColumns * W<T>;
  const int64_t count = x.sizes[0], k = dwords<S>(x.sizes[1]), blocks = (count + kRowsAtOnce - 1) / kRowsAtOnce;
  // Some panels, which stay in a core's cache, for all rows of a piece.
  const int64_t group = std::max<int64_t>(1, (1 << 19) / (k * kWidth * static_cast<int64_t>(sizeof(T)) + 1));
  parallel_for(0, blocks, std::max<int64_t>(1, (1 << 21) / (kRowsAtOnce * k * kWidth * panels + 1)),
               [&](int64_t b0, int64_t b1) {
                 for (int64_t g = 0; g < panels; g += group)
                   for (int64_t r = b0 * kRowsAtOnce; r < std::min(count, b1 * kRowsAtOnce); r += kRowsAtOnce) {
                     const int64_t some = std::min<int64_t>(kRowsAtOnce, count - r);
                     for (int64_t p = g; p < std::min(panels, g + group); ++p) {
                       alignas(64) T own[kRowsAtOnce * kWidth];
                       for (int64_t i = 0; i < some; ++i)
                         __builtin_memcpy(own + i * kWidth, bias + p * kWidth, kWidth * sizeof(T));
                       panel_gemm<Cell<kCell>::kColumns, S>(some, k, rows + r * k, k, w + p * k * kWidth, own);
                       for (int64_t i = 0; i < some; ++i)
                         __builtin_memcpy(sums + ((r + i) * panels + p) * kWidth, own + i * kWidth, kWidth * sizeof(T));
                     }
                   }
               });
}

template <RnnCell kCell, class S> bool steps_by_strassen(const RnnShape& shape) {
  using C = Cell<kCell>;
  return kHasStrassen<S> &&
         strassen_profitable(shape, shape.hidden, C::kGates * shape.hidden, C::kColumns * W<compute_t<S>>);
}

template <RnnCell kCell, class S> void layer_of(const RnnShape& shape, const RnnForward& f) {
  using C = Cell<kCell>;
  using T = compute_t<S>;
  constexpr int64_t kUnits = C::kUnits * W<T>, kWidth = C::kColumns * W<T>;
  constexpr int kRows = kRowsAtOnce;
  const int64_t n = shape.rows, hidden = shape.hidden, k = shape.input, panels = (hidden + kUnits - 1) / kUnits;
  const int64_t units = panels * kUnits, ld = units + kPadding, kw = dwords<S>(k), hw = dwords<S>(hidden);
  Walk walk(shape);
  Scratch<T> wx(f.x ? panels * kw * kWidth : 0), wh(panels * hw * kWidth), bx(panels * kWidth), bh(panels * kWidth);
  if (f.x) pack_weights<kCell>(f.w_ih.as<S>(), hidden, k, wx.get());
  const bool by_strassen = steps_by_strassen<kCell, S>(shape);
  pack_weights<kCell>(f.w_hh.as<S>(), hidden, hidden, wh.get(),
                      by_strassen ? kStrassenColumns<C::kColumns> : C::kColumns);
  constexpr bool kSeparate = kCell == RnnCell::Gru;  // the state's GEMM is not simply added
  pack_bias<kCell, S>(f.b_ih, kSeparate ? nullptr : f.b_hh, hidden, bx.get());
  if (kSeparate) pack_bias<kCell, S>(f.b_hh, nullptr, hidden, bh.get());
  // Two states, the one that a step reads and the one that it writes; in dwords where those are not floats.
  constexpr bool kPairs = kSteps<S> > 1;
  const int64_t ldw = kPairs ? units / kSteps<S> + kPadding : ld;
  Scratch<T> states(2 * n * ld), cells(kCell == RnnCell::Lstm ? n * ld : 0), pairs(kPairs ? 2 * n * ldw : 0);
  T* const state_dwords = kPairs ? pairs.get() : states.get();
  bool from_zero = shape.steps > 1;  // then the first step needs no GEMM with the state
  for (int64_t r = 0; r < n; ++r) {
    T* h = states.get() + r * ld;
    copy_padded(h, ld, f.h0.as<S>() + r * hidden, hidden);
    std::copy_n(h, ld, h + n * ld);
    from_zero = from_zero && std::all_of(h, h + hidden, [](T x) { return x == T(0); });
    if (kCell == RnnCell::Lstm) copy_padded(cells.get() + r * ld, ld, f.c0.as<S>() + r * hidden, hidden);
  }
  for (int64_t r = 0; kPairs && r < 2 * n; ++r)
    for (int64_t j = 0; j < units; j += W<T>)
      put_dwords<S>(pairs.get() + r * ldw + j / kSteps<S>, states.get() + r * ld + j);
  // Products with the input are taken before the steps where its rows repeat, or the weights are larger than a core's
  // cache.
  constexpr int64_t kCached = 3 << 19;  // bytes
  Scratch<T> ahead;
  const DwordRows<S> x(f.x ? f.x->as<S>() : nullptr, f.x ? f.x->sizes[0] : 0, k);
  const bool taken = kPairs && (f.gates_at || panels * (kw + hw) * kWidth * static_cast<int64_t>(sizeof(T)) > kCached);
  if (taken) {
    ahead.reset(f.x->sizes[0] * panels * kWidth);
    input_sums<kCell, S>(*f.x, x.get(), panels, wx.get(), bx.get(), ahead.get());
  }
  const int64_t kept_row = units * C::kKept, depth = f.x && !taken ? kw + hw : hw;

  auto kept_at = [&](int64_t t, int64_t r, int64_t p) {
    return f.workspace ? f.workspace->as<T>() + walk.kept_row(t, r) * kept_row + p * C::kKept * W<T> : nullptr;
  };
  // More than the caches hold until backward comes.
  const bool away = f.workspace && f.workspace->sizes[0] * kept_row * static_cast<int64_t>(sizeof(T)) > (4 << 20);
  // What a panel's sums begin with, and the input's part of them.
  auto begin = [&](int64_t t, int64_t p, int64_t r, int64_t rows, T* sums, T* state_sums) {
    int64_t unit = p * kUnits;
    for (int64_t i = 0; i < rows; ++i) {
      int64_t row = walk.row(t, r + i), sums_row = f.gates_at ? f.gates_at[row] : row;
      if (T* kept = kept_at(t, r + i, p); kept && !away) fetch(kept, C::kKept * W<T>);
      fetch(f.out.as<S>() + row * hidden + unit, kUnits);
      if (taken) {
        const T* from = ahead.get() + (sums_row * panels + p) * kWidth;
        __builtin_memcpy(sums + i * kWidth, from, kWidth * sizeof(T));
        fetch(from + kWidth, kWidth);
      } else if (f.x) {
        __builtin_memcpy(sums + i * kWidth, bx.get() + p * kWidth, kWidth * sizeof(T));
      } else {
        const T* from = f.gates->as<T>() + sums_row * C::kGates * hidden;
        for (int g = 0; g < C::kGates; ++g) __builtin_prefetch(from + g * hidden + unit + kUnits);
        for (int g = 0; g < C::kGates; ++g)
          for (int u = 0; u < C::kUnits; ++u)
            load(sums + i * kWidth + (g * C::kUnits + u) * W<T>, from + g * hidden + unit + u * W<T>,
                 hidden - unit - u * W<T>);
      }
      if (kSeparate) __builtin_memcpy(state_sums + i * kWidth, bh.get() + p * kWidth, kWidth * sizeof(T));
    }
    if (f.x && !taken)
      panel_gemm<C::kColumns, S>(rows, kw, x.get() + walk.row(t, r) * kw, walk.row_step() * kw,
                                 wx.get() + p * kw * kWidth, sums);
  };
  auto cell = [&](int64_t t, int64_t p, int64_t r, int64_t rows, const T* sums, const T* state_sums, const T* read,
                  T* write, T* write_dwords) {
    int64_t unit = p * kUnits;
    for (int64_t i = 0; i < rows; ++i) {
      const T* in = sums + i * kWidth;
      T* h = write + (r + i) * ld + unit;
      int64_t row = walk.row(t, r + i);
      T* kept = kept_at(t, r + i, p);
      auto keep = [&](auto... values) {
        int at = 0;
        if (away) (put_away(kept + W<T> * at++, values), ...);
        else if (kept) (put(kept + W<T> * at++, values), ...);
      };
      if constexpr (kCell == RnnCell::Lstm) {
        T* c = cells.get() + (r + i) * ld + unit;
        Lanes<T> gi = sigmoid_lanes<T>(get(in)), gf = sigmoid_lanes<T>(get(in + W<T>));
        Lanes<T> gu = tanh_lanes<T>(get(in + 2 * W<T>)), go = sigmoid_lanes<T>(get(in + 3 * W<T>));
        Lanes<T> before = get(c), now = gf * before + gi * gu;
        keep(gi, gf, gu, go, before);
        put(c, now);
        put(h, go * tanh_lanes<T>(now));
      } else if constexpr (kCell == RnnCell::Gru) {
        const T* own = state_sums + i * kWidth;
        Lanes<T> gr = sigmoid_lanes<T>(get(in) + get(own)), y = get(own + 2 * W<T>);
        Lanes<T> gz = sigmoid_lanes<T>(get(in + W<T>) + get(own + W<T>));
        Lanes<T> gn = tanh_lanes<T>(get(in + 2 * W<T>) + gr * y);
        keep(gr, gz, gn, y);
        put(h, gn + gz * (get(read + (r + i) * ld + unit) - gn));
      } else {
        for (int u = 0; u < kUnits; u += W<T>) {
          Lanes<T> x = get(in + u);
          if constexpr (kCell == RnnCell::Tanh) put(h + u, tanh_lanes<T>(x));
          else put(h + u, x < T(0) ? Lanes<T>{} : x);
        }
      }
      for (int u = 0; u < C::kUnits; ++u) {
        store(f.out.as<S>() + row * hidden + unit + u * W<T>, h + u * W<T>, hidden - unit - u * W<T>);
        if (kPairs) put_dwords<S>(write_dwords + (r + i) * ldw + (unit + u * W<T>) / kSteps<S>, h + u * W<T>);
      }
    }
  };
  // Panels go one by one, or two at a time.
  std::optional<Strassen<C::kColumns, T>> strassen;
  if constexpr (kHasStrassen<S>)
    if (by_strassen) strassen.emplace(wh.get(), hidden, panels);
  const int64_t sides = strassen ? 2 : 1, rounds = panels / sides, together = strassen ? kStrassenRows : 1;
  auto step = [&](int64_t s, int64_t r0, int64_t r1, int64_t p0, int64_t p1) {
    int64_t t = walk.forward(s);
    const T *read = states.get() + (s & 1) * n * ld, *read_dwords = state_dwords + (s & 1) * n * ldw;
    T *write = states.get() + (~s & 1) * n * ld, *write_dwords = state_dwords + (~s & 1) * n * ldw;
    const bool adds = s > 0 || !from_zero;
    std::optional<StrassenStates<C::kColumns, T>> mixed;
    if constexpr (kHasStrassen<S>)
      if (strassen && adds) mixed.emplace(*strassen, r1 - r0, read + r0 * ld, ld);
    for (int64_t p = p0; p < p1; ++p)
      row_blocks(r0, r1, kRows, together, [&](int64_t r, int64_t rows) {
        alignas(64) T sums[kMostSides<S>][kRows * kWidth];
        alignas(64) T state_sums[kMostSides<S>][kSeparate ? kRows * kWidth : 1];
        auto target = [&](int64_t side) { return kSeparate ? state_sums[side] : sums[side]; };
        for (int64_t side = 0; side < sides; ++side) begin(t, p + side * rounds, r, rows, sums[side], state_sums[side]);
        if constexpr (kHasStrassen<S>)
          if (mixed) {
            Wanted nothing(0);
            strassen->multiply(p, *mixed, r - r0, rows, target(0), target(1), nothing);
          }
        if (adds && !strassen)
          panel_gemm<C::kColumns, S>(rows, hw, read_dwords + r * ldw, ldw, wh.get() + p * hw * kWidth, target(0));
        for (int64_t side = 0; side < sides; ++side)
          cell(t, p + side * rounds, r, rows, sums[side], state_sums[side], read, write, write_dwords);
      });
    if (away) settle();
  };
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  run_steps(
      walk,
      Sharing(walk, rounds, depth * C::kGates * hidden, panels * depth * kWidth * kSize, hidden * kSize, together),
      step);

  for (int64_t r = 0; r < n; ++r) {
    const T* h = states.get() + ((walk.last(r) + 1) & 1) * n * ld + r * ld;
    for (int64_t j = 0; j < hidden; j += W<T>) {
      store(f.hn.as<S>() + r * hidden + j, h + j, hidden - j);
      if (kCell == RnnCell::Lstm) store(f.cn.as<S>() + r * hidden + j, cells.get() + r * ld + j, hidden - j);
    }
  }
}

}  // namespace
}  // namespace rl::RL_ISA
