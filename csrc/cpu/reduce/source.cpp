// Reading elements of every type as what reductions compute in.
#include "cpu/reduce/source.h"

#include <cmath>

#include "base/check.h"
#include "cpu/isa.h"
#include "cpu/simd/vec.h"

namespace rl::RL_ISA {
namespace {

template <class T, class C> void fetch_as(const char* p, int64_t stride, int64_t n, C* out) {
  const T* x = reinterpret_cast<const T*>(p);
  if constexpr (is_half_v<T>) {
    if (stride == 1) return widen(x, out, n);
  }
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<C>(x[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<C>(x[i * stride]);
  }
}
template <class C> void fetch_magnitude(const char* p, int64_t stride, int64_t n, C* out) {
  const auto* z = reinterpret_cast<const std::complex<C>*>(p);
  for (int64_t i = 0; i < n; ++i) out[i] = std::abs(z[i * stride]);
}
template <class C> void fetch_square(const char* p, int64_t stride, int64_t n, C* out) {
  const auto* z = reinterpret_cast<const std::complex<C>*>(p);
  for (int64_t i = 0; i < n; ++i) {
    C re = z[i * stride].real(), im = z[i * stride].imag();
    out[i] = re * re + im * im;
  }
}
template <class T> void fetch_truth(const char* p, int64_t stride, int64_t n, uint8_t* out) {
  const T* x = reinterpret_cast<const T*>(p);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (is_half_v<T>) out[i] = (x[i * stride].bits & 0x7fff) != 0;
    else if constexpr (std::is_same_v<T, complex32>)
      out[i] = ((x[i * stride].re.bits | x[i * stride].im.bits) & 0x7fff) != 0;
    else out[i] = x[i * stride] != T(0);
  }
}

template <class C> void nan_to_zero(const C* in, C* out, int64_t n, double) {
  for (int64_t i = 0; i < n; ++i) out[i] = in[i] == in[i] ? in[i] : C(0);
}
template <class C> void absolute(const C* in, C* out, int64_t n, double) {
  for (int64_t i = 0; i < n; ++i) out[i] = std::abs(in[i]);
}
template <class C> void square(const C* in, C* out, int64_t n, double) {
  for (int64_t i = 0; i < n; ++i) out[i] = in[i] * in[i];
}
template <class C> void nonzero(const C* in, C* out, int64_t n, double) {
  for (int64_t i = 0; i < n; ++i) out[i] = in[i] != 0 ? C(1) : C(0);
}
template <class C> void power_of(const C* in, C* out, int64_t n, double p) {
  if (p == 3) {
    for (int64_t i = 0; i < n; ++i) out[i] = std::abs(in[i]) * in[i] * in[i];
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = std::pow(std::abs(in[i]), static_cast<C>(p));
  }
}
template <class C> auto map_of(Map map) -> decltype(Source<C>::map) {
  switch (map) {
    case Map::NanToZero: return nan_to_zero<C>;
    case Map::Abs: return absolute<C>;
    case Map::Square: return square<C>;
    case Map::Nonzero: return nonzero<C>;
    case Map::Power: return power_of<C>;
    default: return nullptr;
  }
}

template <class C> Source<C> complex_source(Source<C> s, Map map) {
  s.fetch = map == Map::Square ? fetch_square<C> : fetch_magnitude<C>;
  if (map == Map::Square || map == Map::Abs) s.map = nullptr;
  return s;
}

}  // namespace

Source<float> float_source(const View& in, Map map, double power) {
  Source<float> s{in.as<char>(), itemsize(in.dtype), nullptr, map_of<float>(map), power};
  if (in.dtype == DType::Complex64) return complex_source(s, map);
  if (in.dtype == DType::Float16) s.fetch = fetch_as<float16, float>;
  if (in.dtype == DType::BFloat16) s.fetch = fetch_as<bfloat16, float>;
  if (s.fetch && map == Map::None) s.half = in.dtype;
  return s;
}

Source<double> double_source(const View& in, Map map, double power) {
  Source<double> s{in.as<char>(), itemsize(in.dtype), nullptr, map_of<double>(map), power};
  return in.dtype == DType::Complex128 ? complex_source(s, map) : s;
}

Source<int64_t> int_source(const View& in) {
  Source<int64_t> s{in.as<char>(), itemsize(in.dtype), nullptr, nullptr};
  switch (in.dtype) {
    case DType::Bool: s.fetch = fetch_as<bool, int64_t>; break;
    case DType::UInt8: s.fetch = fetch_as<uint8_t, int64_t>; break;
    case DType::Int8: s.fetch = fetch_as<int8_t, int64_t>; break;
    case DType::Int16: s.fetch = fetch_as<int16_t, int64_t>; break;
    case DType::Int32: s.fetch = fetch_as<int32_t, int64_t>; break;
    case DType::UInt16: s.fetch = fetch_as<uint16_t, int64_t>; break;
    case DType::UInt32: s.fetch = fetch_as<uint32_t, int64_t>; break;
    default: break;  // int64 itself, and uint64, whose sums and products have the same bits
  }
  return s;
}

Source<uint8_t> truth_source(const View& in) {
  Source<uint8_t> s{in.as<char>(), itemsize(in.dtype), nullptr, nullptr};
  visit_dtype(in.dtype, [&](auto tag) { s.fetch = fetch_truth<typename decltype(tag)::type>; });
  if (in.dtype == DType::Bool) s.fetch = nullptr;  // bools are 0 and 1 already
  return s;
}

}  // namespace rl::RL_ISA
