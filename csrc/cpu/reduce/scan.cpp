// Running totals and running extrema along one dimension.
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/check.h"
#include "base/interrupt.h"
#include "cpu/isa.h"
#include "cpu/loops/rows.h"
#include "cpu/reduce/kernels.h"
#include "cpu/simd/vec.h"

namespace rl::RL_ISA {
namespace {

constexpr int64_t kColumns = 256;
constexpr int64_t kScanWork = 16384;

// float32 totals run in double, half in float, integers modulo 2^64.
template <class T> struct total_type {
  using type = T;
};
template <> struct total_type<float> {
  using type = double;
};
template <> struct total_type<float16> {
  using type = float;
};
template <> struct total_type<bfloat16> {
  using type = float;
};
template <> struct total_type<std::complex<float>> {
  using type = std::complex<double>;
};
template <> struct total_type<bool> {
  using type = uint64_t;
};
template <> struct total_type<uint8_t> {
  using type = uint64_t;
};
template <> struct total_type<int8_t> {
  using type = uint64_t;
};
template <> struct total_type<int16_t> {
  using type = uint64_t;
};
template <> struct total_type<int32_t> {
  using type = uint64_t;
};
template <> struct total_type<int64_t> {
  using type = uint64_t;
};

struct Plus {
  template <class A> static A empty() { return A(0); }
  template <class A> [[gnu::always_inline]] static A join(A a, A b) { return a + b; }
};
struct Times {
  template <class A> static A empty() { return A(1); }
  template <class A> [[gnu::always_inline]] static A join(A a, A b) { return a * b; }
};
// log(e^a + e^b) without leaving the range of the type.
struct LogPlus {
  template <class A> static A empty() {
    if constexpr (is_complex_v<A>) return {-std::numeric_limits<typename A::value_type>::infinity(), 0};
    else return -std::numeric_limits<A>::infinity();
  }
  template <class A> static A join(A a, A b) {
    if constexpr (is_complex_v<A>) {
      using R = typename A::value_type;
      if (std::isnan(a.real()) || std::isnan(a.imag()) || std::isnan(b.real()) || std::isnan(b.imag()))
        return {std::numeric_limits<R>::quiet_NaN(), std::numeric_limits<R>::quiet_NaN()};
      A low = a.real() < b.real() ? a : b, high = a.real() < b.real() ? b : a;
      if (std::isinf(low.real()) && low.real() < 0) return high;
      if (std::isinf(high.real()) && low.real() == high.real()) return std::log(std::exp(a) + std::exp(b));
      return high + std::log(A(1) + std::exp(low - high));
    } else {
      if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<A>::quiet_NaN();
      A low = a < b ? a : b, high = a < b ? b : a;
      if (low == high && std::isinf(low)) return low;
      return high + std::log1p(std::exp(low - high));
    }
  }
};

// y = the running totals of x from `total` on, which becomes the last one.
template <class Op, class T, class A>
[[gnu::always_inline]] inline void scan_part(const T* x, int64_t xs, T* y, int64_t ys, int64_t n, A& total) {
  int64_t i = 0;
  if constexpr (__is_same(Op, Plus) && __is_same(A, double)) {
    // Four at a time: the chain of additions is the limit, and this makes it a quarter as long.
    if (xs == 1 && ys == 1) {
      for (; i + 4 <= n; i += 4) {
        double a = x[i], b = x[i + 1], c = x[i + 2], d = x[i + 3];
        double ab = a + b, abc = ab + c, abcd = ab + (c + d);
        y[i] = static_cast<T>(total + a);
        y[i + 1] = static_cast<T>(total + ab);
        y[i + 2] = static_cast<T>(total + abc);
        total += abcd;
        y[i + 3] = static_cast<T>(total);
      }
    }
  }
  for (; i < n; ++i) {
    total = Op::join(total, static_cast<A>(x[i * xs]));
    y[i * ys] = static_cast<T>(total);
  }
}
template <class Op, class T>
[[gnu::always_inline]] inline void scan_row(const T* x, int64_t xs, T* y, int64_t ys, int64_t n) {
  using A = typename total_type<T>::type;
  A total = Op::template empty<A>();
  scan_part<Op>(x, xs, y, ys, n, total);
}
// In parts, after each of which Ctrl-C is noticed.
template <class Op, class T> void scan_long_row(const T* x, int64_t xs, T* y, int64_t ys, int64_t n) {
  constexpr int64_t kPart = int64_t{1} << 18;
  using A = typename total_type<T>::type;
  A total = Op::template empty<A>();
  for (int64_t i = 0; i < n && !stops_at(i); i += kPart)
    scan_part<Op>(x + i * xs, xs, y + i * ys, ys, std::min(kPart, n - i), total);
}

// Few columns: their totals stay in registers.
template <class Op, int W, class T> void scan_few_columns(const T* x, int64_t xs, T* y, int64_t ys, int64_t n) {
  using A = typename total_type<T>::type;
  A total[W];
#pragma GCC unroll 8
  for (int j = 0; j < W; ++j) total[j] = Op::template empty<A>();
  for (int64_t r = 0; r < n; ++r, x += xs, y += ys)
#pragma GCC unroll 8
    for (int j = 0; j < W; ++j) {
      total[j] = Op::join(total[j], static_cast<A>(x[j]));
      y[j] = static_cast<T>(total[j]);
    }
}
// `count` short rows of N contiguous elements, with strides xs and ys.
template <class Op, int N, class T> void scan_short_rows(const T* x, int64_t xs, T* y, int64_t ys, int64_t count) {
  for (int64_t r = 0; r < count; ++r) scan_row<Op>(x + r * xs, 1, y + r * ys, 1, N);
}
constexpr int64_t kFew = 8;
// What is worth loops of its own.
template <class Op, class T> inline constexpr bool kPlain =
    __is_same(Op, Plus) &&
    (__is_same(T, float) || __is_same(T, double) || __is_same(T, int64_t) || __is_same(T, int32_t));
template <class F> [[gnu::always_inline]] inline void visit_few(int64_t n, F&& f) {
  switch (n) {
    case 1: return f(std::integral_constant<int, 1>{});
    case 2: return f(std::integral_constant<int, 2>{});
    case 3: return f(std::integral_constant<int, 3>{});
    case 4: return f(std::integral_constant<int, 4>{});
    case 5: return f(std::integral_constant<int, 5>{});
    case 6: return f(std::integral_constant<int, 6>{});
    case 7: return f(std::integral_constant<int, 7>{});
    default: return f(std::integral_constant<int, 8>{});
  }
}

template <class Op, class T>
void scan_columns(const T* x, int64_t xs, T* y, int64_t ys, int64_t n, int64_t width, int64_t xstep, int64_t ystep) {
  using A = typename total_type<T>::type;
  if constexpr (kPlain<Op, T>)
    if (width <= kFew && xstep == 1 && ystep == 1)
      return visit_few(width, [&](auto w) { scan_few_columns<Op, w()>(x, xs, y, ys, n); });
  alignas(64) A total[kColumns];
  for (int64_t j = 0; j < width; ++j) total[j] = Op::template empty<A>();
  for (int64_t r = 0; r < n && !stops_at(r); ++r) {
    const T* p = x + r * xs;
    T* q = y + r * ys;
    if (xstep == 1 && ystep == 1) {
#pragma GCC ivdep
      for (int64_t j = 0; j < width; ++j) {
        total[j] = Op::join(total[j], static_cast<A>(p[j]));
        q[j] = static_cast<T>(total[j]);
      }
    } else {
      for (int64_t j = 0; j < width; ++j) {
        total[j] = Op::join(total[j], static_cast<A>(p[j * xstep]));
        q[j * ystep] = static_cast<T>(total[j]);
      }
    }
  }
}

template <class Op, class T> void scan_of(const View& out, const View& in, int dim) {
  const View* const views[2] = {&in, &out};
  Rows<2> rows(views, dim);
  int64_t n = rows.length[0];
  if (n == 0 || rows.count == 0) return;
  const T* x = in.as<T>();
  T* y = out.as<T>();
  int64_t cost = __is_same(Op, LogPlus) ? 20 : 1;
  if (rows.count > 1 && rows.step[0][0] < rows.stride[0]) {
    int64_t width = std::min(kColumns, rows.size[0]);
    rows.each_group(kColumns, kScanWork / (n * width * cost), [&](const int64_t* at, int64_t w) {
      scan_columns<Op>(x + at[0], rows.stride[0], y + at[1], rows.stride[1], n, w, rows.step[0][0], rows.step[1][0]);
    });
  } else {
    if constexpr (kPlain<Op, T>)
      if (n <= kFew && rows.stride[0] == 1 && rows.stride[1] == 1)
        return rows.each_group(kScanWork / n, 1, [&](const int64_t* at, int64_t count) {
          visit_few(n, [&](auto length) {
            scan_short_rows<Op, length()>(x + at[0], rows.step[0][0], y + at[1], rows.step[1][0], count);
          });
        });
    rows.each(kScanWork / (n * cost),
              [&](const int64_t* at) { scan_long_row<Op>(x + at[0], rows.stride[0], y + at[1], rows.stride[1], n); });
  }
}

// The extremum so far, and its index, of one element after the other.
template <bool largest, class T> struct Extremum {
  using C = compute_t<T>;
  C best;
  int64_t index = 0;
  bool takes(C c) const {
    bool take = largest ? c >= best : c <= best;
    if constexpr (is_floating_v<T>) take = (take & (best == best)) | (c != c);
    return take;
  }
};

// A long row in blocks: those whose elements all leave the extremum where it is, ever more of them, are filled.
template <bool largest, class T> void extremum_row(const T* x, T* v, int64_t* p, int64_t n) {
  constexpr int64_t kFilled = 32;
  Extremum<largest, T> so_far{static_cast<compute_t<T>>(x[0])};
  for (int64_t i = 0; i < n && !stops_at(i); i += kFilled) {
    const int64_t m = std::min(kFilled, n - i);
    if (m == kFilled) {
      int some = 0;
      for (int64_t j = 0; j < kFilled; ++j) some |= so_far.takes(static_cast<compute_t<T>>(x[i + j]));
      if (!some) {
        for (int64_t j = 0; j < kFilled; ++j) v[i + j] = static_cast<T>(so_far.best);
        for (int64_t j = 0; j < kFilled; ++j) p[i + j] = so_far.index;
        continue;
      }
    }
    for (int64_t j = i; j < i + m; ++j) {
      const auto c = static_cast<compute_t<T>>(x[j]);
      if (so_far.takes(c)) so_far.best = c, so_far.index = j;
      v[j] = static_cast<T>(so_far.best);
      p[j] = so_far.index;
    }
  }
}

template <bool largest, class T> void extremum_of(const View& values, const View& indices, const View& in, int dim) {
  using C = compute_t<T>;
  const View* const views[3] = {&in, &values, &indices};
  Rows<3> rows(views, dim);
  int64_t n = rows.length[0];
  if (n == 0) return;
  rows.each(kScanWork / (n + 8), [&](const int64_t* at) {
    const T* x = in.as<T>() + at[0];
    T* v = values.as<T>() + at[1];
    int64_t* p = indices.as<int64_t>() + at[2];
    // A long row's extremum changes ever more seldom; that of a short one at any index, which no jump foresees.
    const bool jumps = n > 48;
    if (jumps && rows.stride[0] == 1 && rows.stride[1] == 1 && rows.stride[2] == 1)
      return extremum_row<largest>(x, v, p, n);
    Extremum<largest, T> so_far{static_cast<C>(x[0])};
    for (int64_t i = 0; i < n && !stops_at(i); ++i) {
      const C c = static_cast<C>(x[i * rows.stride[0]]);
      const bool take = so_far.takes(c);
      if (jumps) {
        if (take) so_far.best = c, so_far.index = i;
      } else {
        so_far.best = take ? c : so_far.best;
        const int64_t mask = -static_cast<int64_t>(take);
        so_far.index = (i & mask) | (so_far.index & ~mask);
      }
      v[i * rows.stride[1]] = static_cast<T>(so_far.best);
      p[i * rows.stride[2]] = so_far.index;
    }
  });
}

}  // namespace

void scan(Scan op, const View& out, const View& in, int dim) {
  bool done = visit_compute(in.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    switch (op) {
      case Scan::Sum: return scan_of<Plus, T>(out, in, dim);
      case Scan::Prod: return scan_of<Times, T>(out, in, dim);
      case Scan::LogSumExp:
        if constexpr (is_floating_v<T> || is_complex_v<T>) return scan_of<LogPlus, T>(out, in, dim);
        fail(ErrorKind::Runtime, "logcumsumexp is not defined for ", info(in.dtype).name);
    }
  });
  CHECK(done, Runtime, "running totals are not defined for ", info(in.dtype).name);
}

void scan_extremum(bool largest, const View& values, const View& indices, const View& in, int dim) {
  visit_compute(in.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!is_complex_v<T>) {
      if (largest) extremum_of<true, T>(values, indices, in, dim);
      else extremum_of<false, T>(values, indices, in, dim);
    }
  });
}

}  // namespace rl::RL_ISA
