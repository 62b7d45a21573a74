// A Python number on its way into a kernel: bool, int, float or complex.
#pragma once
#include <complex>
#include <cstdint>

#include "base/check.h"
#include "base/dtype.h"

namespace rl {

class Scalar {
 public:
  enum class Kind : uint8_t { Bool, Int, Float, Complex };

  Scalar(bool v) : kind_(Kind::Bool), i_(v) {}
  Scalar(int v) : kind_(Kind::Int), i_(v) {}
  Scalar(int64_t v) : kind_(Kind::Int), i_(v) {}
  Scalar(double v) : kind_(Kind::Float), i_(0), d_(v) {}
  Scalar(std::complex<double> v) : kind_(Kind::Complex), i_(0), d_(v.real()), im_(v.imag()) {}
  static Scalar from_unsigned(uint64_t v) {
    Scalar s(static_cast<int64_t>(v));
    s.above_int64_ = s.i_ < 0;
    return s;
  }

  Kind kind() const { return kind_; }
  bool is_integral() const { return kind_ <= Kind::Int; }
  bool is_complex() const { return kind_ == Kind::Complex; }
  bool above_int64() const { return above_int64_; }  // an integer of 2^63 or more: to_int() is that minus 2^64
  // The type this number has among others of its kind: what torch.tensor(number) would take.
  DType dtype(DType default_float) const {
    return kind_ == Kind::Bool    ? DType::Bool
           : kind_ == Kind::Int   ? DType::Int64
           : kind_ == Kind::Float ? default_float
                                  : to_complex(default_float);
  }
  double to_double() const {
    if (above_int64_) return static_cast<double>(static_cast<uint64_t>(i_));
    return is_integral() ? static_cast<double>(i_) : d_;
  }
  // 2^63, the double nearest to the largest int64, is the smallest, as the processor has it.
  int64_t to_int() const { return is_integral() ? i_ : d_ < 0x1p63 ? static_cast<int64_t>(d_) : INT64_MIN; }
  bool to_bool() const { return is_integral() ? i_ != 0 : d_ != 0 || im_ != 0; }
  std::complex<double> to_complex128() const { return {to_double(), im_}; }
  bool equals(double v) const { return to_double() == v && im_ == 0; }

  template <class T> T to() const {
    if constexpr (is_complex_v<T>) return static_cast<T>(to_complex128());
    else if constexpr (__is_same(T, complex32)) return complex32(static_cast<std::complex<float>>(to_complex128()));
    else if constexpr (__is_same(T, bool)) return to_bool();
    else if constexpr (is_half_v<T>) return T(static_cast<float>(to_double()));
    else if constexpr (__is_same(T, float) || __is_same(T, double)) return static_cast<T>(to_double());
    else if constexpr (__is_same(T, uint64_t))
      return is_integral() || d_ < 0x1p63 ? static_cast<T>(to_int()) : d_ < 0x1p64 ? static_cast<T>(d_) : 0;
    else return static_cast<T>(to_int());
  }

 private:
  Kind kind_;
  bool above_int64_ = false;
  int64_t i_;
  double d_ = 0, im_ = 0;
};

}  // namespace rl
