// Distances between the rows of two matrices. The second one is transposed first, so that the loop over its rows is
// vectors.
#include "backend/distances.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/parallel.h"
#include "cpu/isa.h"
#include "cpu/loops/scratch.h"
#include "cpu/simd/math.h"
#include "cpu/simd/vec.h"

namespace rl::RL_ISA {
namespace {

enum class Kind : uint8_t { Count, Sum, Squares, Largest, Powers };  // of the differences: p = 0, 1, 2, inf, others

template <Kind kKind, class T> RL_INLINE T joined(T sum, T size, T p) {
  switch (kKind) {
    case Kind::Count: return sum + (size != T(0) ? T(1) : T(0));
    case Kind::Sum: return sum + size;
    case Kind::Squares: return fma(size, size, sum);
    case Kind::Largest: return (size > sum) | (size != size) ? size : sum;
    default: return sum + exp(p * log(size));
  }
}
template <Kind kKind, class T> RL_INLINE T finished(T sum, T p) {
  if (kKind == Kind::Squares) return sqrt_(sum);
  return kKind == Kind::Powers ? exp(log(sum) / p) : sum;
}

template <class T> inline constexpr int64_t kSide = 128 / sizeof(T);  // distances that run side by side

// out[0 .. n) = the distances of row a (m elements) from the first W columns of b, whose rows have stride `step`.
template <int64_t W, Kind kKind, class T> [[gnu::always_inline]] inline void some_distances(const T* a, const T* b,
                                                                                            int64_t step, int64_t m,
                                                                                            int64_t n, T p, T* out) {
  T sum[W] = {};
  for (int64_t k = 0; k < m; ++k) {
    const T x = a[k], *row = b + k * step;
    for (int64_t l = 0; l < W; ++l) sum[l] = joined<kKind>(sum[l], abs_(x - row[l]), p);
  }
  for (int64_t l = 0; l < W; ++l) sum[l] = finished<kKind>(sum[l], p);
  if (n == W) std::copy(sum, sum + W, out);
  else std::copy(sum, sum + n, out);
}
// out[j] = the distance of row a from column j of b; n of them, and room to read kSide more.
template <Kind kKind, class T>
[[gnu::flatten]] void distances_from(const T* a, const T* b, int64_t step, int64_t m, int64_t n, T p, T* out) {
  constexpr int64_t W = kSide<T>;
  int64_t j = 0;
  for (; j + W <= n; j += W) some_distances<W, kKind>(a, b + j, step, m, W, p, out + j);
  const int64_t left = n - j;
  if (left == 0) return;
  if (left > W / 2) some_distances<W, kKind>(a, b + j, step, m, left, p, out + j);
  else if (left > W / 4) some_distances<W / 2, kKind>(a, b + j, step, m, left, p, out + j);
  else some_distances<W / 4, kKind>(a, b + j, step, m, left, p, out + j);
}

// The same for a vector of sums; `odd` are the lanes that met NaN, where the largest is wanted.
template <Kind kKind, class V, class O, class T> RL_INLINE void join(V& sum, O& odd, const V& x, const V& y, T p) {
  const V d = x - y, size = d < 0 ? -d : d;
  if constexpr (kKind == Kind::Count) sum += size != V{} ? V{} + T(1) : V{};
  else if constexpr (kKind == Kind::Sum) sum += size;
  else if constexpr (kKind == Kind::Squares) sum += d * d;
  else if constexpr (kKind == Kind::Largest) sum = size > sum ? size : sum, odd |= size != size;
  else
    for (int64_t l = 0; l < kLanes<T>; ++l) sum[l] += exp(p * log(size[l]));
}
// out[i * n + j] = the distances of `rows` rows of a, m elements each, from n columns of b, which are as many as a
// vector has lanes, with zeros behind them. A vector of them is written as a whole, and what is too much by the next
// row.
template <Kind kKind, class T>
void distances_of_few(const T* a, int64_t rows, const T* b, int64_t m, int64_t n, T p, T* out, const T* end) {
  constexpr int64_t W = kLanes<T>;
  using V = Vec<T>;
  for (int64_t i = 0; i < rows; ++i, out += n) {
    V sum{};
    decltype(V{} == V{}) odd{};
    for (int64_t k = 0; k < m; ++k) join<kKind>(sum, odd, V{} + a[i * m + k], load_vec(b + k * W), p);
    if constexpr (kKind == Kind::Largest) sum = odd ? V{} + std::numeric_limits<T>::quiet_NaN() : sum;
    if constexpr (kKind == Kind::Squares || kKind == Kind::Powers)
      for (int64_t l = 0; l < W; ++l) sum[l] = finished<kKind>(sum[l], p);
    if (end - out >= W) {
      store_vec(out, sum);
    } else {
      for (int64_t l = 0; l < n; ++l) out[l] = sum[l];
    }
  }
}

// The distance of two rows of m elements, along them: for a few rows, which would not fill registers side by side.
template <Kind kKind, class T> T distance_along(const T* a, const T* b, int64_t m, T p) {
  constexpr int64_t W = kLanes<T>;
  using V = Vec<T>;
  V sum{}, more{};
  decltype(V{} == V{}) odd{};
  int64_t k = 0;
  for (; k + 2 * W <= m; k += 2 * W) {
    join<kKind>(sum, odd, load_vec(a + k), load_vec(b + k), p);
    join<kKind>(more, odd, load_vec(a + k + W), load_vec(b + k + W), p);
  }
  for (; k < m; k += W) {  // the last ones beside zeros, which add nothing
    T x[W] = {}, y[W] = {};
    const int64_t left = std::min(W, m - k);
    std::copy(a + k, a + k + left, x);
    std::copy(b + k, b + k + left, y);
    join<kKind>(sum, odd, load_vec(x), load_vec(y), p);
  }
  if constexpr (kKind == Kind::Largest) sum = more > sum ? more : sum;
  else sum += more;
  T total = sum[0];
  for (int64_t l = 1; l < W; ++l) {
    if constexpr (kKind == Kind::Largest) total = sum[l] > total ? sum[l] : total;
    else total += sum[l];
  }
  if (kKind == Kind::Largest && lane_bits(odd)) return std::numeric_limits<T>::quiet_NaN();
  return finished<kKind>(total, p);
}
template <Kind kKind, class T>
void distances_along(const T* a, const T* b, int64_t step, int64_t m, int64_t n, T p, T* out) {
  for (int64_t j = 0; j < n; ++j) out[j] = distance_along<kKind>(a, b + j * step, m, p);
}
constexpr int64_t kFewRows = 12, kLongRow = 16;

template <Kind kKind, class T> void distances_as(const View& out, const View& a, const View& b, T p, bool upper) {
  const int64_t batch = a.sizes[0], rows = a.sizes[1], m = a.sizes[2], n = b.sizes[1];
  const bool along = !upper && n <= kFewRows && m >= kLongRow, few = !upper && !along && n <= kLanes<T>;
  // Beyond the last rows there is room to read.
  const int64_t step = few ? kLanes<T> : (n + kSide<T> - 1) / kSide<T> * kSide<T> + kSide<T>;
  const int64_t work = std::max<int64_t>(1, n * (m + 1) / (kKind == Kind::Powers ? 1 : 8));
  const int64_t grain = std::max<int64_t>(1, 16384 / work);
  const int64_t batches = 16384 / std::max<int64_t>(1, (few ? std::max(work, 2 * (m + 8)) : work) * rows);
  parallel_for(0, batch, std::max<int64_t>(1, batches), [&](int64_t first, int64_t last) {
    Scratch<T> transposed(along ? 0 : m * step);
    for (int64_t s = first; s < last; ++s) {
      const T *x = a.as<T>() + s * rows * m, *y = b.as<T>() + s * n * m;
      T* to = out.as<T>() + s * rows * n;
      if (along) {
        for (int64_t i = 0; i < rows; ++i) distances_along<kKind>(x + i * m, y, m, m, n, p, to + i * n);
        continue;
      }
      for (int64_t k = 0; k < m; ++k) {
        T* row = transposed.get() + k * step;
        for (int64_t j = 0; j < n; ++j) row[j] = y[j * m + k];
        for (int64_t j = n; j < step; ++j) row[j] = T(0);
      }
      if (few && rows <= grain) {
        distances_of_few<kKind>(x, rows, transposed.get(), m, n, p, to, out.as<T>() + last * rows * n);
        continue;
      }
      parallel_for(0, rows, grain, [&](int64_t i0, int64_t i1) {
        if (few)
          return distances_of_few<kKind>(x + i0 * m, i1 - i0, transposed.get(), m, n, p, to + i0 * n, to + i1 * n);
        for (int64_t i = i0; i < i1; ++i) {
          // The upper triangle without its diagonal lies row behind row.
          const int64_t skip = upper ? i + 1 : 0;
          distances_from<kKind>(x + i * m, transposed.get() + skip, step, m, n - skip, p,
                                upper ? out.as<T>() + i * n - i * (i + 1) / 2 : to + i * n);
        }
      });
    }
  });
}
template <class T> void distances_of(const View& out, const View& a, const View& b, double p, bool upper) {
  const T power = static_cast<T>(p);
  if (p == 0) distances_as<Kind::Count>(out, a, b, power, upper);
  else if (p == 1) distances_as<Kind::Sum>(out, a, b, power, upper);
  else if (p == 2) distances_as<Kind::Squares>(out, a, b, power, upper);
  else if (p == HUGE_VAL) distances_as<Kind::Largest>(out, a, b, power, upper);
  else distances_as<Kind::Powers>(out, a, b, power, upper);
}

void distances(const View& out, const View& a, const View& b, double p, bool upper) {
  if (out.dtype == DType::Float32) distances_of<float>(out, a, b, p, upper);
  else distances_of<double>(out, a, b, p, upper);
}

// sum += dy times the derivative of the distance y of the rows x and o by x.
template <Kind kKind, class T>
[[gnu::flatten]] void add_gradient(const T* x, const T* o, int64_t m, T y, T dy, T* __restrict sum) {
  T factor = dy;
  if (kKind == Kind::Squares) factor = y == T(0) ? dy * T(0) : dy / y;
#pragma GCC ivdep
  for (int64_t k = 0; k < m; ++k) {
    const T d = x[k] - o[k], sign = (d > T(0) ? T(1) : T(0)) - (d < T(0) ? T(1) : T(0));
    if (kKind == Kind::Squares) sum[k] += factor * d;
    else if (kKind == Kind::Sum) sum[k] += factor * sign;
    else sum[k] += sign * (abs_(d) == y ? T(1) : T(0)) * factor;  // all of it to each that reaches the largest
  }
}
template <Kind kKind, class T> void gradient_of(const View& da, const View& a, const View& b, const View& y,
                                                const View& dy, bool transposed, bool upper) {
  constexpr int64_t kSome = 64;  // rows that are summed by themselves: rounding errors grow with their number
  const int64_t rows = a.sizes[1], m = a.sizes[2], n = b.sizes[1];
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, n * (m + 8)));
  parallel_for(0, a.sizes[0] * rows, grain, [&](int64_t first, int64_t last) {
    Scratch<T> part(m);
    for (int64_t r = first; r < last; ++r) {
      const int64_t s = r / rows, i = r % rows;
      const T *x = a.as<T>() + r * m, *others = b.as<T>() + s * n * m;
      T* to = da.as<T>() + r * m;
      std::fill(to, to + m, T(0));
      for (int64_t from = 0; from < n; from += kSome) {
        std::fill(part.get(), part.get() + m, T(0));
        for (int64_t j = from; j < std::min(n, from + kSome); ++j) {
          if (upper && i == j) continue;
          const int64_t low = std::min(i, j), high = std::max(i, j);
          const int64_t at = upper        ? low * n - low * (low + 1) / 2 + high - low - 1
                             : transposed ? (s * n + j) * rows + i
                                          : r * n + j;
          add_gradient<kKind>(x, others + j * m, m, y.as<T>()[at], dy.as<T>()[at], part.get());
        }
        for (int64_t k = 0; k < m; ++k) to[k] += part[k];
      }
    }
  });
}
template <class T> void gradient_as(const View& da, const View& a, const View& b, const View& y, const View& dy,
                                    double p, bool transposed, bool upper) {
  if (p == 1) gradient_of<Kind::Sum, T>(da, a, b, y, dy, transposed, upper);
  else if (p == 2) gradient_of<Kind::Squares, T>(da, a, b, y, dy, transposed, upper);
  else gradient_of<Kind::Largest, T>(da, a, b, y, dy, transposed, upper);
}
void gradient(const View& da, const View& a, const View& b, const View& y, const View& dy, double p, bool transposed,
              bool upper) {
  if (da.dtype == DType::Float32) gradient_as<float>(da, a, b, y, dy, p, transposed, upper);
  else gradient_as<double>(da, a, b, y, dy, p, transposed, upper);
}

}  // namespace

extern const DistanceKernels distance_kernels;
const DistanceKernels distance_kernels = {distances, gradient};

}  // namespace rl::RL_ISA
