// Connectionist temporal classification by the forward and backward sums over alignments, in logarithms.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/loss.h"
#include "base/check.h"
#include "base/parallel.h"
#include "cpu/isa.h"
#include "cpu/loops/scratch.h"

namespace rl::RL_ISA {

void ctc(const CtcShape& s, const View& loss, const View& alpha, const View& log_probs);
void ctc_grad(const CtcShape& s, bool zero_infinity, const View& grad, const View& factor, const View& loss,
              const View& alpha, const View& log_probs);

namespace {

template <class T> constexpr T kLogZero = -std::numeric_limits<T>::infinity();

template <class T> T log_add(T a, T b) {
  T top = std::max(a, b);
  return top == kLogZero<T> ? top : top + std::log1p(std::exp(std::min(a, b) - top));
}
template <class T> T log_add(T a, T b, T c) {
  T top = std::max(a, std::max(b, c));
  return top == kLogZero<T> ? top : top + std::log(std::exp(a - top) + std::exp(b - top) + std::exp(c - top));
}

// The labels of one sample with blanks between them.
struct Path {
  const int64_t* labels;
  int64_t blank, length;
  int64_t operator[](int64_t i) const { return i % 2 ? labels[i / 2] : blank; }
  bool skips(int64_t i) const {
    return i >= 2 && i % 2 && labels[i / 2] != labels[i / 2 - 1];
  }  // may come straight from i - 2
};
Path path_of(const CtcShape& s, int64_t n) { return {s.labels + s.start[n], s.blank, 2 * s.target_length[n] + 1}; }

template <class F> void visit_real(DType t, F&& f) {
  if (t == DType::Float32) return f(type_tag<float>{});
  if (t == DType::Float64) return f(type_tag<double>{});
  fail(ErrorKind::NotImplemented, "\"ctc_loss_cpu\" not implemented for '", info(t).legacy, "'");
}

}  // namespace

void ctc(const CtcShape& s, const View& loss, const View& alpha, const View& log_probs) {
  visit_real(log_probs.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t width = 2 * s.longest + 1;
    parallel_for(0, s.batch, 1, [&](int64_t first, int64_t last) {
      for (int64_t n = first; n < last; ++n) {
        Path path = path_of(s, n);
        int64_t steps = s.input_length[n];
        T* a = alpha.as<T>() + n * s.steps * width;
        auto lp = [&](int64_t t, int64_t c) { return log_probs.as<T>()[(t * s.batch + n) * s.classes + c]; };
        if (steps == 0) {
          loss.as<T>()[n] = path.length == 1 ? T(0) : std::numeric_limits<T>::infinity();
          continue;
        }
        std::fill(a, a + path.length, kLogZero<T>);
        for (int64_t i = 0; i < std::min<int64_t>(2, path.length); ++i) a[i] = lp(0, path[i]);
        for (int64_t t = 1; t < steps; ++t) {
          const T* before = a + (t - 1) * width;
          for (int64_t i = 0; i < path.length; ++i)
            a[t * width + i] = lp(t, path[i]) + log_add(before[i], i > 0 ? before[i - 1] : kLogZero<T>,
                                                        path.skips(i) ? before[i - 2] : kLogZero<T>);
        }
        const T* end = a + (steps - 1) * width + path.length - 1;
        loss.as<T>()[n] = -(path.length > 1 ? log_add(end[0], end[-1]) : end[0]);
      }
    });
  });
}

void ctc_grad(const CtcShape& s, bool zero_infinity, const View& grad, const View& factor, const View& loss,
              const View& alpha, const View& log_probs) {
  visit_real(log_probs.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t width = 2 * s.longest + 1;
    T* out = grad.as<T>();
    std::fill(out, out + s.steps * s.batch * s.classes, T(0));
    parallel_for(0, s.batch, 1, [&](int64_t first, int64_t last) {
      Scratch<T> now(width), next(width), sums(s.classes);
      for (int64_t n = first; n < last; ++n) {
        Path path = path_of(s, n);
        int64_t steps = s.input_length[n];
        T by = factor.as<T>()[n], total = loss.as<T>()[n];
        if (zero_infinity && total == std::numeric_limits<T>::infinity()) continue;
        const T* a = alpha.as<T>() + n * s.steps * width;
        auto lp = [&](int64_t t, int64_t c) { return log_probs.as<T>()[(t * s.batch + n) * s.classes + c]; };
        for (int64_t t = steps - 1; t >= 0; --t) {
          for (int64_t i = 0; i < path.length; ++i) {
            if (t == steps - 1) {
              now[i] = i >= path.length - 2 ? lp(t, path[i]) : kLogZero<T>;
            } else {
              T one = i + 1 < path.length ? next[i + 1] : kLogZero<T>;
              T two = i + 2 < path.length && path.skips(i + 2) ? next[i + 2] : kLogZero<T>;
              now[i] = lp(t, path[i]) + log_add(next[i], one, two);
            }
          }
          std::fill(sums.get(), sums.get() + s.classes, kLogZero<T>);
          for (int64_t i = 0; i < path.length; ++i) sums[path[i]] = log_add(sums[path[i]], a[t * width + i] + now[i]);
          T* row = out + (t * s.batch + n) * s.classes;
          for (int64_t c = 0; c < s.classes; ++c)
            row[c] = by * (std::exp(lp(t, c)) - std::exp(sums[c] + total - lp(t, c)));
          std::copy(now.get(), now.get() + path.length, next.get());
        }
      }
    });
  });
}

}  // namespace rl::RL_ISA
