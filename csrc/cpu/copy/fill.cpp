#include "cpu/copy/fill.h"

#include <cmath>
#include <cstring>

#include "cpu/loops/bytes.h"
#include "cpu/loops/nest.h"
#include "cpu/simd/cast.h"
#include "cpu/simd/transpose.h"

namespace rl::RL_ISA {

namespace {

template <class U> void fill_run(char* out, int64_t step, int64_t n, U v) {
  if (step == static_cast<int64_t>(sizeof(U))) {
    repeat_item(out, v, n);
  } else {
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<U*>(out + i * step) = v;
  }
}

// Conversion of a computed number to the element type.
template <class T, class V> T element(V v) {
  if constexpr (__is_same(T, complex32)) return T(cast_one<std::complex<float>>(v));
  else return cast_one<T>(v);
}

bool is_integer(DType t) { return is_integral(t, true); }

// out[i] = f(i) as T for a one-dimensional view.
template <class T, class F> void generate(const View& out, F&& f) {
  int64_t n = out.ndim ? out.sizes[0] : 1, step = out.ndim ? out.strides[0] : 1;
  T* o = out.as<T>();
  auto piece = [&](int64_t first, int64_t last) {
    if (step == 1) {
      for (int64_t i = first; i < last; ++i) o[i] = element<T>(f(i));
    } else {
      for (int64_t i = first; i < last; ++i) o[i * step] = element<T>(f(i));
    }
  };
  constexpr int64_t kGrain = 32768;
  if (n <= kGrain) return piece(0, n);
  parallel_for(0, n, even_grain(n, kGrain), piece);
}

// The same for f of the number of an element as a double. It is counted in 32 bits from the start of a piece, since
// only those have a conversion on vectors; the sum is exact.
template <class T, class F> void generate_values(const View& out, F&& f) {
  const int64_t n = out.ndim ? out.sizes[0] : 1, step = out.ndim ? out.strides[0] : 1;
  constexpr int64_t kGrain = 32768;
  parallel_for(0, n, n <= kGrain ? kGrain : even_grain(n, kGrain), [&](int64_t first, int64_t last) {
    T* o = out.as<T>() + first * step;
    const double start = static_cast<double>(first);
    const auto count = static_cast<int32_t>(last - first);
    if (step == 1) {
      for (int32_t i = 0; i < count; ++i) o[i] = element<T>(f(start + static_cast<double>(i)));
    } else {
      for (int32_t i = 0; i < count; ++i) o[i * step] = element<T>(f(start + static_cast<double>(i)));
    }
  });
}

// Note [Blocks of a range]
// PyTorch's arange rounds the first value of every 32 bytes to the element type and counts on from there; what is left
// of pairs of such blocks is counted from the start. Programs that cut or compare fractions so counted (0, 0.1, ...)
// get the same ones. Integers are the same either way.
template <class T> void range_in_blocks(const View& out, double start, double step) {
  using C = std::conditional_t<sizeof(T) == 2, float, double>;
  constexpr int64_t kBlock = 32 / sizeof(T);
  const auto paired = static_cast<double>((out.ndim ? out.sizes[0] : 1) / (2 * kBlock) * (2 * kBlock));
  const C a = static_cast<C>(start), s = static_cast<C>(step);
  generate_values<T>(out, [=](double i) {
    const double block = i < paired ? std::floor(i / kBlock) * kBlock : i;
    const C first = static_cast<C>(element<T>(std::fma(s, static_cast<C>(block), a)));
    return std::fma(s, static_cast<C>(i - block), first);
  });
}

}  // namespace

void fill(const View& out, const void* value) {
  if (out.numel() == 0) return;
  Nest<1> nest({&out});
  visit_size(itemsize(out.dtype), [&](auto u) {
    using U = decltype(u);
    U v;
    std::memcpy(&v, value, sizeof v);
    int64_t step = nest.strides[0][0];
    nest.parallel_runs(kPieceBytes / static_cast<int64_t>(sizeof(U)),
                       [&](char* const* at, int64_t n) { fill_run<U>(at[0], step, n, v); });
  });
}

void zero(const View& out) {
  constexpr char kZeros[16] = {};
  int64_t n = out.numel(), bytes = n * itemsize(out.dtype);
  if (n == 0) return;
  if (!out.contiguous()) return fill(out, kZeros);
  if (bytes <= kPieceBytes) {
    std::memset(out.data, 0, bytes);
    return;
  }
  parallel_for(0, bytes, even_grain(bytes, kPieceBytes),
               [&](int64_t first, int64_t last) { std::memset(out.as<char>() + first, 0, last - first); });
}

void range(const View& out, std::complex<double> start, std::complex<double> step, int64_t int_start,
           int64_t int_step) {
  visit_dtype(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_complex_v<T> || __is_same(T, complex32)) {
      generate_values<T>(out, [=](double i) { return start + i * step; });
    } else if (is_integer(out.dtype)) {
      // Wraps like the machine: the last steps of a range of small integers may leave their type.
      generate<T>(out, [=](int64_t i) {
        return static_cast<int64_t>(static_cast<uint64_t>(int_start) +
                                    static_cast<uint64_t>(i) * static_cast<uint64_t>(int_step));
      });
    } else {
      const double a = start.real(), s = step.real();
      if (a != std::trunc(a) || s != std::trunc(s)) range_in_blocks<T>(out, a, s);
      else generate_values<T>(out, [=](double i) { return a + i * s; });
    }
  });
}

void linspace(const View& out, std::complex<double> start, std::complex<double> end, const std::complex<double>* base) {
  int64_t n = out.ndim ? out.sizes[0] : 1, half = n / 2;
  visit_dtype(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto run = [&](auto a, auto b, auto exponent_base) {
      using C = decltype(a);
      C step = n > 1 ? (b - a) / static_cast<double>(n - 1) : C(0);
      // Floats step by a rounded step, as PyTorch's do: programs that cut or compare the values get the same ones.
      if constexpr (__is_same(T, float)) {
        a = static_cast<float>(a), b = static_cast<float>(b);
        if (n > 1) step = (static_cast<float>(b) - static_cast<float>(a)) / static_cast<float>(n - 1);
      }
      // From both ends, so that both are exact and the whole is symmetric.
      const double middle = n == 1 ? 1 : static_cast<double>(half), last = static_cast<double>(n - 1);
      // Doubles are rounded once, where the step was taken: PyTorch's compiler merges product and sum.
      auto at = [=](double i) {
        if constexpr (__is_same(T, double)) return i < middle ? std::fma(step, i, a) : std::fma(-step, last - i, b);
        else return i < middle ? C(a + step * i) : C(b - step * (last - i));
      };
      if (base) generate_values<T>(out, [=](double i) { return std::pow(exponent_base, at(i)); });
      else generate_values<T>(out, at);
    };
    if constexpr (is_complex_v<T> || __is_same(T, complex32)) run(start, end, base ? *base : std::complex<double>());
    else run(start.real(), end.real(), base ? base->real() : 0.0);
  });
}

void triangle(const View& out, const View& in, int64_t diagonal, bool upper) {
  if (out.numel() == 0) return;
  int64_t rows = out.sizes[out.ndim - 2], columns = out.sizes[out.ndim - 1], size = itemsize(out.dtype);
  int64_t matrices = out.numel() / (rows * columns);
  const int d = out.ndim - 2;
  int64_t out_row = out.strides[d] * size, in_row = in.strides[d] * size;
  int64_t out_step = out.strides[d + 1] * size, in_step = in.strides[d + 1] * size;
  int64_t grain = kPieceBytes / (columns * size + 1) + 1;
  visit_size(size, [&](auto u) {
    using U = decltype(u);
    auto piece = [&](int64_t first, int64_t last) {
      for (; first < last; ++first) {
        int64_t row = first % rows, matrix = first / rows;
        char* o = out.as<char>() + row * out_row;
        const char* x = in.as<char>() + row * in_row;
        for (int k = d - 1; k >= 0; --k) {
          int64_t at = matrix % out.sizes[k];
          matrix /= out.sizes[k];
          o += at * out.strides[k] * size, x += at * in.strides[k] * size;
        }
        // Columns [kept_from, kept_to) stay; `diagonal` may be anything, so compare before adding.
        int64_t edge = diagonal > columns ? columns : diagonal < -rows ? -rows : diagonal;
        int64_t split = row + edge + (upper ? 0 : 1);
        split = split < 0 ? 0 : split > columns ? columns : split;
        int64_t from = upper ? split : 0, to = upper ? columns : split;
        if (o != x || out_step != in_step) {
          if (out_step == static_cast<int64_t>(sizeof(U)) && in_step == out_step)
            copy_bytes(o + from * sizeof(U), x + from * sizeof(U), (to - from) * sizeof(U));
          else
            for (int64_t c = from; c < to; ++c)
              *reinterpret_cast<U*>(o + c * out_step) = *reinterpret_cast<const U*>(x + c * in_step);
        }
        if (upper) fill_run<U>(o, out_step, split, U{});
        else fill_run<U>(o + split * out_step, out_step, columns - split, U{});
      }
    };
    if (rows * matrices <= grain) return piece(0, rows * matrices);
    parallel_for(0, rows * matrices, grain, piece);
  });
}

}  // namespace rl::RL_ISA
