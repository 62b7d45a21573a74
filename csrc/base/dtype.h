// The element types, their traits, and the one switch over them.
#pragma once
#include <complex>
#include <cstddef>
#include <cstdint>

#include "base/half.h"

namespace rl {

// The first twelve compute; the next four are for storage, views, casts and comparison for equality. From Float8_e4m3fn
// on there is no C++ type: float8 elements are converted by base/float8.h, the others are bytes that are moved.
enum class DType : uint8_t {
  Bool,
  UInt8,
  Int8,
  Int16,
  Int32,
  Int64,
  Float16,
  BFloat16,
  Float32,
  Float64,
  Complex64,
  Complex128,
  UInt16,
  UInt32,
  UInt64,
  Complex32,
  Float8_e4m3fn,
  Float8_e4m3fnuz,
  Float8_e5m2,
  Float8_e5m2fnuz,
  Float8_e8m0fnu,
  Float4_e2m1fn_x2,
  Bits1x8,
  Bits2x4,
  Bits4x2,
  Bits8,
  Bits16,
  UInt1,
  UInt2,
  UInt3,
  UInt4,
  UInt5,
  UInt6,
  UInt7,
  Int1,
  Int2,
  Int3,
  Int4,
  Int5,
  Int6,
  Int7,
};
inline constexpr int kDTypes = 41;
inline constexpr int kComputeDTypes = 12;
inline constexpr int kCppDTypes = 16;  // those with a C++ type

struct complex32 {
  float16 re, im;
  complex32() = default;
  complex32(float16 r, float16 i) : re(r), im(i) {}
  explicit complex32(std::complex<float> z) : re(z.real()), im(z.imag()) {}
  operator std::complex<float>() const { return {static_cast<float>(re), static_cast<float>(im)}; }
};

struct DTypeInfo {
  const char* name;                                   // "float32", as in torch.float32
  const char* legacy;                                 // "Float", as in "torch.FloatTensor" and in messages
  uint8_t size;                                       // bytes
  bool is_float, is_complex, is_integral, is_signed;  // bool counts as neither float nor integral
};
inline constexpr DTypeInfo kDTypeInfo[kDTypes] = {
    {"bool", "Bool", 1, false, false, false, false},
    {"uint8", "Byte", 1, false, false, true, false},
    {"int8", "Char", 1, false, false, true, true},
    {"int16", "Short", 2, false, false, true, true},
    {"int32", "Int", 4, false, false, true, true},
    {"int64", "Long", 8, false, false, true, true},
    {"float16", "Half", 2, true, false, false, true},
    {"bfloat16", "BFloat16", 2, true, false, false, true},
    {"float32", "Float", 4, true, false, false, true},
    {"float64", "Double", 8, true, false, false, true},
    {"complex64", "ComplexFloat", 8, false, true, false, true},
    {"complex128", "ComplexDouble", 16, false, true, false, true},
    {"uint16", "UInt16", 2, false, false, true, false},
    {"uint32", "UInt32", 4, false, false, true, false},
    {"uint64", "UInt64", 8, false, false, true, false},
    {"complex32", "ComplexHalf", 4, false, true, false, true},
    {"float8_e4m3fn", "Float8_e4m3fn", 1, true, false, false, true},
    {"float8_e4m3fnuz", "Float8_e4m3fnuz", 1, true, false, false, true},
    {"float8_e5m2", "Float8_e5m2", 1, true, false, false, true},
    {"float8_e5m2fnuz", "Float8_e5m2fnuz", 1, true, false, false, true},
    {"float8_e8m0fnu", "Float8_e8m0fnu", 1, true, false, false, false},
    {"float4_e2m1fn_x2", "Float4_e2m1fn_x2", 1, true, false, false, true},
    {"bits1x8", "Bits1x8", 1, false, false, false, false},
    {"bits2x4", "Bits2x4", 1, false, false, false, false},
    {"bits4x2", "Bits4x2", 1, false, false, false, false},
    {"bits8", "Bits8", 1, false, false, false, false},
    {"bits16", "Bits16", 2, false, false, false, false},
    {"uint1", "UInt1", 1, false, false, true, false},
    {"uint2", "UInt2", 1, false, false, true, false},
    {"uint3", "UInt3", 1, false, false, true, false},
    {"uint4", "UInt4", 1, false, false, true, false},
    {"uint5", "UInt5", 1, false, false, true, false},
    {"uint6", "UInt6", 1, false, false, true, false},
    {"uint7", "UInt7", 1, false, false, true, false},
    {"int1", "Int1", 1, false, false, true, true},
    {"int2", "Int2", 1, false, false, true, true},
    {"int3", "Int3", 1, false, false, true, true},
    {"int4", "Int4", 1, false, false, true, true},
    {"int5", "Int5", 1, false, false, true, true},
    {"int6", "Int6", 1, false, false, true, true},
    {"int7", "Int7", 1, false, false, true, true},
};
inline const DTypeInfo& info(DType t) { return kDTypeInfo[static_cast<int>(t)]; }
inline int64_t itemsize(DType t) { return info(t).size; }
inline bool is_float(DType t) { return info(t).is_float; }
inline bool is_complex(DType t) { return info(t).is_complex; }
inline bool is_integral(DType t, bool with_bool = false) {
  return info(t).is_integral || (with_bool && t == DType::Bool);
}
inline constexpr bool has_cpp_type(DType t) { return static_cast<int>(t) < kCppDTypes; }
inline constexpr bool is_float8(DType t) { return t >= DType::Float8_e4m3fn && t <= DType::Float8_e8m0fnu; }
inline constexpr bool is_bits(DType t) { return t >= DType::Bits1x8 && t <= DType::Bits16; }
inline bool is_differentiable(DType t) { return info(t).is_float || info(t).is_complex; }

// The real type of a complex one (complex64 -> float32), others unchanged; and back.
inline DType to_real(DType t) {
  return t == DType::Complex64    ? DType::Float32
         : t == DType::Complex128 ? DType::Float64
         : t == DType::Complex32  ? DType::Float16
                                  : t;
}
inline DType to_complex(DType t) {
  return t == DType::Float64 || t == DType::Complex128  ? DType::Complex128
         : t == DType::Float16 || t == DType::Complex32 ? DType::Complex32
                                                        : DType::Complex64;
}

template <class T> struct dtype_of;
// clang-format off
#define RL_DTYPES(X)                                                                  \
  X(Bool, bool) X(UInt8, uint8_t) X(Int8, int8_t) X(Int16, int16_t) X(Int32, int32_t) \
  X(Int64, int64_t) X(Float16, float16) X(BFloat16, bfloat16) X(Float32, float)       \
  X(Float64, double) X(Complex64, std::complex<float>) X(Complex128, std::complex<double>)
#define RL_STORAGE_DTYPES(X) \
  X(UInt16, uint16_t) X(UInt32, uint32_t) X(UInt64, uint64_t) X(Complex32, complex32)
// clang-format on
#define X(name, type)                           \
  template <> struct dtype_of<type> {           \
    static constexpr DType value = DType::name; \
  };
RL_DTYPES(X)
RL_STORAGE_DTYPES(X)
#undef X

template <class T> struct type_tag {
  using type = T;
};

// NotImplementedError: "what" not implemented for 'Float8_e4m3fn'.
[[noreturn, gnu::cold]] void fail_without_kernel(DType t, const char* what = "kernel");

// f(type_tag<T>{}) for the C++ type of `t`: `visit_dtype(t, [&](auto tag) { using T = typename decltype(tag)::type; ...
// })`. visit_dtype covers the sixteen that have a C++ type and raises for the rest; visit_compute the twelve that
// kernels compute in, and returns false for others.
template <class F> void visit_dtype(DType t, F&& f) {
  switch (t) {
#define X(name, type) \
  case DType::name: f(type_tag<type>{}); return;
    RL_DTYPES(X)
    RL_STORAGE_DTYPES(X)
#undef X
    default: fail_without_kernel(t);
  }
}
template <class F> bool visit_compute(DType t, F&& f) {
  switch (t) {
#define X(name, type) \
  case DType::name: f(type_tag<type>{}); return true;
    RL_DTYPES(X)
#undef X
    default: return false;
  }
}

template <class T> inline constexpr bool is_complex_v = false;
template <class T> inline constexpr bool is_complex_v<std::complex<T>> = true;
template <class T> inline constexpr bool is_half_v = false;
template <> inline constexpr bool is_half_v<float16> = true;
template <> inline constexpr bool is_half_v<bfloat16> = true;
template <class T> inline constexpr bool is_floating_v = is_half_v<T> || __is_same(T, float) || __is_same(T, double);

// The type in which a kernel computes one element: reduced-precision types in float, the others in themselves.
template <class T> struct compute_type {
  using type = T;
};
template <> struct compute_type<float16> {
  using type = float;
};
template <> struct compute_type<bfloat16> {
  using type = float;
};
template <class T> using compute_t = typename compute_type<T>::type;

}  // namespace rl
