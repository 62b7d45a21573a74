#include "ops/elementwise/scalar_cast.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "base/float8.h"

namespace rl {

namespace {

template <class T> constexpr const char* c_name() {
  if constexpr (std::is_floating_point_v<T>) return sizeof(T) == 4 ? "float" : "double";
  else if constexpr (is_complex_v<T>) return sizeof(T) == 8 ? "c10::complex<float>" : "c10::complex<double>";
  else if constexpr (std::is_same_v<T, complex32>) return "c10::complex<c10::Half>";
  else if constexpr (!std::is_integral_v<T>) return std::is_same_v<T, float16> ? "c10::Half" : "c10::BFloat16";
  else if constexpr (std::is_signed_v<T>)
    return sizeof(T) == 1 ? "int8_t" : sizeof(T) == 2 ? "int16_t" : sizeof(T) == 4 ? "int" : "int64_t";
  else return sizeof(T) == 1 ? "uint8_t" : sizeof(T) == 2 ? "uint16_t" : sizeof(T) == 4 ? "uint32_t" : "uint64_t";
}

// The largest number of a float type, or of the parts of a complex one.
template <class T> constexpr double largest() {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, complex32>) return 65504;
  else if constexpr (std::is_same_v<T, bfloat16>) return 0x1.FEp127;
  else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, std::complex<float>>)
    return std::numeric_limits<float>::max();
  else return std::numeric_limits<double>::max();
}

template <class T> bool holds(const Scalar& s) {
  if constexpr (std::is_same_v<T, bool>) return true;
  const double v = s.to_double(), imag = s.is_complex() ? s.to_complex128().imag() : 0;
  auto fits = [](double x) { return std::abs(x) <= largest<T>() || !std::isfinite(x); };
  if constexpr (is_complex_v<T> || std::is_same_v<T, complex32>) return fits(v) && fits(imag);
  if (imag != 0) return false;
  if constexpr (is_floating_v<T>) {
    return fits(v);
  } else if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    if (!s.is_integral()) return v >= static_cast<double>(Limits::min()) && v <= static_cast<double>(Limits::max());
    if constexpr (std::is_same_v<T, uint64_t>) return true;
    constexpr int64_t kMost = Limits::max();
    constexpr int64_t kLeast = std::is_signed_v<T> ? static_cast<int64_t>(Limits::min()) : -kMost;
    return !s.above_int64() && s.to_int() >= kLeast && s.to_int() <= kMost;
  }
}

template <class T> void check(const Scalar& s) {
  CHECK(holds<T>(s), Runtime, "value cannot be converted to type ", c_name<T>(), " without overflow");
}

// A float8 has no C++ type of its own.
uint8_t checked_float8(const Scalar& s, DType dtype) {
  const double v = s.to_double();
  CHECK((std::abs(v) <= largest_float8(dtype) || !std::isfinite(v)) && !(s.is_complex() && s.to_complex128().imag()),
        Runtime, "value cannot be converted to type c10::", info(dtype).legacy, " without overflow");
  return to_float8(static_cast<float>(v), dtype);
}

}  // namespace

void check_holds(const Scalar& s, DType dtype) {
  if (is_float8(dtype)) return static_cast<void>(checked_float8(s, dtype));
  visit_dtype(dtype, [&](auto tag) { check<typename decltype(tag)::type>(s); });
}

void check_computes(const Scalar& s, DType dtype) {
  visit_dtype(dtype, [&](auto tag) { check<compute_t<typename decltype(tag)::type>>(s); });
}

double float_number(const Scalar& s, DType dtype) {
  if (is_float(dtype)) check_computes(s, dtype);
  return s.to_double();
}

void write_element(void* to, const Scalar& s, DType dtype) {
  if (is_float8(dtype)) {
    *static_cast<uint8_t*>(to) = checked_float8(s, dtype);
    return;
  }
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    check<T>(s);
    T v = s.to<T>();
    __builtin_memcpy(to, &v, sizeof v);
  });
}

void write_operand(void* to, const Scalar& s, DType dtype) {
  if (is_float8(dtype)) {
    *static_cast<uint8_t*>(to) = to_float8(static_cast<float>(s.to_double()), dtype);
    return;
  }
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!is_complex_v<T> && !std::is_same_v<T, complex32>)
      if (s.is_complex()) check<T>(s);
    T v = s.to<T>();
    __builtin_memcpy(to, &v, sizeof v);
  });
}

void write_compute(LoopScalar& to, const Scalar& s, DType dtype) {
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    check<compute_t<T>>(s);
    if constexpr (std::is_same_v<T, complex32>) to.set(s.to<std::complex<float>>());
    else to.set(s.to<compute_t<T>>());
  });
}

void write_single(void* to, const Scalar& s, DType dtype) { write_element(to, single_element(s, dtype), dtype); }

Scalar single_element(const Scalar& s, DType dtype) {
  if (!is_half(dtype)) {
    check_holds(s, dtype);
    return s;
  }
  check<double>(s);
  const auto v = static_cast<float>(s.to_double());
  return Scalar(
      static_cast<double>(dtype == DType::Float16 ? static_cast<float>(float16(v)) : static_cast<float>(bfloat16(v))));
}

}  // namespace rl
