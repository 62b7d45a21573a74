// One layer of a recurrent network in one direction, by tiles of a few rows and one register of units of each gate:
// the product with the packed weights, then the cell on the sums while they are in the first cache.
// Included once per register width, with RL_RNN_BYTES set, after everything that it uses.
#pragma once
#if RL_RNN_BYTES == 64
#include "cpu/turn512.h"
#include "cpu/wide_math.h"
#endif

namespace rl::RL_ISA {
namespace {

inline constexpr int kBytes = RL_RNN_BYTES;
template <class T> inline constexpr int W = kBytes / static_cast<int>(sizeof(T));  // units of a register
template <class T> struct LaneOf {
  typedef T type __attribute__((vector_size(kBytes)));
  typedef T loose __attribute__((vector_size(kBytes), aligned(sizeof(T)), may_alias));  // in memory
};
template <class T> using Lanes = typename LaneOf<T>::type;
template <class T> [[gnu::always_inline]] inline Lanes<T> get(const T* p) {
  return *reinterpret_cast<const typename LaneOf<T>::loose*>(p);
}
template <class T> [[gnu::always_inline]] inline void put(T* p, Lanes<T> x) {
  *reinterpret_cast<typename LaneOf<T>::loose*>(p) = x;
}
inline constexpr int kSumRegisters = kBytes == 64 ? 24 : 12;  // of a tile
inline constexpr int kPadding = 16;  // elements between rows, so that they differ in cache sets

#if RL_RNN_BYTES == 64
[[gnu::always_inline]] inline Lanes<float> fma_lanes(float a, Lanes<float> b, Lanes<float> c) {
  return _mm512_fmadd_ps(_mm512_set1_ps(a), b, c);
}
[[gnu::always_inline]] inline Lanes<double> fma_lanes(double a, Lanes<double> b, Lanes<double> c) {
  return _mm512_fmadd_pd(_mm512_set1_pd(a), b, c);
}
#elif defined(__FMA__)
[[gnu::always_inline]] inline Lanes<float> fma_lanes(float a, Lanes<float> b, Lanes<float> c) {
  return _mm256_fmadd_ps(_mm256_set1_ps(a), b, c);
}
[[gnu::always_inline]] inline Lanes<double> fma_lanes(double a, Lanes<double> b, Lanes<double> c) {
  return _mm256_fmadd_pd(_mm256_set1_pd(a), b, c);
}
#else
template <class T> [[gnu::always_inline]] inline Lanes<T> fma_lanes(T a, Lanes<T> b, Lanes<T> c) { return a * b + c; }
#endif

// c (M, V registers) += a (M, k) @ b (k, V registers); b and c are packed. k registers from `ahead` on are fetched.
template <int M, int V, class T>
[[gnu::noinline]] void tile(int64_t k, const T* a, int64_t lda, const T* b, T* c, const T* ahead) {
  Lanes<T> acc[M][V];
#pragma GCC unroll 16
  for (int r = 0; r < M; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) acc[r][v] = get(c + (r * V + v) * W<T>);
  for (int64_t p = 0; p < k; ++p) {
    Lanes<T> y[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) y[v] = get(b + v * W<T>);
#pragma GCC unroll 16
    for (int r = 0; r < M; ++r) {
      T x = a[r * lda];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[r][v] = fma_lanes(x, y[v], acc[r][v]);
    }
    __builtin_prefetch(ahead, 0, 2);
    ahead += W<T>;
    ++a;
    b += V * W<T>;
  }
#pragma GCC unroll 16
  for (int r = 0; r < M; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) put(c + (r * V + v) * W<T>, acc[r][v]);
}
template <int V> inline constexpr int kTileRows = kSumRegisters / V;
template <int V, class T, int M = kTileRows<V>>
void tile_rows(int64_t rows, int64_t k, const T* a, int64_t lda, const T* b, T* c, const T* ahead) {
  if constexpr (M > 0) {
    if (rows == M) tile<M, V>(k, a, lda, b, c, ahead);
    else tile_rows<V, T, M - 1>(rows, k, a, lda, b, c, ahead);
  }
}

// c (rows, V registers) += a (rows, k) @ b (k, V registers), in tiles of rows. Along the sum it is cut so that a piece
// of b stays in the first-level cache for all rows, while the next one comes to the second-level cache.
template <int V, class T> void panel_product(int64_t rows, int64_t k, const T* a, int64_t lda, const T* b, T* c) {
  constexpr int64_t kWidth = V * W<T>, kSum = (32 << 10) / static_cast<int64_t>(kWidth * sizeof(T));
  int64_t sums = (k + kSum - 1) / kSum, tiles = (rows + kTileRows<V> - 1) / kTileRows<V>;
  for (int64_t s = 0; s < sums; ++s) {
    int64_t p0 = k * s / sums, p1 = k * (s + 1) / sums;
    for (int64_t t = 0; t < tiles; ++t) {
      int64_t r = rows * t / tiles, count = rows * (t + 1) / tiles - r;
      tile_rows<V>(count, p1 - p0, a + r * lda + p0, lda, b + p0 * kWidth, c + r * kWidth,
                   b + p1 * kWidth + t * (p1 - p0) * W<T>);
    }
  }
}
inline constexpr int kRowsAtOnce = 48;  // whose sums are held at a time

inline int64_t up(int64_t x, int64_t step) { return (x + step - 1) / step * step; }
// At most W numbers, zeros behind them.
template <class T> void load(T* to, const T* from, int64_t count) {
  if (count >= W<T>) __builtin_memcpy(to, from, kBytes);
  else
    for (int j = 0; j < W<T>; ++j) to[j] = j < count ? from[j] : T(0);
}
template <class T> void store(T* to, const T* from, int64_t count) {
  if (count >= W<T>) __builtin_memcpy(to, from, kBytes);
  else
    for (int64_t j = 0; j < count; ++j) to[j] = from[j];
}
// The cell's functions of a register; the compiler writes the loops where there is nothing better.
template <auto F, class T> [[gnu::always_inline]] inline Lanes<T> each(Lanes<T> x) {
  alignas(64) T y[W<T>];
  put(y, x);
#pragma GCC ivdep
  for (int j = 0; j < W<T>; ++j) y[j] = F(y[j]);
  return get(y);
}
template <class T> [[gnu::always_inline]] inline Lanes<T> sigmoid_lanes(Lanes<T> x) {
#if RL_RNN_BYTES == 64
  if constexpr (std::is_same_v<T, float>) return sigmoid(static_cast<__m512>(x));
#endif
  return each<[](T v) { return RL_ISA::sigmoid(v); }, T>(x);
}
template <class T> [[gnu::always_inline]] inline Lanes<T> tanh_lanes(Lanes<T> x) {
#if RL_RNN_BYTES == 64
  if constexpr (std::is_same_v<T, float>) return tanh(static_cast<__m512>(x));
#endif
  return each<[](T v) { return RL_ISA::tanh(v); }, T>(x);
}

// Sums and products that a cell needs: kGates gates over panels of kUnits registers of units.
template <RnnCell kCell> struct Cell {
  static constexpr int kGates = kCell == RnnCell::Lstm ? 4 : kCell == RnnCell::Gru ? 3 : 1;
  static constexpr int kUnits = kGates == 1 ? 2 : 1;
  static constexpr int kColumns = kGates * kUnits;                                          // registers of a panel
  static constexpr int kKept = kCell == RnnCell::Lstm ? 5 : kCell == RnnCell::Gru ? 4 : 0;  // for backward
  static constexpr int kDeltas = kGates == 1 ? 1 : 4;                                       // of dgates
};

// Rows of the sequence by step.
struct Walk {
  const RnnShape& shape;
  Scratch<int64_t> first;
  explicit Walk(const RnnShape& s) : shape(s) {
    if (!s.batch_sizes) return;
    first.reset(s.steps);
    for (int64_t t = 0, at = 0; t < s.steps; at += s.batch_sizes[t++]) first[t] = at;
  }
  int64_t count(int64_t t) const { return shape.batch_sizes ? shape.batch_sizes[t] : shape.rows; }
  int64_t row(int64_t t, int64_t r) const {
    return shape.batch_sizes ? first[t] + r : shape.batch_first ? r * shape.steps + t : t * shape.rows + r;
  }
  int64_t row_step() const { return shape.batch_first && !shape.batch_sizes ? shape.steps : 1; }
  int64_t forward(int64_t s) const { return shape.reverse ? shape.steps - 1 - s : s; }  // the s-th step taken
  // The number of the last step taken by row r, of those that forward() counts; -1 for none.
  int64_t last(int64_t r) const {
    if (shape.reverse || !shape.batch_sizes) return count(0) > r ? shape.steps - 1 : -1;
    int64_t low = 0, high = shape.steps;
    while (low < high) {
      int64_t middle = (low + high) / 2;
      if (shape.batch_sizes[middle] > r) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
};

// Nanoseconds of reading weights, from the core's own cache or from the shared one.
inline int64_t reading_ns(int64_t bytes) { return bytes / (bytes <= (3 << 19) ? 55 : 15); }

// Calls step(s, first row, end, first panel, end) for each step in order. Rows go their way alone, so a thread can take
// some of them through all steps; where rows are few or the weights large, it is faster to share each step's panels,
// although the threads meet after each step and read `sent` bytes of each row from each other. The results are the
// same.
template <class Step>
void run_steps(const Walk& walk, int64_t panels, int64_t macs_of_row, int64_t weight_bytes, int64_t sent, Step&& step) {
  int64_t n = walk.shape.rows, steps = walk.shape.steps, threads = std::clamp<int64_t>(panels, 1, num_threads());
  int64_t share = (n + num_threads() - 1) / num_threads(), step_ns = n * macs_of_row / 80;
  int64_t by_rows = std::max(share * macs_of_row / 80, reading_ns(weight_bytes));
  int64_t by_panels = std::max(step_ns / threads, reading_ns(weight_bytes / threads)) + 2000 + n * sent / 4;
  if (num_threads() == 1 || in_parallel() || steps * step_ns < 30000) {
    share = n;
  } else if (threads > 1 && by_panels < by_rows) {
    int64_t grain = std::max<int64_t>(1, by_panels < 30000 ? (panels + threads - 1) / threads : panels / (2 * threads));
    for (int64_t s = 0; s < steps; ++s) {
      int64_t rows = walk.count(walk.forward(s));
      parallel_for(0, panels, grain, [&](int64_t p0, int64_t p1) { step(s, int64_t{0}, rows, p0, p1); });
    }
    return;
  }
  parallel_for(0, n, share, [&](int64_t r0, int64_t r1) {
    for (int64_t s = 0; s < steps; ++s) {
      int64_t end = std::min(r1, walk.count(walk.forward(s)));
      if (end > r0) step(s, r0, end, int64_t{0}, panels);
    }
  });
}
// Blocks of nearly equal height, at most `most`.
template <class Body> void row_blocks(int64_t r0, int64_t r1, int64_t most, Body&& body) {
  int64_t blocks = (r1 - r0 + most - 1) / most;
  for (int64_t b = 0; b < blocks; ++b) {
    int64_t from = r0 + (r1 - r0) * b / blocks, to = r0 + (r1 - r0) * (b + 1) / blocks;
    body(from, to - from);
  }
}

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
  for (int64_t r = 0; r < n; ++r)
    for (int64_t j = 0; j < ld; ++j) {
      T h = j < hidden ? f.h0.as<T>()[r * hidden + j] : T(0);
      states[r * ld + j] = states[(n + r) * ld + j] = h;
      if (kCell == RnnCell::Lstm) cells[r * ld + j] = j < hidden ? f.c0.as<T>()[r * hidden + j] : T(0);
    }
  const int64_t kept_row = units * C::kKept, depth = f.x ? k + hidden : hidden;

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
          if (f.x) {
            __builtin_memcpy(sums + i * kWidth, bx.get() + p * kWidth, kWidth * sizeof(T));
          } else {
            int64_t row = walk.row(t, r + i);
            const T* from = f.gates->as<T>() + (f.gates_at ? f.gates_at[row] : row) * C::kGates * hidden;
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
        panel_product<C::kColumns>(rows, hidden, read + r * ld, ld, wh.get() + p * hidden * kWidth,
                                   kApart ? state_sums : sums);
        for (int64_t i = 0; i < rows; ++i) {
          const T* in = sums + i * kWidth;
          T* h = write + (r + i) * ld + unit;
          int64_t row = walk.row(t, r + i);
          T* kept = f.workspace ? f.workspace->as<T>() + row * kept_row + p * C::kKept * W<T> : nullptr;
          auto keep = [&](auto... values) {
            int at = 0;
            if (kept) (put(kept + W<T> * at++, values), ...);
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
  };
  run_steps(walk, panels, depth * C::kGates * hidden, panels * depth * kWidth * static_cast<int64_t>(sizeof(T)),
            hidden * static_cast<int64_t>(sizeof(T)), step);

  for (int64_t r = 0; r < n; ++r) {
    const T* h = states.get() + ((walk.last(r) + 1) & 1) * n * ld + r * ld;
    for (int64_t j = 0; j < hidden; ++j) {
      f.hn.as<T>()[r * hidden + j] = h[j];
      if (kCell == RnnCell::Lstm) f.cn.as<T>()[r * hidden + j] = cells[r * ld + j];
    }
  }
}

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

template <class F> void visit_cell(RnnCell cell, DType dtype, F&& f) {
  auto with = [&](auto tag) {
    switch (cell) {
      case RnnCell::Lstm: return f(tag, std::integral_constant<RnnCell, RnnCell::Lstm>{});
      case RnnCell::Gru: return f(tag, std::integral_constant<RnnCell, RnnCell::Gru>{});
      case RnnCell::Tanh: return f(tag, std::integral_constant<RnnCell, RnnCell::Tanh>{});
      case RnnCell::Relu: return f(tag, std::integral_constant<RnnCell, RnnCell::Relu>{});
    }
  };
  if (dtype == DType::Float64) with(type_tag<double>{});
  else with(type_tag<float>{});
}

int64_t workspace_of(const RnnShape& shape, DType dtype) {
  int64_t size = 0;
  visit_cell(shape.cell, dtype, [&](auto tag, auto cell) {
    using T = typename decltype(tag)::type;
    using C = Cell<decltype(cell)::value>;
    size = up(shape.hidden, W<T> * C::kUnits) * C::kKept;
  });
  return size;
}
void layer_any(const RnnShape& shape, const RnnForward& f) {
  visit_cell(shape.cell, f.out.dtype,
             [&](auto tag, auto cell) { layer_of<decltype(cell)::value, typename decltype(tag)::type>(shape, f); });
}
void layer_grad_any(const RnnShape& shape, const RnnBackward& b) {
  visit_cell(shape.cell, b.dgates.dtype, [&](auto tag, auto cell) {
    using T = typename decltype(tag)::type;
    // Wide panels read the gradients of the gates less often, narrow ones have fewer units too many.
    if constexpr (std::is_same_v<T, float>)
      if (up(shape.hidden, 4 * W<T>) * 8 > up(shape.hidden, 2 * W<T>) * 9)
        return layer_grad_of<decltype(cell)::value, T, 2>(shape, b);
    layer_grad_of<decltype(cell)::value, T, 4>(shape, b);
  });
}

void input_grad_any(const RnnShape& shape, const View& dx, const View& dgates, const View& w_ih) {
  if (dx.dtype == DType::Float64) input_grad_of<double>(shape, dx, dgates, w_ih);
  else input_grad_of<float>(shape, dx, dgates, w_ih);
}

}  // namespace
}  // namespace rl::RL_ISA
