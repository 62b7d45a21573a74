#include "backend/loss.h"

#include <algorithm>

#include "base/check.h"
#include "base/parallel.h"
#include "cpu/isa.h"
#include "cpu/loops/scratch.h"
#include "cpu/reduce/kernels.h"
#include "cpu/reduce/pairwise_sum.h"
#include "cpu/simd/math.h"

namespace rl::RL_ISA {
namespace {

void cross_entropy(const LossShape& s, const View& loss, double* used, const View& x, const View& lse,
                   const View& target, const View* weight, int64_t ignore) {
  visit_float(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    if (lse.data) {
      const int64_t thin[] = {s.batch, 1, s.inner}, strides[] = {s.inner, s.inner, 1};
      const View greatest{lse.data, thin, strides, 3, lse.dtype};
      const View log{lse.as<C>() + s.batch * s.inner, thin, strides, 3, lse.dtype};
      log_sums(greatest, log, x, 1);
    }
    const C *w = data_or_null<C>(weight), *greatest = lse.as<C>(), *log_sum = greatest + s.batch * s.inner;
    const T* scores = x.as<T>();
    const int64_t* classes = target.as<int64_t>();
    // Sums of weights by blocks, so that they do not depend on the threads.
    constexpr int64_t kBlock = 8192;
    int64_t count = s.batch * s.inner, blocks = (count + kBlock - 1) / kBlock;
    Scratch<double> sums(blocks);
    parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b) {
        double total = 0;
        int64_t end = std::min(count, (b + 1) * kBlock), p = b * kBlock, n = p / s.inner, i = p % s.inner;
        for (; p < end; ++p) {
          int64_t t = classes[p];
          if (t == ignore) {
            loss.as<C>()[p] = 0;
          } else {
            CHECK(t >= 0 && t < s.classes, Index, "Target ", t, " is out of bounds.\n  there are ", s.classes,
                  " classes, numbered from 0 to ", s.classes - 1, "; rows to be left out have the ignore_index");
            C factor = w ? w[t] : C(1);
            total += factor;
            const C score = static_cast<C>(scores[(n * s.classes + t) * s.inner + i]);
            loss.as<C>()[p] = factor * (lse.data ? log_sum[p] - (score - greatest[p]) : -score);
          }
          if (++i == s.inner) i = 0, ++n;
        }
        sums[b] = total;
      }
    });
    double total = 0;
    for (int64_t b = 0; b < blocks; ++b) total += sums[b];
    *used = total;
  });
}

constexpr int64_t kPart = 512;  // elements of half precision that are computed with together

void cross_entropy_grad(const LossShape& s, const View& dx, const View& x, const View& lse, const View& target,
                        const View& factor) {
  visit_float(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    int64_t plane = s.classes * s.inner;
    parallel_for(
        0, s.batch, std::max<int64_t>(1, 8192 / std::max<int64_t>(1, plane)), [&](int64_t first, int64_t last) {
          for (int64_t n = first; n < last; ++n) {
            const T* __restrict in = x.as<T>() + n * plane;
            T* __restrict out = dx.as<T>() + n * plane;
            const C *m = lse.as<C>() + n * s.inner, *log_sum = m + s.batch * s.inner;
            const C* f = factor.as<C>() + n * s.inner;
            const int64_t* t = target.as<int64_t>() + n * s.inner;
            if (s.inner == 1) {
              const C most = m[0], shift = log_sum[0], by = f[0];
              if (by == 0) std::fill(out, out + s.classes, T(0));
              else if constexpr (is_half_v<T>) {
                C part[kPart];
                for (int64_t c = 0; c < s.classes; c += kPart) {
                  const int64_t n = std::min(kPart, s.classes - c);
                  widen(in + c, part, n);
                  for (int64_t k = 0; k < n; ++k) part[k] = by * exp((part[k] - most) - shift);
                  narrow(part, out + c, n);
                }
              } else
                for (int64_t c = 0; c < s.classes; ++c)
                  out[c] = static_cast<T>(by * exp((static_cast<C>(in[c]) - most) - shift));
            } else if constexpr (is_half_v<T>) {
              C part[kPart];
              for (int64_t c = 0; c < s.classes; ++c)
                for (int64_t i = 0; i < s.inner; i += kPart) {
                  const int64_t count = std::min(kPart, s.inner - i);
                  widen(in + c * s.inner + i, part, count);
                  for (int64_t k = 0; k < count; ++k)
                    part[k] = f[i + k] == 0 ? C(0) : f[i + k] * exp((part[k] - m[i + k]) - log_sum[i + k]);
                  narrow(part, out + c * s.inner + i, count);
                }
            } else {
              for (int64_t c = 0; c < s.classes; ++c)
                for (int64_t i = 0; i < s.inner; ++i)
                  out[c * s.inner + i] = static_cast<T>(
                      f[i] == 0 ? C(0) : f[i] * exp((static_cast<C>(in[c * s.inner + i]) - m[i]) - log_sum[i]));
            }
            for (int64_t i = 0; i < s.inner; ++i)
              if (f[i] != 0) {
                T& at = out[t[i] * s.inner + i];
                at = static_cast<T>(static_cast<C>(at) - f[i]);
              }
          }
        });
  });
}

}  // namespace

void ctc(const CtcShape& s, const View& loss, const View& alpha, const View& log_probs);
void ctc_grad(const CtcShape& s, bool zero_infinity, const View& grad, const View& factor, const View& loss,
              const View& alpha, const View& log_probs);

extern const LossKernels loss_kernels;
const LossKernels loss_kernels = {cross_entropy, cross_entropy_grad, ctc, ctc_grad};

}  // namespace rl::RL_ISA
