#include "cpu/random/sample.h"

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/interrupt.h"
#include "cpu/random/fill.h"

namespace rl::cpu {
namespace {

template <class F> void visit_floating(DType dtype, const char* op, F&& f) {
  switch (dtype) {
    case DType::Float16: return f(type_tag<float16>{});
    case DType::BFloat16: return f(type_tag<bfloat16>{});
    case DType::Float32: return f(type_tag<float>{});
    case DType::Float64: return f(type_tag<double>{});
    default: fail(ErrorKind::NotImplemented, op, ": no kernel for ", info(dtype).name);
  }
}

template <class T, class V> T to_element(V value) {
  if constexpr (is_half_v<T>) return T(static_cast<float>(value));
  else if constexpr (std::is_same_v<T, bool>) return value != 0;
  else return static_cast<T>(value);
}

// T has the width of elements, `one` their bits.
template <class T, class P> void bernoulli_pair(const View& out, const View& p, T one, Generator& generator) {
  for_each_run(address_order(out, &p), [&](int64_t at, int64_t at_p, int64_t n, int64_t stride, int64_t stride_p) {
    T* to = out.as<T>() + at;
    const P* from = p.as<P>() + at_p;
    for (int64_t i = 0; i < n && !stops_at(i); ++i) {
      compute_t<P> probability = from[i * stride_p];
      CHECK(probability >= 0 && probability <= 1, Runtime, "bernoulli: expected probabilities in [0, 1], got ",
            static_cast<double>(probability));
      // One draw for probabilities in single precision or less, two for doubles.
      bool hit;
      if constexpr (sizeof(P) == 8) hit = generator.uniform() < probability;
      else hit = static_cast<float>(generator.random() & 0xffffffu) * 0x1p-24f < probability;
      to[i * stride] = hit ? one : T(0);
    }
  });
}

// Poisson, rate < 10: how many uniforms can be multiplied before the product falls below exp(-rate) (Knuth).
double poisson_by_products(double rate, Generator& generator) {
  double bound = std::exp(-rate), product = 1.0, count = 0;
  while (true) {
    product *= generator.uniform();
    if (!(product > bound)) return count;
    count += 1;
  }
}

// Poisson, rate >= 10: transformed rejection, algorithm PTRS of Hoermann (1993).
double poisson_by_rejection(double rate, Generator& generator) {
  double log_rate = std::log(rate);
  double b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;
  double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    double u = generator.uniform() - 0.5, v = generator.uniform();
    double us = 0.5 - std::fabs(u);
    double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <=
        -rate + k * log_rate - std::lgamma(k + 1))
      return k;
  }
}

// What Stirling's formula for log k! leaves over.
double stirling_tail(double k) {
  static constexpr double kTail[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
                                     0.0166446911898211,  0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
                                     0.00925546218271273, 0.00833056343336287};
  if (k < 10) return kTail[k > 0 ? static_cast<int>(k) : 0];
  double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// Binomial by sums of geometric waiting times, for few expected successes. The precision T of the arguments matters:
// it decides how the intermediate results are rounded, and so the stream.
template <class T> T binomial_by_waiting(T count, T p, Generator& generator) {
  double log_failure = std::log1p(-p), trials = 0;
  T successes = 0;
  while (true) {
    trials += std::ceil(std::log(generator.uniform()) / log_failure);
    if (!(trials <= count)) return successes;
    successes = successes + 1;
  }
}

// Binomial by transformed rejection, algorithm BTRS of Hoermann (1993), for at least ten expected successes and p <=
// 1/2.
template <class T> T binomial_by_rejection(T count, T p, Generator& generator) {
  const double deviation = std::sqrt(count * p * (1 - p));
  const double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double c = count * p + 0.5, v_r = 0.92 - 4.2 / b, odds = p / (1 - p);
  const double alpha = (2.83 + 5.1 / b) * deviation, mode = std::floor((count + 1) * p);
  while (true) {
    double u = generator.uniform() - 0.5, v = generator.uniform();
    double us = 0.5 - std::fabs(u);
    T k = static_cast<T>(std::floor((2 * a / us + b) * u + c));
    if (k < 0 || k > count) continue;
    if (us >= 0.07 && v <= v_r) return k;
    v = std::log(v * alpha / (a / (us * us) + b));
    double bound = (mode + 0.5) * std::log((mode + 1) / (odds * (count - mode + 1))) +
                   (count + 1) * std::log((count - mode + 1) / (count - k + 1)) +
                   (k + 0.5) * std::log(odds * (count - k + 1) / (k + 1)) + stirling_tail(mode) +
                   stirling_tail(count - mode) - stirling_tail(k) - stirling_tail(count - k);
    if (v <= bound) return k;
  }
}

template <class T> T sample_binomial(T count, T p, Generator& generator) {
  if (count <= 0 || p <= 0) return 0;
  if (p >= 1) return count;
  if (!(p > 0) || !(count > 0) || std::isinf(count)) return std::numeric_limits<T>::quiet_NaN();
  auto sample = [&](T q) {
    return count * q >= 10 ? binomial_by_rejection(count, q, generator) : binomial_by_waiting(count, q, generator);
  };
  return p <= T(0.5) ? sample(p) : count - sample(static_cast<T>(1.0 - p));
}

// Gamma(alpha, 1) by the method of Marsaglia and Tsang (2000); for alpha < 1 a Gamma(alpha + 1) is scaled down. The
// single-precision constants, and alpha - 1/3 in the precision T of alpha, are part of the stream.
template <class T> double sample_gamma(T alpha, Generator& generator) {
  if (!(alpha >= 0)) return std::numeric_limits<double>::quiet_NaN();
  double scale = 1;
  if (alpha < 1) {
    if (alpha == 0) return 0;
    scale = std::pow(1 - generator.uniform(), 1.0f / alpha);
    alpha += 1.0f;
  }
  const double d = alpha - 1.0f / 3.0f, c = 1.0 / std::sqrt(9.0 * d);
  while (true) {
    double x, y;
    do {
      x = generator.normal();
      y = 1.0 + c * x;
    } while (y <= 0);
    double v = y * y * y, u = 1 - generator.uniform(), square = x * x;
    if (u < 1.0 - 0.0331f * square * square || std::log(u) < 0.5 * square + d * (1.0 - v + std::log(v)))
      return scale * d * v;
  }
}

template <class T> T at_least_smallest_normal(T value) {
  return value < std::numeric_limits<T>::min() ? std::numeric_limits<T>::min() : value;
}

}  // namespace

void fill_in_order(const View& out, FunctionRef<void(void*, int64_t)> fill) {
  const int64_t n = out.numel();
  if (n == 0) return;
  if (out.contiguous()) return fill(out.as<void>(), n);
  Order order = address_order(out);
  if (order.dense()) return fill(out.as<void>(), n);
  auto memory = scratch<uint64_t>((n * itemsize(out.dtype) + 7) / 8);
  fill(memory.get(), n);
  visit_width(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = reinterpret_cast<const T*>(memory.get());
    for_each_run(order, [&](int64_t at, int64_t, int64_t size, int64_t stride, int64_t) {
      T* to = out.as<T>() + at;
      for (int64_t i = 0; i < size; ++i) to[i * stride] = *from++;
    });
  });
}

uint64_t one_bits(DType dtype) {
  CHECK(!is_complex(dtype), NotImplemented, "bernoulli: no kernel for ", info(dtype).name);
  switch (dtype) {
    case DType::Float16: return 0x3c00;
    case DType::BFloat16: return 0x3f80;
    case DType::Float32: return 0x3f800000;
    case DType::Float64: return 0x3ff0000000000000;
    default: return 1;
  }
}

void bernoulli_each(const View& out, const View& p, Generator& generator) {
  if (out.numel() == 0) return;
  visit_floating(p.dtype, "bernoulli", [&](auto p_tag) {
    using P = typename decltype(p_tag)::type;
    const uint64_t one = one_bits(out.dtype);
    visit_width(out.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      bernoulli_pair<T, P>(out, p, static_cast<T>(one), generator);
    });
  });
}

void permutation(const View& out, Generator& generator, FunctionRef<void(int32_t*, int64_t, int64_t)> draw_below) {
  // Below this size a number takes one draw, from it on two, and the shuffle runs in the other direction.
  constexpr int64_t kFewElements = std::numeric_limits<uint32_t>::max() / 20;
  constexpr int64_t kDraws = 1024, kFilled = 1 << 16;
  visit_dtype(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_complex_v<T> || std::is_same_v<T, complex32> || std::is_same_v<T, bool>) {
      fail(ErrorKind::NotImplemented, "randperm: no kernel for ", info(out.dtype).name);
    } else {
      fill_in_order(out, [&](void* memory, int64_t n) {
        T* data = static_cast<T*>(memory);
        if (n < kFewElements) {
          for (int64_t from = 0; from < n && !stops_at(from); from += kFilled)
            for (int64_t i = from; i < std::min(n, from + kFilled); ++i) data[i] = to_element<T>(i);
          int32_t ahead[kDraws];
          for (int64_t from = 0; from < n - 1 && !stops_at(from); from += kDraws) {
            const int64_t count = std::min(kDraws, n - 1 - from);
            draw_below(ahead, count, n - from);
            for (int64_t k = 0; k < count; ++k) std::swap(data[from + k], data[from + k + ahead[k]]);
          }
        } else {
          for (int64_t i = 0; i < n && !stops_at(i); ++i) {
            auto j = static_cast<int64_t>(generator.random64() % static_cast<uint64_t>(i + 1));
            data[i] = data[j];
            data[j] = to_element<T>(i);
          }
        }
      });
    }
  });
}

void multinomial(const View& out, const View& weights, Generator& generator) {
  int64_t rows = weights.sizes[0], categories = weights.sizes[1], samples = out.sizes[1];
  if (out.numel() == 0) return;
  visit_floating(weights.dtype, "multinomial", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    auto memory = scratch<C>(categories);
    C* cumulative = memory.get();
    for (int64_t row = 0; row < rows; ++row) {
      const T* from = weights.as<T>() + row * weights.strides[0];
      C sum = 0;
      bool good = true;
      for (int64_t j = 0; j < categories; ++j) {
        const C weight = from[j * weights.strides[1]];
        good &= weight >= 0 && weight <= std::numeric_limits<C>::max();
        sum += weight;
        cumulative[j] = sum;
      }
      for (int64_t j = 0; !good && j < categories; ++j) {
        const C weight = from[j * weights.strides[1]];
        CHECK(weight >= 0, Runtime, "invalid multinomial distribution (encountering probability entry < 0)");
        CHECK(std::isfinite(weight), Runtime,
              "invalid multinomial distribution (encountering probability entry = infinity or NaN)");
      }
      CHECK(sum > 0, Runtime, "invalid multinomial distribution (sum of probabilities <= 0)");
      // Few samples look at few of the sums, which are divided by the last one when they are looked at.
      const bool divided = samples * 64 < categories;
      for (int64_t j = 0; !divided && j < categories; ++j) cumulative[j] /= sum;
      const C whole = divided ? sum : C(1);
      cumulative[categories - 1] = whole;
      int64_t* to = out.as<int64_t>() + row * out.strides[0];
      for (int64_t i = 0; i < samples && !stops_at(i); ++i) {
        double u = generator.uniform();
        // The first category whose cumulative weight reaches u, compared in double.
        int64_t low = 0, high = categories;
        while (low < high) {
          int64_t middle = low + (high - low) / 2;
          if (cumulative[middle] / whole < u) low = middle + 1;
          else high = middle;
        }
        to[i * out.strides[1]] = low;
      }
    }
  });
}

void poisson(const View& out, const View& rate, Generator& generator) {
  int64_t n = out.numel();
  visit_floating(out.dtype, "poisson", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = rate.as<T>();
    T* to = out.as<T>();
    for (int64_t i = 0; i < n && !stops_at(i); ++i) {
      double r = static_cast<compute_t<T>>(from[i]);
      CHECK(r >= 0, Runtime, "invalid Poisson rate, expected rate to be non-negative");
      double count = r == 0          ? 0
                     : r < 10        ? poisson_by_products(r, generator)
                     : std::isinf(r) ? r
                                     : poisson_by_rejection(r, generator);
      to[i] = to_element<T>(count);
    }
  });
}

void binomial(const View& out, const View& count, const View& probability, Generator& generator) {
  int64_t n = out.numel();
  visit_floating(out.dtype, "binomial", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    for (int64_t i = 0; i < n && !stops_at(i); ++i)
      out.as<T>()[i] = T(sample_binomial<C>(count.as<T>()[i], probability.as<T>()[i], generator));
  });
}

void gamma(const View& out, const View& alpha, Generator& generator) {
  int64_t n = out.numel();
  visit_floating(alpha.dtype, "gamma", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = alpha.as<T>();
    if (out.dtype == DType::Float64) {
      for (int64_t i = 0; i < n && !stops_at(i); ++i)
        out.as<double>()[i] = at_least_smallest_normal(
            sample_gamma<double>(static_cast<double>(static_cast<compute_t<T>>(from[i])), generator));
    } else {
      using C = compute_t<T>;
      for (int64_t i = 0; i < n && !stops_at(i); ++i)
        out.as<T>()[i] = T(at_least_smallest_normal(static_cast<C>(sample_gamma<C>(from[i], generator))));
    }
  });
}

}  // namespace rl::cpu
