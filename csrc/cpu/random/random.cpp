#include "backend/random.h"

#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/interrupt.h"
#include "base/parallel.h"
#include "cpu/isa.h"
#include "cpu/random/fill.h"
#include "cpu/random/sample.h"
#include "cpu/simd/box_muller.h"
#include "cpu/simd/trig.h"

namespace rl::RL_ISA {
namespace {

constexpr int64_t kBlock = 1024;        // draws at a time; 4 or 8 KB on the stack
constexpr int64_t kChunk = 1 << 16;     // elements drawn before threads transform them
constexpr int64_t kCostlyGrain = 2048;  // of elements that take a logarithm or the like

// f(type_tag<T>) for the floating types; other types have been refused by the op.
template <class F> void visit_floating(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Float16: return f(type_tag<float16>{});
    case DType::BFloat16: return f(type_tag<bfloat16>{});
    case DType::Float32: return f(type_tag<float>{});
    case DType::Float64: return f(type_tag<double>{});
    default: fail(ErrorKind::NotImplemented, "random: no kernel for ", info(dtype).name);
  }
}

template <class T, class V> inline T to_element(V value) {
  if constexpr (is_half_v<T>) return T(static_cast<float>(value));
  else if constexpr (std::is_same_v<T, bool>) return value != 0;
  else return static_cast<T>(value);
}

// Not inlined: many kernels call them, and a call is little beside 1024 draws.
[[gnu::noinline]] void draw(Generator& generator, uint32_t* out, int64_t n) { mersenne_draw(generator.engine, out, n); }
// 64-bit elements: the first draw is the high half.
[[gnu::noinline]] void draw(Generator& generator, uint64_t* out, int64_t n) {
  mersenne_draw(generator.engine, reinterpret_cast<MersenneWord*>(out), 2 * n);
  if constexpr (std::endian::native == std::endian::little)
    for (int64_t i = 0; i < n; ++i) out[i] = out[i] << 32 | out[i] >> 32;
}

// out[i] = f(next number of type Bits), for cheap f.
template <class Bits, class T, class F> void fill_from_bits(const View& out, Generator& generator, F f) {
  cpu::fill_in_order(out, [&](void* memory, int64_t n) {
    T* data = static_cast<T*>(memory);
    alignas(64) Bits bits[kBlock];
    for (int64_t from = 0; from < n && !stops_at(from); from += kBlock) {
      int64_t count = n - from < kBlock ? n - from : kBlock;
      draw(generator, bits, count);
      for (int64_t i = 0; i < count; ++i) data[from + i] = f(bits[i]);
    }
  });
}

inline double unit_double(uint64_t bits) {
  return static_cast<double>(static_cast<int64_t>(bits & Generator::kDoubleMask)) * 0x1p-53;
}
inline float unit_float(uint32_t bits) { return static_cast<float>(static_cast<int32_t>(bits & 0xffffffu)) * 0x1p-24f; }

// out[i] = f(uniform double in [0, 1)), for costly f: uniforms are drawn in order, then transformed by all threads.
template <class T, class F> void fill_from_uniform(const View& out, Generator& generator, F f) {
  cpu::fill_in_order(out, [&](void* memory, int64_t n) {
    T* data = static_cast<T*>(memory);
    alignas(64) uint64_t few[kBlock];
    bool small = n <= kBlock;
    std::unique_ptr<uint64_t, FreeScratch> many;
    if (!small) many = scratch<uint64_t>(n < kChunk ? n : kChunk);
    uint64_t* bits = small ? few : many.get();
    for (int64_t from = 0; from < n && !stops_at(from); from += kChunk) {
      int64_t count = n - from < kChunk ? n - from : kChunk;
      draw(generator, bits, count);
      parallel_for(0, count, kCostlyGrain, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) data[from + i] = to_element<T>(f(unit_double(bits[i])));
      });
    }
  });
}

void uniform(const View& out, double from, double to, Generator& generator) {
  visit_floating(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    C low = static_cast<C>(from), range = static_cast<C>(to) - low;
    T first = to_element<T>(from), end = to_element<T>(to);
    fill_from_bits<Bits, T>(out, generator, [=](Bits bits) {
      T value;
      if constexpr (sizeof(T) == 8) value = __builtin_fma(unit_double(bits), range, low);
      else value = T(__builtin_fmaf(unit_float(bits), range, low));
      return static_cast<C>(value) == static_cast<C>(end) ? first : value;  // rounded up to the open end
    });
  });
}

template <class C> void draw_units(Generator& generator, C* out, int64_t n) {
  using Bits = std::conditional_t<sizeof(C) == 8, uint64_t, uint32_t>;
  alignas(64) Bits bits[kBlock];
  for (int64_t from = 0; from < n; from += kBlock) {
    int64_t count = n - from < kBlock ? n - from : kBlock;
    draw(generator, bits, count);
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (sizeof(C) == 8) out[from + i] = unit_double(bits[i]);
      else out[from + i] = unit_float(bits[i]);
    }
  }
}

template <class C> void box_muller(C* data, int64_t blocks, C mean, C std) {
  parallel_for(0, blocks, sizeof(C) == 8 ? 64 : 1024, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) box_muller_16(data + 16 * b, mean, std);
  });
}

// n >= 16. Types narrower than their compute type never draw the part of a block that the last one redraws.
template <class T> void normal_blocks(T* data, int64_t n, double mean, double std, Generator& generator) {
  using C = compute_t<T>;
  C m = static_cast<C>(mean), s = static_cast<C>(std), last[16];
  if constexpr (std::is_same_v<T, C>) {
    for (int64_t from = 0; from < n && !stops_at(from); from += kChunk) {
      int64_t count = n - from < kChunk ? n - from : kChunk;
      draw_units(generator, data + from, count);
      box_muller(data + from, count / 16, m, s);
    }
  } else {
    int64_t whole = n / 16 * 16;
    auto memory = scratch<C>(whole < kChunk ? whole : kChunk);
    for (int64_t from = 0; from < whole && !stops_at(from); from += kChunk) {
      int64_t count = whole - from < kChunk ? whole - from : kChunk;
      draw_units(generator, memory.get(), count);
      box_muller(memory.get(), count / 16, m, s);
      for (int64_t i = 0; i < count; ++i) data[from + i] = T(memory.get()[i]);
    }
  }
  if (n % 16 == 0) return;
  draw_units(generator, last, 16);
  box_muller_16(last, m, s);
  for (int i = 0; i < 16; ++i) data[n - 16 + i] = T(last[i]);
}

// Fewer than 16 values of a type narrower than double: pairs as Generator::normal makes them, side by side. Their
// logarithms and sines differ from the C library's in the last bits of a double, which rounding drops. A number that
// the generator keeps for the next call is always its own.
void few_normals(double* data, int64_t n, double mean, double std, Generator& generator) {
  int64_t i = 0;
  if (generator.has_next_normal()) data[i++] = __builtin_fma(generator.normal(), std, mean);
  const int64_t pairs = (n - i) / 2;
  double angle[8] = {}, chance[8] = {};
  for (int64_t p = 0; p < pairs; ++p) angle[p] = 2.0 * kPi * generator.uniform(), chance[p] = generator.uniform();
  double one[8], other[8];
  for (int p = 0; p < 8; ++p) {
    const double radius = sqrt_(-2.0 * log1p(-chance[p]));
    one[p] = radius * cos(angle[p]);
    other[p] = radius * sin(angle[p]);
  }
  for (int64_t p = 0; p < pairs; ++p) {
    data[i++] = __builtin_fma(one[p], std, mean);
    data[i++] = __builtin_fma(other[p], std, mean);
  }
  if (i < n) data[i] = __builtin_fma(generator.normal(), std, mean);
}

void normal(const View& out, double mean, double std, Generator& generator) {
  visit_floating(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t n = out.numel();
    if (n >= 16 && out.contiguous()) return normal_blocks(out.as<T>(), n, mean, std, generator);
    if constexpr (sizeof(T) < 8) {
      if (n >= 4 && n < 16 && out.contiguous()) {
        double few[16];
        few_normals(few, n, mean, std, generator);
        for (int64_t i = 0; i < n; ++i) out.as<T>()[i] = to_element<T>(few[i]);
        return;
      }
    }
    cpu::fill_in_order(out, [&](void* data, int64_t count) {
      for (int64_t i = 0; i < count && !stops_at(i); ++i)
        static_cast<T*>(data)[i] = to_element<T>(__builtin_fma(generator.normal(), std, mean));
    });
  });
}

void log_normal(const View& out, double mean, double std, Generator& generator) {
  visit_floating(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    cpu::fill_in_order(out, [&](void* data, int64_t n) {
      for (int64_t i = 0; i < n && !stops_at(i); ++i)
        static_cast<T*>(data)[i] = to_element<T>(std::exp(__builtin_fma(generator.normal(), std, mean)));
    });
  });
}

void cauchy(const View& out, double median, double sigma, Generator& generator) {
  visit_floating(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill_from_uniform<T>(out, generator,
                         [=](double u) { return __builtin_fma(sigma, std::tan(M_PI * (u - 0.5)), median); });
  });
}

void exponential(const View& out, double lambda, Generator& generator) {
  visit_floating(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    double scale = -1.0 / lambda;
    fill_from_uniform<T>(out, generator, [=](double u) { return scale * std::log1p(-u); });
  });
}

// Visits every type but the complex ones.
template <class F> void visit_real(DType dtype, F&& f) {
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_complex_v<T> || std::is_same_v<T, complex32>)
      fail(ErrorKind::NotImplemented, "random: no kernel for ", info(dtype).name);
    else f(tag);
  });
}

// The same with one type for integers of a width: narrowed from 64 bits, they are the same bits whatever their sign.
template <class F> void visit_narrowed(DType dtype, F&& f) {
  if (is_integral(dtype)) return visit_width(dtype, f);
  if (dtype == DType::Bool) return f(type_tag<bool>{});
  visit_floating(dtype, f);
}

void geometric(const View& out, double p, Generator& generator) {
  double log_failure = std::log1p(-p);
  CHECK(out.dtype != DType::Bool, NotImplemented, "geometric_: no kernel for bool");
  visit_narrowed(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill_from_uniform<T>(out, generator, [=](double u) {
      double trials = std::ceil(std::log(u) / log_failure);
      if constexpr (is_floating_v<T>) return trials;
      else return trials < 9e18 ? static_cast<int64_t>(trials) : std::numeric_limits<int64_t>::min();
    });
  });
}

template <class T> constexpr int kDigits = std::numeric_limits<T>::digits;
template <> constexpr int kDigits<float16> = 11;
template <> constexpr int kDigits<bfloat16> = 8;

void random_any(const View& out, Generator& generator) {
  visit_real(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    if constexpr (is_floating_v<T>)
      fill_from_bits<Bits, T>(out, generator, [](Bits bits) {
        return to_element<T>(static_cast<int64_t>(bits % ((uint64_t{1} << kDigits<T>)+1)));
      });
    else if constexpr (std::is_same_v<T, bool>)
      fill_from_bits<Bits, T>(out, generator, [](Bits bits) { return (bits & 1) != 0; });
    else
      fill_from_bits<Bits, T>(out, generator, [](Bits bits) {
        return static_cast<T>(bits & static_cast<Bits>(std::numeric_limits<T>::max()));
      });
  });
}

void random_range(const View& out, uint64_t range, int64_t base, Generator& generator) {
  visit_narrowed(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (range >= uint64_t{1} << 28) {
      fill_from_bits<uint64_t, T>(out, generator, [=](uint64_t bits) {
        return to_element<T>(static_cast<int64_t>(bits % range + static_cast<uint64_t>(base)));
      });
    } else {
      // bits % range without a division (Lemire, Kaser and Kurz, 2019): the fraction bits / range in 64 bits, times
      // range.
      uint64_t reciprocal = UINT64_MAX / range + 1;
      fill_from_bits<uint32_t, T>(out, generator, [=](uint32_t bits) {
        uint64_t fraction = reciprocal * bits;
        auto rest = static_cast<uint64_t>(static_cast<unsigned __int128>(fraction) * range >> 64);
        return to_element<T>(static_cast<int64_t>(rest) + base);
      });
    }
  });
}

void random_bits(const View& out, Generator& generator) {
  visit_narrowed(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill_from_bits<uint64_t, T>(out, generator,
                                [](uint64_t bits) { return to_element<T>(static_cast<int64_t>(bits)); });
  });
}

// u < p for u = k / 2^53, compared as integers: k < bound.
int64_t bernoulli_bound(double p) { return static_cast<int64_t>(std::ceil(p * 0x1p53)); }

void bernoulli(const View& out, double p, Generator& generator) {
  int64_t bound = bernoulli_bound(p);
  visit_narrowed(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T one = to_element<T>(1), zero = to_element<T>(0);
    fill_from_bits<uint64_t, T>(out, generator, [=](uint64_t bits) {
      return static_cast<int64_t>(bits & Generator::kDoubleMask) < bound ? one : zero;
    });
  });
}

// Remainders of draws by most - k as quotients of doubles, which are vectors: a number of 32 bits divided by a smaller
// one never rounds up to the next whole number.
void permutation(const View& out, Generator& generator) {
  cpu::permutation(out, generator, [&](int32_t* below, int64_t n, int64_t most) {
    alignas(64) uint32_t bits[kBlock];
    draw(generator, bits, n);
    const auto first = static_cast<int32_t>(most), count = static_cast<int32_t>(n);
    for (int32_t k = 0; k < count; ++k) {
      const double number = static_cast<double>(static_cast<int32_t>(bits[k] ^ 0x80000000u)) + 0x1p31;
      const double choices = static_cast<double>(first - k);
      below[k] = static_cast<int32_t>(number - std::floor(number / choices) * choices);
    }
  });
}

void dropout(const View& out, const View& mask, const View& x, double keep, double scale, Generator& generator) {
  int64_t bound = bernoulli_bound(keep), n = out.numel();
  visit_floating(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const C factor = static_cast<C>(scale);
    alignas(64) uint64_t bits[kBlock];
    for (int64_t from = 0; from < n && !stops_at(from); from += kBlock) {
      int64_t count = n - from < kBlock ? n - from : kBlock;
      draw(generator, bits, count);
      T* __restrict to = out.as<T>() + from;
      const T* __restrict in = x.as<T>() + from;
      uint8_t* __restrict kept = mask.as<uint8_t>() + from;
      for (int64_t i = 0; i < count; ++i)
        kept[i] = static_cast<int64_t>(bits[i] & Generator::kDoubleMask) < bound ? 1 : 0;
      for (int64_t i = 0; i < count; ++i) to[i] = T(static_cast<C>(in[i]) * (kept[i] ? factor : C(0)));
    }
  });
}

void dropout_grad(const View& out, const View& dy, const View& mask, double scale) {
  visit_floating(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const C factor = static_cast<C>(scale);
    parallel_for(0, out.numel(), 32768, [&, factor](int64_t first, int64_t last) {
      T* __restrict to = out.as<T>();
      const T* __restrict in = dy.as<T>();
      const uint8_t* __restrict kept = mask.as<uint8_t>();
      // Mask and factor are multiplied: a jump could not be foreseen.
      for (int64_t i = first; i < last; ++i)
        to[i] = T(static_cast<C>(in[i]) * (static_cast<C>(static_cast<int32_t>(kept[i])) * factor));
    });
  });
}

}  // namespace

extern const RandomKernels random_kernels;
const RandomKernels random_kernels = {
    .uniform = uniform,
    .normal = normal,
    .log_normal = log_normal,
    .cauchy = cauchy,
    .exponential = exponential,
    .geometric = geometric,
    .random_any = random_any,
    .random_range = random_range,
    .random_bits = random_bits,
    .bernoulli = bernoulli,
    .bernoulli_each = cpu::bernoulli_each,
    .dropout = dropout,
    .dropout_grad = dropout_grad,
    .permutation = permutation,
    .multinomial = cpu::multinomial,
    .poisson = cpu::poisson,
    .binomial = cpu::binomial,
    .gamma = cpu::gamma,
    .gamma_grad = cpu::gamma_grad,
    .dirichlet_grad = cpu::dirichlet_grad,
};

}  // namespace rl::RL_ISA
