// The backward pass of layer.h: once through the steps in the other order.
#pragma once

namespace rl::RL_ISA {
namespace {

// Weights (G H, columns), each gate's rows padded to `units`, to [panel of V registers of columns][part][dwords of
// rows][registers of a part]: one part, or parts of `at_once` registers.
template <int V, class S> void pack_transposed(const S* w, int64_t gates, int64_t hidden, int64_t units,
                                               int64_t columns, compute_t<S>* to, int64_t at_once = V) {
  using T = compute_t<S>;
  constexpr int64_t kWidth = V * W<T>;
  const int64_t k = gates * units / kSteps<S>, step = at_once * W<T>;
  parallel_for(0, (columns + kWidth - 1) / kWidth, std::max<int64_t>(1, 131072 / (k * kWidth + 1)),
               [&](int64_t p0, int64_t p1) {
                 for (int64_t p = p0; p < p1; ++p)
                   for (int64_t q = 0; q < k; ++q) {
                     int64_t unit = q * kSteps<S> % units, gate = q * kSteps<S> / units;
                     const S* row = w + (gate * hidden + unit) * columns + p * kWidth;
                     const S* next = unit + 1 < hidden ? row + columns : nullptr;
                     for (int v = 0; v < V; ++v) {
                       T* out = to + p * k * kWidth + v / at_once * k * step + q * step + v % at_once * W<T>;
                       const S* after = next ? next + v * W<T> : nullptr;
                       if (unit < hidden) load_dwords(out, row + v * W<T>, after, columns - p * kWidth - v * W<T>);
                       else load<T>(out, nullptr, 0);
                     }
                   }
               });
}
// dx = deltas (rows, k) @ w (G H, I), row i to target(i)
template <class T> struct InputGrad {
  static constexpr int V = 4;
  static constexpr int64_t kWidth = V * W<T>;
  int64_t k, inputs, panels = (inputs + kWidth - 1) / kWidth;
  Scratch<T> w{panels * k * kWidth};

  InputGrad(const View& w_ih, int64_t gates, int64_t hidden, int64_t units) : k(gates * units), inputs(w_ih.sizes[1]) {
    pack_transposed<V>(w_ih.as<T>(), gates, hidden, units, inputs, w.get());
  }
  template <class Target> void rows(int64_t count, const T* deltas, int64_t ld, Target&& target) const {
    for (int64_t p = 0; p < panels; ++p) {
      alignas(64) T sums[kRowsAtOnce * kWidth] = {};
      panel_gemm<V, T>(count, k, deltas, ld, w.get() + p * k * kWidth, sums);
      for (int64_t i = 0; i < count; ++i)
        for (int v = 0; v < V; ++v)
          store(target(i) + p * kWidth + v * W<T>, sums + i * kWidth + v * W<T>, inputs - p * kWidth - v * W<T>);
    }
  }
};

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

// The input's gradient after all steps.
template <RnnCell kCell, class T> void input_grad_of(const RnnShape& shape, const RnnBackward& b) {
  constexpr int64_t kRows = kRowsAtOnce;
  int64_t rows = b.dgates.sizes[0], ld = b.dgates.sizes[1];
  const InputGrad<T> input(b.w_ih, Cell<kCell>::kGates, shape.hidden, shape.hidden);
  int64_t grain = std::max<int64_t>(1, (1 << 21) / (input.k * input.inputs * kRows + 1)) * kRows;
  parallel_for(0, rows, grain, [&](int64_t r0, int64_t r1) {
    row_blocks(r0, r1, kRows, 1, [&](int64_t r, int64_t count) {
      input.rows(count, b.dgates.as<T>() + r * ld, ld, [&](int64_t i) { return b.dx.as<T>() + (r + i) * shape.input; });
    });
  });
}

// V: registers of a panel of units
template <RnnCell kCell, class S, int V> void layer_grad_of(const RnnShape& shape, const RnnBackward& b) {
  using C = Cell<kCell>;
  using T = compute_t<S>;
  constexpr int64_t kWidth = V * W<T>;
  constexpr int kRows = kRowsAtOnce;
  constexpr bool kStrassen = kHasStrassen<S> && V == 4;  // panels of two registers leave some over
  const int64_t n = shape.rows, hidden = shape.hidden, panels = (hidden + kWidth - 1) / kWidth,
                units = up(hidden, W<T>);
  const int64_t k = C::kGates * units / kSteps<S>, ld = k + kPadding, ldh = panels * kWidth;  // k: dwords
  const int64_t kept_row = up(hidden, W<T> * C::kUnits) * C::kKept;
  Walk walk(shape);
  Scratch<T> w(panels * k * kWidth), deltas(2 * n * ld), carry(n * ldh), dc(kCell == RnnCell::Lstm ? n * ldh : 0);
  const bool by_strassen = kStrassen && units == hidden && strassen_profitable(shape, k, hidden, kWidth);
  pack_transposed<V>(b.w_hh.as<S>(), C::kGates, hidden, units, hidden, w.get(), by_strassen ? kStrassenColumns<V> : V);
  // Rows that begin later, and units that do not exist, are read all the same.
  if (shape.batch_sizes || units != hidden) std::fill_n(deltas.get(), 2 * n * ld, T(0));
  for (int64_t r = 0; r < n; ++r) {
    auto row = [&](const View* v) { return v ? v->as<S>() + r * hidden : nullptr; };
    copy_padded<S>(carry.get() + r * ldh, ldh, row(b.dhn), hidden);
    if (kCell == RnnCell::Lstm) copy_padded<S>(dc.get() + r * ldh, ldh, row(b.dcn), hidden);
  }
  RnnShape reversed = shape;  // backward takes the steps in the other order
  reversed.reverse = !shape.reverse;
  Walk back(reversed);

  // dh (rows, V registers) = what goes straight on from the step after to this one's state
  auto begin = [&](int64_t p, int64_t r, int64_t rows, T* dh) {
    for (int64_t i = 0; i < rows; ++i)
      __builtin_memcpy(dh + i * kWidth, carry.get() + (r + i) * ldh + p * kWidth, kWidth * sizeof(T));
  };
  std::optional<Strassen<V, T>> strassen;
  if constexpr (kStrassen)
    if (by_strassen) strassen.emplace(w.get(), k, panels);
  // dh += what it sends through its gates
  auto add_gemm = [&](const T* read, int64_t p, int64_t r, int64_t rows, T* dh) {
    if constexpr (kStrassen)
      if (strassen) return strassen->plain(p, rows, read + r * ld, ld, dh);
    panel_gemm<V, S>(rows, k, read + r * ld, ld, w.get() + p * k * kWidth, dh);
  };
  const int64_t sides = strassen ? 2 : 1, rounds = panels / sides, together = strassen ? kStrassenRows : 1;
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  const Sharing sharing(back, rounds, k * hidden, panels * k * kWidth * kSize, k * kSize, together);
  // A thread that has all gates of its rows goes on to the input while they are near. A GRU's are not those of the
  // state.
  std::optional<InputGrad<T>> input;
  if (!is_half_v<S> && b.dx.data && !sharing.by_panels && kCell != RnnCell::Gru)
    input.emplace(b.w_ih, C::kGates, hidden, units);
  auto kept_at = [&](int64_t t, int64_t r, int64_t unit) {
    return b.workspace->as<T>() + walk.kept_row(t, r) * kept_row + unit * C::kKept;
  };
  // What a panel's cell will touch, to want(from, count).
  auto name_panel = [&](int64_t t, int64_t p, int64_t r, int64_t rows, auto&& want) {
    const int64_t unit = p * kWidth, width = std::min(units - unit, kWidth);
    for (int64_t i = 0; i < rows; ++i) {
      int64_t row = walk.row(t, r + i);
      if (C::kKept) want(kept_at(t, r + i, unit), width * C::kKept);
      if (b.dout) want(b.dout->as<S>() + row * hidden + unit, width);
      for (int q = 0; q < C::kDeltas; ++q) want(b.dgates.as<S>() + (row * C::kDeltas + q) * hidden + unit, width);
    }
  };
  auto cell = [&](int64_t t, int64_t p, int64_t r, int64_t rows, T* dh, T* write) {
    int64_t earlier = t + (shape.reverse ? 1 : -1);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t unit = p * kWidth; unit < std::min(units, (p + 1) * kWidth); unit += W<T>) {
        int64_t row = walk.row(t, r + i), left = hidden - unit;
        T* g = dh + i * kWidth + unit - p * kWidth;
        if (b.dout) {
          alignas(64) T more[W<T>];
          load(more, b.dout->as<S>() + row * hidden + unit, left);
          put(g, get(g) + get(more));
        }
        alignas(64) T d[C::kDeltas * W<T>], h[W<T>], before[W<T>];
        const T* kept = C::kKept ? kept_at(t, r + i, unit) : nullptr;
        if (!C::kKept) load(h, b.out.as<S>() + row * hidden + unit, left);
        if (kCell == RnnCell::Gru) {
          bool inside = earlier >= 0 && earlier < shape.steps && walk.count(earlier) > r + i;
          const S* from = inside ? b.out.as<S>() + walk.row(earlier, r + i) * hidden : b.h0.as<S>() + (r + i) * hidden;
          load(before, from + unit, left);
        }
        T* dcell = kCell == RnnCell::Lstm ? dc.get() + (r + i) * ldh + unit : nullptr;
        cell_grad<kCell>(g, carry.get() + (r + i) * ldh + unit, dcell, kept, h, before, d);
        for (int q = 0; q < C::kDeltas; ++q) {
          store(b.dgates.as<S>() + (row * C::kDeltas + q) * hidden + unit, d + q * W<T>, left);
          // Of a GRU's third sum the state's GEMM sees the fourth gradient.
          int to = kCell == RnnCell::Gru && q == 3 ? 2 : q;
          if (kCell != RnnCell::Gru || q != 2)
            put_dwords<S>(write + (r + i) * ld + (to * units + unit) / kSteps<S>, d + q * W<T>);
        }
      }
  };
  auto step = [&](int64_t s, int64_t r0, int64_t r1, int64_t p0, int64_t p1) {
    int64_t t = back.forward(s);
    const T* read = deltas.get() + (s & 1) * n * ld;
    T* write = deltas.get() + (~s & 1) * n * ld;
    std::optional<StrassenStates<V, T>> mixed;
    if constexpr (kStrassen)
      if (strassen && s > 0) mixed.emplace(*strassen, r1 - r0, read + r0 * ld, ld);
    for (int64_t p = p0; p < p1; ++p)
      row_blocks(r0, r1, kRows, together, [&](int64_t r, int64_t rows) {
        alignas(64) T dh[kStrassen ? 2 : 1][kRows * kWidth];
        for (int64_t side = 0; side < sides; ++side) begin(p + side * rounds, r, rows, dh[side]);
        if (!mixed) name_panel(t, p, r, rows, [](const auto* from, int64_t count) { fetch(from, count); });
        if constexpr (kStrassen)
          if (mixed) {
            Wanted wanted(2 * rows * (C::kKept + C::kDeltas + 1) * V);
            for (int64_t side = 0; side < sides; ++side)
              name_panel(t, p + side * rounds, r, rows,
                         [&](const auto* from, int64_t count) { wanted.add(from, count); });
            strassen->multiply(p, *mixed, r - r0, rows, dh[0], dh[1], wanted);
          }
        if (s > 0 && !strassen) add_gemm(read, p, r, rows, dh[0]);
        for (int64_t side = 0; side < sides; ++side) cell(t, p + side * rounds, r, rows, dh[side], write);
      });
    if (input)
      row_blocks(r0, r1, kRows, together, [&](int64_t r, int64_t rows) {
        input->rows(rows, write + r * ld, ld,
                    [&](int64_t i) { return b.dx.as<T>() + walk.row(t, r + i) * shape.input; });
      });
  };
  run_steps(back, sharing, step);
  if constexpr (!is_half_v<S>)
    if (b.dx.data && !input) input_grad_of<kCell, T>(shape, b);

  if (kCell == RnnCell::Lstm)
    for (int64_t r = 0; r < n; ++r)
      for (int64_t j = 0; j < hidden; j += W<T>)
        store(b.dc0.as<S>() + r * hidden + j, dc.get() + r * ldh + j, hidden - j);
  if (!b.dh0.data) return;
  for (int64_t r = 0; r < n; ++r)  // each row's last deltas into one block
    if (((back.last(r) + 1) & 1) == 0) continue;
    else
      std::memcpy(static_cast<void*>(deltas.get() + r * ld), deltas.get() + (n + r) * ld,
                  static_cast<size_t>(ld) * sizeof(T));
  parallel_for(0, n, std::max<int64_t>(1, (1 << 21) / (k * hidden + 1)), [&](int64_t r0, int64_t r1) {
    row_blocks(r0, r1, kRows, 1, [&](int64_t r, int64_t rows) {
      alignas(64) T dh[kRows * kWidth];
      for (int64_t p = 0; p < panels; ++p) {
        begin(p, r, rows, dh);
        add_gemm(deltas.get(), p, r, rows, dh);
        for (int64_t i = 0; i < rows; ++i)
          for (int v = 0; v < V; ++v)
            store(b.dh0.as<S>() + (r + i) * hidden + p * kWidth + v * W<T>, dh + i * kWidth + v * W<T>,
                  hidden - p * kWidth - v * W<T>);
      }
    });
  });
}

}  // namespace
}  // namespace rl::RL_ISA
