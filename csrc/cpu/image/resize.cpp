// Resizing of one dimension: every result is a weighted sum of a few elements.
#include <algorithm>

#include "backend/resample.h"
#include "base/check.h"
#include "base/parallel.h"
#include "cpu/isa.h"
#include "cpu/loops/scratch.h"
#include "cpu/reduce/pairwise_sum.h"
#include "cpu/simd/transpose.h"
#include "cpu/simd/vec.h"

namespace rl::RL_ISA {
namespace {

constexpr int64_t kWork = 16384;  // products worth a piece

// One row of `inner` neighbours: out = sum of w[k] * row[source[k]].
template <int K, class T, class C>
void mix_row(T* __restrict out, const T* in, const int64_t* source, const C* w, int64_t inner) {
  const T* row[K];
  for (int k = 0; k < K; ++k) row[k] = in + source[k] * inner;
#pragma GCC ivdep
  for (int64_t i = 0; i < inner; ++i) {
    C sum = static_cast<C>(row[0][i]) * w[0];
    for (int k = 1; k < K; ++k) sum += static_cast<C>(row[k][i]) * w[k];
    out[i] = static_cast<T>(sum);
  }
}

// Lines [first, last): of `inner` elements that are one result each, or of n_out single elements.
template <int K, class T, class C>
void mix(const ResizeTable& s, T* out, const T* in, const C* weights, int64_t first, int64_t last) {
  if (s.inner > 1) {
    for (int64_t r = first; r < last; ++r) {
      const int64_t o = r / s.n_out, j = r % s.n_out;
      mix_row<K, T, C>(out + r * s.inner, in + o * s.n_in * s.inner, s.sources + j * K, weights + j * K, s.inner);
    }
    return;
  }
  for (int64_t o = first; o < last; ++o) {
    const T* from = in + o * s.n_in;
    T* to = out + o * s.n_out;
    for (int64_t j = 0; j < s.n_out; ++j) {
      C sum = static_cast<C>(from[s.sources[j * K]]) * weights[j * K];
      for (int k = 1; k < K; ++k) sum += static_cast<C>(from[s.sources[j * K + k]]) * weights[j * K + k];
      to[j] = static_cast<T>(sum);
    }
  }
}

// Which elements a result takes: as many for each, or as `begin` says.
struct Taken {
  const int64_t* sources;
  int taps;
  const int64_t* begin = nullptr;
  int64_t first(int64_t j) const { return begin ? begin[j] : j * taps; }
  int count(int64_t j) const { return begin ? static_cast<int>(begin[j + 1] - begin[j]) : taps; }
};

// The weights in the type of the computation. Those of bytes are whole numbers of 15 bits, in units of 2^-shift.
template <class T> struct Weights {
  using C = std::conditional_t<std::is_same_v<T, uint8_t>, int32_t, compute_t<T>>;
  Scratch<C> w;
  int shift = 0;

  explicit Weights(const ResizeTable& s) : Weights(s.weights, s.n_out * s.taps) {}
  Weights(const double* from, int64_t n) : w(n) {
    if constexpr (std::is_same_v<T, uint8_t>) {
      const double most = *std::max_element(from, from + n);
      while (shift < 22 && static_cast<int>(0.5 + most * (1 << (shift + 1))) < 1 << 15) ++shift;
      for (int64_t i = 0; i < n; ++i) w[i] = static_cast<int32_t>(from[i] * (1 << shift) + (from[i] < 0 ? -0.5 : 0.5));
    } else {
      for (int64_t i = 0; i < n; ++i) w[i] = static_cast<C>(from[i]);
    }
  }
  C* get() const { return w.get(); }
  C start() const { return shift ? C(1 << (shift - 1)) : C(0); }
  T finish(C sum) const {
    if constexpr (std::is_same_v<T, uint8_t>) return static_cast<uint8_t>(std::clamp(sum >> shift, 0, 255));
    else return static_cast<T>(sum);
  }
};

template <class C, class T> [[gnu::always_inline]] inline Vec<C> load_as(const T* p) {
  if constexpr (std::is_same_v<T, C>) return load_vec(p);
  if constexpr (std::is_same_v<T, uint8_t> && std::is_same_v<C, int32_t>) return simd::Of<Vec<C>>::widen(p);
  Vec<C> v;
  for (int i = 0; i < kLanes<C>; ++i) v[i] = static_cast<C>(p[i]);
  return v;
}
// Sums of a vector or two to results.
template <int kCount, class C, class T>
[[gnu::always_inline]] inline void store_as(T* to, const Vec<C>* sums, const Weights<T>& weights) {
#ifdef __AVX2__
  if constexpr (std::is_same_v<T, uint8_t>) {
    auto packed = [&](Vec<int32_t> x) {
      x >>= weights.shift;
      return __builtin_ia32_packusdw128(__builtin_shufflevector(x, x, 0, 1, 2, 3),
                                        __builtin_shufflevector(x, x, 4, 5, 6, 7));
    };
#pragma GCC unroll 4
    for (int v = 0; v < kCount; v += 2) {
      const auto bytes = __builtin_ia32_packuswb128(packed(sums[v]), packed(sums[v + 1]));
      __builtin_memcpy(to + v * kLanes<C>, &bytes, sizeof bytes);
    }
    return;
  }
#endif
#pragma GCC unroll 16
  for (int v = 0; v < kCount; ++v) {
    if constexpr (std::is_same_v<T, C>) {
      store_vec(to + v * kLanes<C>, sums[v]);
    } else {
      for (int i = 0; i < kLanes<C>; ++i) to[v * kLanes<C> + i] = weights.finish(sums[v][i]);
    }
  }
}
// kCount neighbours: to[l] = the sum over k of w[k] * from[source[k] * stride + l], in registers. The compiler would
// take several taps together instead of neighbours.
template <int64_t kCount, class T, class C, class W>
[[gnu::always_inline]] inline void add_taps(const W* from, int64_t stride, const int64_t* source, const C* w, int taps,
                                            const Weights<T>& weights, W* to) {
  constexpr int kVectors = kCount / kLanes<C>;
  Vec<C> sums[kVectors];
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) sums[v] = Vec<C>{} + weights.start();
  for (int k = 0; k < taps; ++k) {
    const W* row = from + source[k] * stride;
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) sums[v] += load_as<C>(row + v * kLanes<C>) * w[k];
  }
  if constexpr (std::is_same_v<W, T>) {
    store_as<kVectors, C>(to, sums, weights);
  } else {
    for (int v = 0; v < kVectors; ++v) store_vec(to + v * kLanes<C>, sums[v]);
  }
}

// The same for any number of taps: rows [first, last) of the result, of all outer ones.
template <class T> void mix_many(const ResizeTable& s, const Taken& taken, T* out, const T* in,
                                 const Weights<T>& weights, int64_t first, int64_t last) {
  using C = typename Weights<T>::C;
  constexpr int64_t kLong = 32;  // what stays in registers while the taps are added
  for (int64_t r = first; r < last; ++r) {
    const int64_t j = r % s.n_out;
    const T* from = in + r / s.n_out * s.n_in * s.inner;
    const int taps = taken.count(j);
    const int64_t* source = taken.sources + taken.first(j);
    const C* w = weights.get() + taken.first(j);
    T* line = out + r * s.inner;
    int64_t i = 0;
    for (; i + kLong <= s.inner; i += kLong) add_taps<kLong>(from + i, s.inner, source, w, taps, weights, line + i);
    for (; i < s.inner; ++i) {
      C sum = weights.start();
      for (int k = 0; k < taps; ++k) sum += static_cast<C>(from[source[k] * s.inner + i]) * w[k];
      line[i] = weights.finish(sum);
    }
  }
}

// Rows that are resized along themselves: kRows of them stand in the lanes of registers, and are transposed on their
// way in and out. A band of results reads a window of the input.
constexpr int64_t kRows = 16, kBand = 256;
template <class A, class B>  // to[j][i] = from[i][j] for i < rows, j < n
void transpose(const A* from, int64_t from_row, int64_t rows, int64_t n, B* to, int64_t to_row) {
  if constexpr (std::is_same_v<A, B>) {
    using U = std::conditional_t<sizeof(A) == 4, uint32_t, std::conditional_t<sizeof(A) == 1, uint8_t, uint64_t>>;
    transpose_tile<U>(reinterpret_cast<char*>(to), to_row * static_cast<int64_t>(sizeof(A)),
                      reinterpret_cast<const char*>(from), from_row * static_cast<int64_t>(sizeof(A)), n, rows);
  } else {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < n; ++j) to[j * to_row + i] = static_cast<B>(from[i * from_row + j]);
  }
}
// Pieces are numbered (group of rows, band).
template <class T> void mix_lanes(const ResizeTable& s, const Taken& taken, T* out, const T* in,
                                  const Weights<T>& weights, int64_t first, int64_t last) {
  using C = typename Weights<T>::C;
  using W = std::conditional_t<is_half_v<T>, C, T>;
  const int64_t bands = (s.n_out + kBand - 1) / kBand;
  Scratch<W> window, results(std::min(kBand, s.n_out) * kRows);
  int64_t held = 0;
  for (int64_t piece = first; piece < last; ++piece) {
    const int64_t r0 = piece / bands * kRows, rows = std::min(kRows, s.outer - r0);
    const int64_t j0 = piece % bands * kBand, n = std::min(kBand, s.n_out - j0);
    const int64_t *begin = taken.sources + taken.first(j0), *end = taken.sources + taken.first(j0 + n);
    const auto [least, most] = std::minmax_element(begin, end);
    const int64_t low = begin < end ? *least : 0, high = begin < end ? *most + 1 : 0;
    if (high - low > held) window.reset((held = high - low) * kRows);
    if (rows < kRows) std::fill_n(window.get(), (high - low) * kRows, W(0));  // lanes without a row
    if (low < high) transpose(in + r0 * s.n_in + low, s.n_in, rows, high - low, window.get(), kRows);
    for (int64_t j = j0; j < j0 + n; ++j)
      add_taps<kRows>(window.get() - low * kRows, kRows, taken.sources + taken.first(j), weights.get() + taken.first(j),
                      taken.count(j), weights, results.get() + (j - j0) * kRows);
    transpose(results.get(), kRows, n, rows, out + r0 * s.n_out + j0, s.n_out);
  }
}
template <class T>
void resize_many(const ResizeTable& s, const Taken& taken, const View& out, const View& in, const Weights<T>& w) {
  const bool lanes = s.inner == 1 && s.outer >= kRows / 2;
  const int64_t bands = (s.n_out + kBand - 1) / kBand;
  const int64_t pieces = lanes ? (s.outer + kRows - 1) / kRows * bands : s.outer * s.n_out;
  const int64_t work = s.taps * (lanes ? kRows * std::min(kBand, s.n_out) : s.inner);
  parallel_for(0, pieces, std::max<int64_t>(1, kWork / work), [&](int64_t first, int64_t last) {
    if (lanes) mix_lanes<T>(s, taken, out.as<T>(), in.as<T>(), w, first, last);
    else mix_many<T>(s, taken, out.as<T>(), in.as<T>(), w, first, last);
  });
}

}  // namespace

void resize(const ResizeTable& s, const View& out, const View& in) {
  if (out.dtype == DType::UInt8) return resize_many(s, {s.sources, s.taps}, out, in, Weights<uint8_t>(s));
  visit_float(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    Weights<T> w(s);
    // Rows that grow along themselves run side by side.
    const bool lanes = s.inner == 1 && s.outer >= kRows && s.n_out >= s.n_in && s.taps > 1;
    if (lanes || (s.taps != 1 && s.taps != 2 && s.taps != 4)) return resize_many(s, {s.sources, s.taps}, out, in, w);
    const bool rows = s.inner > 1;
    const int64_t work = s.taps * (rows ? s.inner : s.n_out);
    parallel_for(0, rows ? s.outer * s.n_out : s.outer, std::max<int64_t>(1, kWork / work),
                 [&](int64_t first, int64_t last) {
                   auto run = s.taps == 1 ? mix<1, T, C> : s.taps == 2 ? mix<2, T, C> : mix<4, T, C>;
                   run(s, out.as<T>(), in.as<T>(), w.get(), first, last);
                 });
  });
}

// What an element gave to results, it takes from their gradients: the table transposed, with as many taps for each as
// there are.
void resize_grad(const ResizeTable& s, const View& dx, const View& dy) {
  const int64_t n = s.n_out * s.taps;
  Scratch<int64_t> begin(s.n_in + 2), sources(n);
  Scratch<double> weights(n);
  // Counted two entries on: when each tap has found its slot, the entry one on is where a result's taps begin.
  std::fill_n(begin.get(), s.n_in + 2, int64_t{0});
  for (int64_t i = 0; i < n; ++i) ++begin[s.sources[i] + 2];
  for (int64_t i = 0; i < s.n_in; ++i) begin[i + 2] += begin[i + 1];
  for (int64_t j = 0, i = 0; j < s.n_out; ++j)
    for (int k = 0; k < s.taps; ++k, ++i) {
      const int64_t at = begin[s.sources[i] + 1]++;
      sources[at] = j, weights[at] = s.weights[i];
    }
  ResizeTable transposed = s;
  transposed.n_in = s.n_out, transposed.n_out = s.n_in, transposed.sources = sources.get(),
  transposed.weights = weights.get();
  visit_float(dx.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    resize_many(transposed, {sources.get(), s.taps, begin.get()}, dx, dy, Weights<T>(weights.get(), n));
  });
}

}  // namespace rl::RL_ISA
