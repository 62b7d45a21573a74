// Batch normalisation.
#include <algorithm>

#include "base/check.h"
#include "base/parallel.h"
#include "cpu/loops/scratch.h"
#include "cpu/norm/norm.h"
#include "cpu/reduce/pairwise_sum.h"

namespace rl::RL_ISA {
namespace {

// Channels of one task. Where the inner size is small, neighbouring channels share the vectors.
constexpr int64_t kNarrow = 8, kChannels = 64;
int64_t channel_grain(const NormChannels& s) {
  if (s.inner < kNarrow)
    return std::max<int64_t>(kChannels, 32768 / std::max<int64_t>(1, s.batch * s.inner) / kChannels * kChannels);
  return std::max<int64_t>(1, 32768 / std::max<int64_t>(1, s.batch * s.inner));
}

// What a channel has in a table.
template <class C> struct OneChannel {
  int64_t c;
  C operator()(const C* table) const { return table[c]; }
};

// a[c - first], b[c - first] = sums over batch and inner, for channels [first, last), at most kChannels. f(index, of,
// x, y) adds an element to x and y, or as many as they have lanes; of(table) is what their channels have in a table.
template <class C, class F>
void sum_channels(const NormChannels& s, int64_t first, int64_t last, double* a, double* b, F&& f) {
  if (s.inner >= kNarrow) {
    for (int64_t c = first; c < last; ++c) {
      double ta = 0, tb = 0;
      for (int64_t n = 0; n < s.batch; ++n) {
        int64_t base = (n * s.channels + c) * s.inner;
        double ua, ub;
        two_sums_of<C>(s.inner, [&](int64_t i, auto& x, auto& y) { f(base + i, OneChannel<C>{c}, x, y); }, &ua, &ub);
        ta += ua, tb += ub;
      }
      a[c - first] = ta, b[c - first] = tb;
    }
    return;
  }
  const int64_t width = last - first;
  for (int64_t c = 0; c < width; ++c) a[c] = b[c] = 0;
  for (int64_t n0 = 0; n0 < s.batch; n0 += 256) {
    C pa[kChannels] = {}, pb[kChannels] = {};
    for (int64_t n = n0; n < std::min(s.batch, n0 + 256); ++n)
      for (int64_t i = 0; i < s.inner; ++i) {
        int64_t base = (n * s.channels + first) * s.inner + i;
        for (int64_t c = 0; c < width; ++c) f(base + c * s.inner, OneChannel<C>{first + c}, pa[c], pb[c]);
      }
    for (int64_t c = 0; c < width; ++c) a[c] += pa[c], b[c] += pb[c];
  }
}

// body(first, last) over channels in runs of at most kChannels
template <class F> void for_channels(const NormChannels& s, F&& body) {
  parallel_for(0, s.channels, channel_grain(s), [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; c += kChannels) body(c, std::min(last, c + kChannels));
  });
}

// f(index, channel) for all elements, in parallel over samples and channels
template <class F> void for_elements(const NormChannels& s, F&& f) {
  int64_t rows = s.inner >= kNarrow ? s.batch * s.channels : s.batch;
  int64_t size = s.inner >= kNarrow ? s.inner : s.inner * s.channels;
  parallel_for(0, rows, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, size)), [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) f(r);
  });
}

}  // namespace

void channel_stats(const NormChannels& s, const View& mean, const View& var, const View& x) {
  if (s.channels == 0) return;
  if (s.inner == 1) return column_stats(s, mean, var, x);
  visit_float(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const T* in = x.as<T>();
    C *pm = mean.as<C>(), *pv = var.as<C>();
    double count = static_cast<double>(s.batch) * static_cast<double>(s.inner);
    for_channels(s, [&](int64_t first, int64_t last) {
      double a[kChannels], b[kChannels];
      sum_channels<C>(s, first, last, a, b, [&](int64_t i, const auto&, auto& u, auto&) {
        u += read_as<std::remove_reference_t<decltype(u)>>(in + i);
      });
      for (int64_t c = first; c < last; ++c) pm[c] = static_cast<C>(a[c - first] / count);
      sum_channels<C>(s, first, last, a, b, [&](int64_t i, const auto& of, auto& u, auto& v) {
        const auto d = read_as<std::remove_reference_t<decltype(u)>>(in + i) - of(pm);
        u += d, v += d * d;
      });
      // The rounding of the mean is taken out again.
      for (int64_t c = first; c < last; ++c)
        pv[c] = static_cast<C>(std::max(0.0, (b[c - first] - a[c - first] * a[c - first] / count) / count));
      for (int64_t c = first; c < last; ++c)
        if (b[c - first] != b[c - first]) pv[c] = static_cast<C>(b[c - first]);  // max() would lose a NaN
    });
  });
}

void norm_channels(const NormChannels& s, const View& y, const View& x, const View& mean, const View& rstd,
                   const View* weight, const View* bias) {
  if (s.channels == 0) return;
  if (s.inner == 1) return norm_columns(s, y, x, mean, rstd, weight, bias);
  visit_float(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const C *pw = data_or_null<C>(weight), *pb = data_or_null<C>(bias), *pm = mean.as<C>(), *pr = rstd.as<C>();
    Scratch<C> scale(s.channels), shift(s.channels);
    for (int64_t c = 0; c < s.channels; ++c) {
      scale[c] = pw ? pr[c] * pw[c] : pr[c];
      shift[c] = (pb ? pb[c] : C(0)) - pm[c] * scale[c];
    }
    const T* in = x.as<T>();
    T* out = y.as<T>();
    for_elements(s, [&](int64_t r) {
      if (s.inner >= kNarrow) {
        C a = scale[r % s.channels], b = shift[r % s.channels];
        const T* from = in + r * s.inner;
        map_vectors(s.inner, out + r * s.inner,
                    [=](int64_t i, auto like) { return read_as<decltype(like)>(from + i) * a + b; });
      } else {
        int64_t base = r * s.channels * s.inner;
        for (int64_t i = 0; i < s.inner; ++i) {
          const T* __restrict from = in + base + i;
          T* __restrict to = out + base + i;
          for (int64_t c = 0; c < s.channels; ++c)
            to[c * s.inner] = static_cast<T>(static_cast<C>(from[c * s.inner]) * scale[c] + shift[c]);
        }
      }
    });
  });
}

// dx = rstd * w * (dy - mean(dy) - xhat * mean(dy * xhat)); with fixed statistics dx = rstd * w * dy
void norm_channels_grad(const NormChannels& s, bool batch_stats, const View* dx, const View* dw, const View* db,
                        const View& dy, const View& x, const View& mean, const View& rstd, const View* weight) {
  if (s.channels == 0) return;
  if (s.inner == 1) return norm_columns_grad(s, batch_stats, dx, dw, db, dy, x, mean, rstd, weight);
  visit_float(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const C *pw = data_or_null<C>(weight), *pm = mean.as<C>(), *pr = rstd.as<C>();
    const T *in = x.as<T>(), *up = dy.as<T>();
    Scratch<C> scale(s.channels), x_scale(s.channels), shift(s.channels);
    double count = static_cast<double>(s.batch) * static_cast<double>(s.inner);
    for (int64_t c = 0; c < s.channels; ++c) scale[c] = pw ? pr[c] * pw[c] : pr[c], x_scale[c] = shift[c] = 0;
    if (dw || db || batch_stats)
      for_channels(s, [&](int64_t first, int64_t last) {
        double a[kChannels], b[kChannels];
        sum_channels<C>(s, first, last, a, b, [&](int64_t i, const auto& of, auto& u, auto& v) {
          using U = std::remove_reference_t<decltype(u)>;
          const U g = read_as<U>(up + i);
          u += g, v += g * (read_as<U>(in + i) - of(pm));
        });
        for (int64_t c = first; c < last; ++c) {
          double sum = a[c - first], product = b[c - first] * pr[c];
          if (dw) dw->as<C>()[c] = static_cast<C>(product);
          if (db) db->as<C>()[c] = static_cast<C>(sum);
          if (batch_stats) {
            // dx = scale * dy + x_scale * (x - mean) + shift
            x_scale[c] = static_cast<C>(-scale[c] * pr[c] * product / count);
            shift[c] = static_cast<C>(-scale[c] * sum / count);
          }
        }
      });
    if (!dx) return;
    T* out = dx->as<T>();
    for_elements(s, [&](int64_t r) {
      if (s.inner >= kNarrow) {
        int64_t c = r % s.channels;
        C a = scale[c], k = x_scale[c], b = shift[c], m = pm[c];
        const T *g = up + r * s.inner, *v = in + r * s.inner;
        map_vectors(s.inner, out + r * s.inner, [=](int64_t i, auto like) {
          using U = decltype(like);
          return read_as<U>(g + i) * a + (read_as<U>(v + i) - m) * k + b;
        });
      } else {
        int64_t base = r * s.channels * s.inner;
        for (int64_t i = 0; i < s.inner; ++i)
          for (int64_t c = 0; c < s.channels; ++c) {
            int64_t at = base + c * s.inner + i;
            out[at] = static_cast<T>(static_cast<C>(up[at]) * scale[c] + (static_cast<C>(in[at]) - pm[c]) * x_scale[c] +
                                     shift[c]);
          }
      }
    });
  });
}

}  // namespace rl::RL_ISA
