// The backward pass of rnn_layer.h: once through the steps in the other order.
#pragma once

namespace rl::RL_ISA {
namespace {

// The rows of w_hh (G H, H), each gate's padded to `units`, to [panel][rows][V registers].
template <RnnCell kCell, int V, class T> void pack_transposed(const T* w, int64_t hidden, int64_t units, T* to) {
  constexpr int64_t kWidth = V * W<T>;
  int64_t k = Cell<kCell>::kGates * units;
  parallel_for(0, (hidden + kWidth - 1) / kWidth, std::max<int64_t>(1, 131072 / (k * kWidth + 1)),
               [&](int64_t p0, int64_t p1) {
                 for (int64_t p = p0; p < p1; ++p)
                   for (int64_t q = 0; q < k; ++q) {
                     int64_t unit = q % units, gate = q / units;
                     const T* row = w + (gate * hidden + unit) * hidden + p * kWidth;
                     T* out = to + (p * k + q) * kWidth;
                     for (int v = 0; v < V; ++v) {
                       if (unit < hidden) load(out + v * W<T>, row + v * W<T>, hidden - p * kWidth - v * W<T>);
                       else load<T>(out + v * W<T>, nullptr, 0);
                     }
                   }
               });
}

// Gradients of a step's sums at W units of one row. dh arrives as the sum of all its sources; what goes straight on to
// the state before is left in `carry`. d holds kDeltas registers.
template <RnnCell kCell, class T>
[[gnu::always_inline]] inline void cell_grad(const T* __restrict dh, T* __restrict carry, T* __restrict dc,
                                             const T* __restrict a, const T* __restrict h, const T* __restrict before,
                                             T* __restrict d) {
  Lanes<T> g = get(dh), to_carry{};
  if constexpr (kCell == RnnCell::Lstm) {
    Lanes<T> i = get(a), f = get(a + W<T>), u = get(a + 2 * W<T>), o = get(a + 3 * W<T>), c = get(a + 4 * W<T>);
    Lanes<T> t = tanh_lanes<T>(f * c + i * u), v = get(dc) + g * o * (T(1) - t * t);
    put(d, v * u * i * (T(1) - i));
    put(d + W<T>, v * c * f * (T(1) - f));
    put(d + 2 * W<T>, v * i * (T(1) - u * u));
    put(d + 3 * W<T>, g * t * o * (T(1) - o));
    put(dc, v * f);
  } else if constexpr (kCell == RnnCell::Gru) {
    Lanes<T> r = get(a), z = get(a + W<T>), n = get(a + 2 * W<T>), y = get(a + 3 * W<T>);
    Lanes<T> dn = g * (T(1) - z) * (T(1) - n * n);
    put(d, dn * y * r * (T(1) - r));
    put(d + W<T>, g * (get(before) - n) * z * (T(1) - z));
    put(d + 2 * W<T>, dn);
    put(d + 3 * W<T>, dn * r);
    to_carry = g * z;
  } else if constexpr (kCell == RnnCell::Tanh) {
    put(d, g * (T(1) - get(h) * get(h)));
  } else {
    put(d, get(h) > T(0) ? g : Lanes<T>{});
  }
  put(carry, to_carry);
}

// V: registers of a panel of units
template <RnnCell kCell, class T, int V> void layer_grad_of(const RnnShape& shape, const RnnBackward& b) {
  using C = Cell<kCell>;
  constexpr int64_t kWidth = V * W<T>;
  constexpr int kRows = kRowsAtOnce;
  const int64_t n = shape.rows, hidden = shape.hidden, panels = (hidden + kWidth - 1) / kWidth,
                units = up(hidden, W<T>);
  const int64_t k = C::kGates * units, ld = k + kPadding, ldh = panels * kWidth;
  const int64_t kept_row = up(hidden, W<T> * C::kUnits) * C::kKept;
  Walk walk(shape);
  Scratch<T> w(panels * k * kWidth), deltas(2 * n * ld), carry(n * ldh), dc(kCell == RnnCell::Lstm ? n * ldh : 0);
  pack_transposed<kCell, V>(b.w_hh.as<T>(), hidden, units, w.get());
  std::memset(static_cast<void*>(deltas.get()), 0, static_cast<size_t>(2 * n * ld) * sizeof(T));
  for (int64_t r = 0; r < n; ++r)
    for (int64_t j = 0; j < ldh; ++j) {
      carry[r * ldh + j] = j < hidden && b.dhn ? b.dhn->as<T>()[r * hidden + j] : T(0);
      if (kCell == RnnCell::Lstm) dc[r * ldh + j] = j < hidden && b.dcn ? b.dcn->as<T>()[r * hidden + j] : T(0);
    }
  RnnShape turned = shape;  // backward takes the steps in the other order
  turned.reverse = !shape.reverse;
  Walk back(turned);

  // dh (rows, V registers) = what the step after sends to this one's state
  auto to_state = [&](const T* read, int64_t p, int64_t r, int64_t rows, T* dh) {
    for (int64_t i = 0; i < rows; ++i)
      __builtin_memcpy(dh + i * kWidth, carry.get() + (r + i) * ldh + p * kWidth, kWidth * sizeof(T));
    panel_product<V>(rows, k, read + r * ld, ld, w.get() + p * k * kWidth, dh);
  };
  auto step = [&](int64_t s, int64_t r0, int64_t r1, int64_t p0, int64_t p1) {
    int64_t t = back.forward(s), earlier = t + (shape.reverse ? 1 : -1);
    const T* read = deltas.get() + (s & 1) * n * ld;
    T* write = deltas.get() + (~s & 1) * n * ld;
    for (int64_t p = p0; p < p1; ++p)
      row_blocks(r0, r1, kRows, [&](int64_t r, int64_t rows) {
        alignas(64) T dh[kRows * kWidth];
        to_state(read, p, r, rows, dh);
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t unit = p * kWidth; unit < std::min(units, (p + 1) * kWidth); unit += W<T>) {
            int64_t row = walk.row(t, r + i), left = hidden - unit;
            T* g = dh + i * kWidth + unit - p * kWidth;
            if (b.dout) {
              alignas(64) T more[W<T>];
              load(more, b.dout->as<T>() + row * hidden + unit, left);
              put(g, get(g) + get(more));
            }
            alignas(64) T d[C::kDeltas * W<T>], h[W<T>], before[W<T>];
            const T* kept = C::kKept ? b.workspace->as<T>() + row * kept_row + unit * C::kKept : nullptr;
            if (!C::kKept) load(h, b.out.as<T>() + row * hidden + unit, left);
            if (kCell == RnnCell::Gru) {
              bool inside = earlier >= 0 && earlier < shape.steps && walk.count(earlier) > r + i;
              const T* from =
                  inside ? b.out.as<T>() + walk.row(earlier, r + i) * hidden : b.h0.as<T>() + (r + i) * hidden;
              load(before, from + unit, left);
            }
            T* cell = kCell == RnnCell::Lstm ? dc.get() + (r + i) * ldh + unit : nullptr;
            cell_grad<kCell>(g, carry.get() + (r + i) * ldh + unit, cell, kept, h, before, d);
            for (int q = 0; q < C::kDeltas; ++q) {
              store(b.dgates.as<T>() + (row * C::kDeltas + q) * hidden + unit, d + q * W<T>, left);
              // Of a GRU's third sum the state's product sees the fourth gradient.
              int to = kCell == RnnCell::Gru && q == 3 ? 2 : q;
              if (kCell != RnnCell::Gru || q != 2)
                __builtin_memcpy(write + (r + i) * ld + to * units + unit, d + q * W<T>, kBytes);
            }
          }
      });
  };
  run_steps(back, panels, k * hidden, panels * k * kWidth * static_cast<int64_t>(sizeof(T)),
            k * static_cast<int64_t>(sizeof(T)), step);

  if (kCell == RnnCell::Lstm)
    for (int64_t r = 0; r < n; ++r)
      std::memcpy(static_cast<void*>(b.dc0.as<T>() + r * hidden), dc.get() + r * ldh,
                  static_cast<size_t>(hidden) * sizeof(T));
  if (!b.dh0.data) return;
  for (int64_t r = 0; r < n; ++r)  // each row's last deltas to one place
    if (((back.last(r) + 1) & 1) == 0) continue;
    else
      std::memcpy(static_cast<void*>(deltas.get() + r * ld), deltas.get() + (n + r) * ld,
                  static_cast<size_t>(ld) * sizeof(T));
  parallel_for(0, n, std::max<int64_t>(1, (1 << 21) / (k * hidden + 1)), [&](int64_t r0, int64_t r1) {
    row_blocks(r0, r1, kRows, [&](int64_t r, int64_t rows) {
      alignas(64) T dh[kRows * kWidth];
      for (int64_t p = 0; p < panels; ++p) {
        to_state(deltas.get(), p, r, rows, dh);
        for (int64_t i = 0; i < rows; ++i)
          for (int v = 0; v < V; ++v)
            store(b.dh0.as<T>() + (r + i) * hidden + p * kWidth + v * W<T>, dh + i * kWidth + v * W<T>,
                  hidden - p * kWidth - v * W<T>);
      }
    });
  });
}

template <class T> void input_grad_of(const RnnShape& shape, const View& dx, const View& dgates, const View& w_ih) {
  constexpr int V = 4, kRows = kRowsAtOnce;
  constexpr int64_t kWidth = V * W<T>;
  int64_t rows = dgates.sizes[0], ld = dgates.sizes[1], k = w_ih.sizes[0], n = shape.input;
  int64_t panels = (n + kWidth - 1) / kWidth;
  Scratch<T> w(panels * k * kWidth);  // [panel][k][4 registers]
  for (int64_t p = 0; p < panels; ++p)
    for (int64_t q = 0; q < k; ++q)
      for (int v = 0; v < V; ++v)
        load(w.get() + (p * k + q) * kWidth + v * W<T>, w_ih.as<T>() + q * n + p * kWidth + v * W<T>,
             n - p * kWidth - v * W<T>);
  int64_t grain = std::max<int64_t>(1, (1 << 21) / (k * n * kRows + 1)) * kRows;
  parallel_for(0, rows, grain, [&](int64_t r0, int64_t r1) {
    row_blocks(r0, r1, kRows, [&](int64_t r, int64_t count) {
      for (int64_t p = 0; p < panels; ++p) {
        alignas(64) T sums[kRows * kWidth] = {};
        panel_product<V>(count, k, dgates.as<T>() + r * ld, ld, w.get() + p * k * kWidth, sums);
        for (int64_t i = 0; i < count; ++i)
          for (int v = 0; v < V; ++v)
            store(dx.as<T>() + (r + i) * n + p * kWidth + v * W<T>, sums + i * kWidth + v * W<T>,
                  n - p * kWidth - v * W<T>);
      }
    });
  });
}

}  // namespace
}  // namespace rl::RL_ISA
