// Batch normalisation of rows of channels: of (N, C), and of images with their channels last in memory.
#include <algorithm>

#include "base/check.h"
#include "base/parallel.h"
#include "cpu/loops/scratch.h"
#include "cpu/norm/norm.h"
#include "cpu/reduce/pairwise_sum.h"

namespace rl::RL_ISA {
namespace {

// Short rows are joined, so that vectors are full: `width` is `joined` times the number of channels, and column j has
// channel j % channels. Rows that are left over have `channels` columns.
struct Columns {
  int64_t rows, channels, joined, width;
  explicit Columns(const NormChannels& s) : rows(s.batch), channels(s.channels) {
    joined = std::min<int64_t>(std::max<int64_t>(1, rows), channels < 128 ? 256 / std::max<int64_t>(1, channels) : 1);
    width = joined * channels;
  }
  // Rows of one piece of work, a multiple of `joined`: by the size of the input alone.
  int64_t piece() const {
    constexpr int64_t kElements = 65536;
    return std::max<int64_t>(1, kElements / std::max<int64_t>(1, width)) * joined;
  }
  int64_t pieces() const { return (rows + piece() - 1) / piece(); }
  // body(piece, first row, last row)
  template <class F> void each(F&& body) const {
    const int64_t size = piece();
    parallel_for(0, pieces(), 1, [&](int64_t first, int64_t last) {
      for (int64_t p = first; p < last; ++p) body(p, p * size, std::min(rows, (p + 1) * size));
    });
  }
};

// A value per channel, repeated for joined rows.
template <class C> struct Table {
  Scratch<C> values;
  explicit Table(const Columns& s) : values(s.width) {}
  template <class F> void fill(const Columns& s, F&& f) {
    for (int64_t c = 0; c < s.channels; ++c) values[c] = static_cast<C>(f(c));
    for (int64_t j = s.channels; j < s.width; ++j) values[j] = values[j - s.channels];
  }
  const C* get() const { return values.get(); }
};

// f(at, column, a, b) adds the elements of V vectors of columns, from row `first` to `last`, to a and b.
template <int V, class C, class F>
void add_columns(int64_t first, int64_t last, int64_t width, int64_t c, C* a, C* b, F&& f) {
  constexpr int kL = kLanes<C>;
  Vec<C> va[V] = {}, vb[V] = {};
  for (int64_t r = first; r < last; ++r)
#pragma GCC unroll 4
    for (int k = 0; k < V; ++k) f(r * width + c + k * kL, c + k * kL, va[k], vb[k]);
  for (int k = 0; k < V; ++k) store_vec(a + c + k * kL, va[k]), store_vec(b + c + k * kL, vb[k]);
}
// a[j], b[j] = the sums over rows of `width` columns: few enough rows that the type's own precision does.
template <class C, class F> void sum_columns(int64_t first, int64_t last, int64_t width, C* a, C* b, F&& f) {
  constexpr int kL = kLanes<C>;
  int64_t c = 0;
  for (; c + 4 * kL <= width; c += 4 * kL) add_columns<4>(first, last, width, c, a, b, f);
  for (; c + kL <= width; c += kL) add_columns<1>(first, last, width, c, a, b, f);
  for (; c < width; ++c) {
    C sa = 0, sb = 0;
    for (int64_t r = first; r < last; ++r) f(r * width + c, c, sa, sb);
    a[c] = sa, b[c] = sb;
  }
}
template <class U, class C> [[gnu::always_inline]] inline U column(const C* table, int64_t c) {
  return read_as<U>(table + c);
}

// body(first, last, width, base): runs of rows, joined where there are enough of them, that fit the first cache.
// `base` is the element where row 0 of that width would be.
template <class F> void for_runs(const Columns& s, int64_t first, int64_t last, F&& body) {
  const int64_t whole = first + (last - first) / s.joined * s.joined;
  const int64_t run = std::clamp<int64_t>(8192 / s.width, 8, 128);
  const int64_t base = first * s.channels, rows = (whole - first) / s.joined;
  for (int64_t r = 0; r < rows; r += run) body(r, std::min(rows, r + run), s.width, base);
  if (whole < last) body(0, last - whole, s.channels, whole * s.channels);
}

// Means of `count` elements each and the sums of their squared distances from them; with those of `count2` others
// (mean2, squares2) they become those of all.
void merge(int64_t n, double* __restrict mean, double* __restrict squares, double count, const double* __restrict mean2,
           const double* __restrict squares2, double count2) {
  const double part = count2 / (count + count2), weight = count * part;
  for (int64_t c = 0; c < n; ++c) {
    const double stride = mean2[c] - mean[c];
    mean[c] += stride * part;
    squares[c] += squares2[c] + stride * stride * weight;
  }
}

}  // namespace

void column_stats(const NormChannels& sizes, const View& mean, const View& var, const View& x) {
  const Columns s(sizes);
  visit_float(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const T* in = x.as<T>();
    C *pm = mean.as<C>(), *pv = var.as<C>();
    const int64_t pieces = s.pieces();
    Scratch<double> means(pieces * s.channels), squares(pieces * s.channels);
    // Each run of rows by its own mean, while it is in the cache.
    s.each([&](int64_t p, int64_t first, int64_t last) {
      double *m = means.get() + p * s.channels, *q = squares.get() + p * s.channels;
      Scratch<C> memory(3 * s.width);
      C *a = memory.get(), *b = a + s.width, *own = b + s.width;
      Scratch<double> stride(2 * s.width);
      double *mean2 = stride.get(), *squares2 = mean2 + s.width, seen = 0;
      std::fill_n(m, s.channels, 0.0), std::fill_n(q, s.channels, 0.0);
      for_runs(s, first, last, [&](int64_t r0, int64_t r1, int64_t width, int64_t base) {
        const T* rows = in + base;
        const double count = static_cast<double>(r1 - r0);
        sum_columns(r0, r1, width, a, b, [&](int64_t i, int64_t, auto& u, auto&) __attribute__((always_inline)) {
          u += read_as<std::remove_reference_t<decltype(u)>>(rows + i);
        });
        for (int64_t j = 0; j < width; ++j) own[j] = static_cast<C>(static_cast<double>(a[j]) / count);
        sum_columns(r0, r1, width, a, b, [&](int64_t i, int64_t c, auto& u, auto& v) __attribute__((always_inline)) {
          using U = std::remove_reference_t<decltype(u)>;
          const U d = read_as<U>(rows + i) - column<U>(own, c);
          u += d, v += d * d;
        });
        // What rounding left of the mean in the distances is taken out of them again.
        for (int64_t j = 0; j < width; ++j) {
          const double rest = static_cast<double>(a[j]) / count, all = static_cast<double>(b[j]);
          const double left = all - rest * rest * count;
          mean2[j] = static_cast<double>(own[j]) + rest;
          squares2[j] = left < 0 ? 0.0 : left;
        }
        for (int64_t j = 0; j < width; j += s.channels, seen += count)
          merge(s.channels, m, q, seen, mean2 + j, squares2 + j, count);
      });
    });
    const int64_t size = s.piece();
    for (int64_t p = 1; p < pieces; ++p)
      merge(s.channels, means.get(), squares.get(), static_cast<double>(p * size), means.get() + p * s.channels,
            squares.get() + p * s.channels, static_cast<double>(std::min(s.rows - p * size, size)));
    for (int64_t c = 0; c < s.channels; ++c) {
      pm[c] = static_cast<C>(means[c]);
      pv[c] = static_cast<C>(squares[c] / static_cast<double>(s.rows));
    }
  });
}

void norm_columns(const NormChannels& sizes, const View& y, const View& x, const View& mean, const View& rstd,
                  const View* weight, const View* bias) {
  const Columns s(sizes);
  visit_float(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const C *pw = data_or_null<C>(weight), *pb = data_or_null<C>(bias), *pm = mean.as<C>(), *pr = rstd.as<C>();
    Table<C> scale(s), shift(s);
    scale.fill(s, [&](int64_t c) { return pw ? pr[c] * pw[c] : pr[c]; });
    shift.fill(s, [&](int64_t c) { return (pb ? pb[c] : C(0)) - pm[c] * scale.values[c]; });
    const T* in = x.as<T>();
    T* out = y.as<T>();
    s.each([&](int64_t, int64_t first, int64_t last) {
      for_runs(s, first, last, [&](int64_t r0, int64_t r1, int64_t width, int64_t base) {
        const C *a = scale.get(), *b = shift.get();
        for (int64_t at = base + r0 * width; at < base + r1 * width; at += width)
          map_vectors(width, out + at, [=](int64_t c, auto like) {
            using U = decltype(like);
            return read_as<U>(in + at + c) * column<U>(a, c) + column<U>(b, c);
          });
      });
    });
  });
}

void norm_columns_grad(const NormChannels& sizes, bool batch_stats, const View* dx, const View* dw, const View* db,
                       const View& dy, const View& x, const View& mean, const View& rstd, const View* weight) {
  const Columns s(sizes);
  visit_float(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const C *pw = data_or_null<C>(weight), *pm = mean.as<C>(), *pr = rstd.as<C>();
    const T *in = x.as<T>(), *up = dy.as<T>();
    Table<C> scale(s), x_scale(s), shift(s), middle(s);
    scale.fill(s, [&](int64_t c) { return pw ? pr[c] * pw[c] : pr[c]; });
    x_scale.fill(s, [](int64_t) { return 0; });
    shift.fill(s, [](int64_t) { return 0; });
    middle.fill(s, [&](int64_t c) { return pm[c]; });
    if (dw || db || batch_stats) {
      const int64_t pieces = s.pieces();
      Scratch<double> sums(2 * pieces * s.channels);
      std::fill_n(sums.get(), 2 * pieces * s.channels, 0.0);
      double *plain = sums.get(), *product = plain + pieces * s.channels;
      s.each([&](int64_t p, int64_t first, int64_t last) {
        Scratch<C> memory(2 * s.width);
        C *a = memory.get(), *b = a + s.width;
        for_runs(s, first, last, [&](int64_t r0, int64_t r1, int64_t width, int64_t base) {
          const T *rows = in + base, *g = up + base;
          const C* m = middle.get();
          sum_columns(r0, r1, width, a, b, [&](int64_t i, int64_t c, auto& u, auto& v) __attribute__((always_inline)) {
            using U = std::remove_reference_t<decltype(u)>;
            const U d = read_as<U>(g + i);
            u += d, v += d * (read_as<U>(rows + i) - column<U>(m, c));
          });
          for (int64_t j = 0; j < width; j += s.channels)
            for (int64_t c = 0; c < s.channels; ++c) {
              plain[p * s.channels + c] += static_cast<double>(a[j + c]);
              product[p * s.channels + c] += static_cast<double>(b[j + c]);
            }
        });
      });
      for (int64_t p = 1; p < pieces; ++p)
        for (int64_t c = 0; c < s.channels; ++c)
          plain[c] += plain[p * s.channels + c], product[c] += product[p * s.channels + c];
      for (int64_t c = 0; c < s.channels; ++c) {
        product[c] *= pr[c];
        if (dw) dw->as<C>()[c] = static_cast<C>(product[c]);
        if (db) db->as<C>()[c] = static_cast<C>(plain[c]);
      }
      if (batch_stats) {  // dx = scale * dy + x_scale * (x - mean) + shift
        const double count = static_cast<double>(s.rows);
        x_scale.fill(s, [&](int64_t c) { return -scale.values[c] * pr[c] * product[c] / count; });
        shift.fill(s, [&](int64_t c) { return -scale.values[c] * plain[c] / count; });
      }
    }
    if (!dx) return;
    T* out = dx->as<T>();
    s.each([&](int64_t, int64_t first, int64_t last) {
      for_runs(s, first, last, [&](int64_t r0, int64_t r1, int64_t width, int64_t base) {
        const C *a = scale.get(), *k = x_scale.get(), *b = shift.get(), *m = middle.get();
        for (int64_t at = base + r0 * width; at < base + r1 * width; at += width)
          map_vectors(width, out + at, [=](int64_t c, auto like) {
            using U = decltype(like);
            const U stride = read_as<U>(in + at + c) - column<U>(m, c);
            return read_as<U>(up + at + c) * column<U>(a, c) + stride * column<U>(k, c) + column<U>(b, c);
          });
      });
    });
  });
}

}  // namespace rl::RL_ISA
