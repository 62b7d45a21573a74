// One layer of a recurrent network in one direction, by tiles of a few rows and one register of units of each gate:
// the product with the packed weights, then the cell on the sums while they are in the first cache.
// Included once per register width, with RL_RNN_BYTES set, after everything that it uses.
#pragma once
#if RL_RNN_BYTES == 64
#include "cpu/turn512.h"
#endif
#include "cpu/rnn_lanes.h"
#include "cpu/rnn_walk.h"

namespace rl::RL_ISA {
namespace {

// Sums and products that a cell needs: kGates gates over panels of kUnits registers of units.
template <RnnCell kCell> struct Cell {
  static constexpr int kGates = kCell == RnnCell::Lstm ? 4 : kCell == RnnCell::Gru ? 3 : 1;
  static constexpr int kUnits = kGates == 1 ? 2 : 1;
  static constexpr int kColumns = kGates * kUnits;                                          // registers of a panel
  static constexpr int kKept = kCell == RnnCell::Lstm ? 5 : kCell == RnnCell::Gru ? 4 : 0;  // for backward
  static constexpr int kDeltas = kGates == 1 ? 1 : 4;                                       // of dgates
};

#if RL_RNN_BYTES == 64
// to[q * step + i] = from[i * k + q] for sixteen rows i, of which the first `rows` exist; the others are zeros
inline void turn_rows(const float* from, int64_t k, int64_t rows, float* to, int64_t step) {
  for (int64_t q = 0; q < k; q += 16) {
    auto wanted = static_cast<__mmask16>(k - q >= 16 ? 0xffffu : (1u << (k - q)) - 1);
    __m512 r[16];
    for (int i = 0; i < 16; ++i)
      r[i] = i < rows ? _mm512_maskz_loadu_ps(wanted, from + i * k + q) : _mm512_setzero_ps();
    cpu::turn(r);
    for (int64_t i = 0; i < std::min<int64_t>(16, k - q); ++i) _mm512_storeu_ps(to + (q + i) * step, r[i]);
  }
}
#endif
// weights (G H, k) to [panel][k][gate][units]
template <RnnCell kCell, class T> void pack_weights(const T* w, int64_t hidden, int64_t k, T* to) {
  using C = Cell<kCell>;
  constexpr int64_t kUnits = C::kUnits * W<T>, kWidth = C::kColumns * W<T>;
  parallel_for(0, (hidden + kUnits - 1) / kUnits, std::max<int64_t>(1, 65536 / (k * kWidth + 1)),
               [&](int64_t p0, int64_t p1) {
                 for (int64_t p = p0; p < p1; ++p) {
                   T* panel = to + p * k * kWidth;
#if RL_RNN_BYTES == 64
                   if constexpr (std::is_same_v<T, float>) {
                     for (int64_t c = 0; c < kWidth; c += 16) {
                       int64_t unit = p * kUnits + c % kUnits;
                       turn_rows(w + (c / kUnits * hidden + unit) * k, k, hidden - unit, panel + c, kWidth);
                     }
                     continue;
                   }
#endif
                   for (int64_t q = 0; q < k; q += 16) {
                     int64_t end = std::min(k, q + 16);
                     for (int64_t c = 0; c < kWidth; ++c) {
                       int64_t unit = p * kUnits + c % kUnits, gate = c / kUnits;
                       const T* row = w + (gate * hidden + unit) * k;
                       for (int64_t i = q; i < end; ++i) panel[i * kWidth + c] = unit < hidden ? row[i] : T(0);
                     }
                   }
                 }
               });
}
// biases (G H), their sum where there are two, to [panel][gate][units]
template <RnnCell kCell, class T> void pack_bias(const View* a, const View* b, int64_t hidden, T* to) {
  using C = Cell<kCell>;
  constexpr int64_t kUnits = C::kUnits * W<T>, kWidth = C::kColumns * W<T>;
  for (int64_t p = 0; p * kUnits < hidden; ++p)
    for (int64_t c = 0; c < kWidth; ++c) {
      int64_t unit = p * kUnits + c % kUnits, at = c / kUnits * hidden + unit;
      T sum = 0;
      if (unit < hidden && a) sum += a->as<T>()[at];
      if (unit < hidden && b) sum += b->as<T>()[at];
      to[p * kWidth + c] = sum;
    }
}

template <RnnCell kCell, class T> void layer_of(const RnnShape& shape, const RnnForward& f) {
  using C = Cell<kCell>;
  constexpr int64_t kUnits = C::kUnits * W<T>, kWidth = C::kColumns * W<T>;
  constexpr int kRows = kRowsAtOnce;
  const int64_t n = shape.rows, hidden = shape.hidden, k = shape.input, panels = (hidden + kUnits - 1) / kUnits;
  const int64_t units = panels * kUnits, ld = units + kPadding;
  Walk walk(shape);
  Scratch<T> wx(f.x ? panels * k * kWidth : 0), wh(panels * hidden * kWidth), bx(panels * kWidth), bh(panels * kWidth);
  if (f.x) pack_weights<kCell>(f.w_ih.as<T>(), hidden, k, wx.get());
  pack_weights<kCell>(f.w_hh.as<T>(), hidden, hidden, wh.get());
  constexpr bool kApart = kCell == RnnCell::Gru;  // the state's product is not simply added
  pack_bias<kCell>(f.b_ih, kApart ? nullptr : f.b_hh, hidden, bx.get());
  if (kApart) pack_bias<kCell, T>(f.b_hh, nullptr, hidden, bh.get());
  // Two states, the one that a step reads and the one that it writes.
  Scratch<T> states(2 * n * ld), cells(kCell == RnnCell::Lstm ? n * ld : 0);
  bool from_zero = shape.steps > 1;  // then the first step needs no product with the state
  for (int64_t r = 0; r < n; ++r)
    for (int64_t j = 0; j < ld; ++j) {
      T h = j < hidden ? f.h0.as<T>()[r * hidden + j] : T(0);
      states[r * ld + j] = states[(n + r) * ld + j] = h;
      from_zero &= h == T(0);
      if (kCell == RnnCell::Lstm) cells[r * ld + j] = j < hidden ? f.c0.as<T>()[r * hidden + j] : T(0);
    }
  const int64_t kept_row = units * C::kKept, depth = f.x ? k + hidden : hidden;

  auto kept_at = [&](int64_t t, int64_t r, int64_t p) {
    return f.workspace ? f.workspace->as<T>() + walk.kept_row(t, r) * kept_row + p * C::kKept * W<T> : nullptr;
  };
  // More than the caches hold until backward comes.
  const bool away = f.workspace && f.workspace->sizes[0] * kept_row * static_cast<int64_t>(sizeof(T)) > (4 << 20);
  auto step = [&](int64_t s, int64_t r0, int64_t r1, int64_t p0, int64_t p1) {
    int64_t t = walk.forward(s);
    const T* read = states.get() + (s & 1) * n * ld;
    T* write = states.get() + (~s & 1) * n * ld;
    for (int64_t p = p0; p < p1; ++p) {
      int64_t unit = p * kUnits;
      row_blocks(r0, r1, kRows, [&](int64_t r, int64_t rows) {
        alignas(64) T sums[kRows * kWidth];
        alignas(64) T state_sums[kApart ? kRows * kWidth : 1];
        for (int64_t i = 0; i < rows; ++i) {
          if (T* kept = kept_at(t, r + i, p); kept && !away) fetch(kept, C::kKept * W<T>);
          fetch(f.out.as<T>() + walk.row(t, r + i) * hidden + unit, kUnits);
          if (f.x) {
            __builtin_memcpy(sums + i * kWidth, bx.get() + p * kWidth, kWidth * sizeof(T));
          } else {
            int64_t row = walk.row(t, r + i);
            const T* from = f.gates->as<T>() + (f.gates_at ? f.gates_at[row] : row) * C::kGates * hidden;
            for (int g = 0; g < C::kGates; ++g) __builtin_prefetch(from + g * hidden + unit + kUnits);
            for (int g = 0; g < C::kGates; ++g)
              for (int u = 0; u < C::kUnits; ++u)
                load(sums + i * kWidth + (g * C::kUnits + u) * W<T>, from + g * hidden + unit + u * W<T>,
                     hidden - unit - u * W<T>);
          }
          if (kApart) __builtin_memcpy(state_sums + i * kWidth, bh.get() + p * kWidth, kWidth * sizeof(T));
        }
        if (f.x)
          panel_product<C::kColumns>(rows, k, f.x->as<T>() + walk.row(t, r) * k, walk.row_step() * k,
                                     wx.get() + p * k * kWidth, sums);
        if (s > 0 || !from_zero)
          panel_product<C::kColumns>(rows, hidden, read + r * ld, ld, wh.get() + p * hidden * kWidth,
                                     kApart ? state_sums : sums);
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
          for (int u = 0; u < C::kUnits; ++u)
            store(f.out.as<T>() + row * hidden + unit + u * W<T>, h + u * W<T>, hidden - unit - u * W<T>);
        }
      });
    }
    if (away) settle();
  };
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  run_steps(walk, Sharing(walk, panels, depth * C::kGates * hidden, panels * depth * kWidth * kSize, hidden * kSize),
            step);

  for (int64_t r = 0; r < n; ++r) {
    const T* h = states.get() + ((walk.last(r) + 1) & 1) * n * ld + r * ld;
    for (int64_t j = 0; j < hidden; ++j) {
      f.hn.as<T>()[r * hidden + j] = h[j];
      if (kCell == RnnCell::Lstm) f.cn.as<T>()[r * hidden + j] = cells[r * ld + j];
    }
  }
}

}  // namespace
}  // namespace rl::RL_ISA
