#include "base/float8.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace rl {
namespace {

struct Format {
  int mantissa, bias;
  int largest;     // the code of the largest finite value
  bool unsigned0;  // "uz": 0x80 is NaN, not -0
  bool has_inf;
};
constexpr Format kFormats[] = {
    {3, 7, 0x7e, false, false},   // e4m3fn
    {3, 8, 0x7f, true, false},    // e4m3fnuz
    {2, 15, 0x7b, false, true},   // e5m2
    {2, 16, 0x7f, true, false},   // e5m2fnuz
    {0, 127, 0xfe, false, false}  // e8m0fnu: a power of two, without sign
};
constexpr int number(DType t) { return static_cast<int>(t) - static_cast<int>(DType::Float8_e4m3fn); }

float decode(int code, DType format) {
  const Format& f = kFormats[number(format)];
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  if (format == DType::Float8_e8m0fnu) return code == 0xff ? kNan : std::ldexp(1.0f, code - f.bias);
  const int magnitude = code & 0x7f;
  if (f.unsigned0 && code == 0x80) return kNan;
  float v;
  if (magnitude > f.largest) {
    v = f.has_inf && magnitude == f.largest + 1 ? std::numeric_limits<float>::infinity() : kNan;
  } else {
    const int exponent = magnitude >> f.mantissa, low = magnitude & ((1 << f.mantissa) - 1);
    v = std::ldexp(static_cast<float>(exponent ? low | 1 << f.mantissa : low),
                   (exponent ? exponent : 1) - f.bias - f.mantissa);
  }
  return code & 0x80 ? -v : v;
}

uint8_t to_power(uint32_t u) {
  const uint32_t exponent = u >> 23 & 0xff, rest = u & 0x7fffff;
  if (exponent == 0xff) return 0xff;
  const bool up = rest > 0x400000 || (rest == 0x400000 && exponent > 0);
  return static_cast<uint8_t>(exponent + up);
}

}  // namespace

void fail_without_kernel(DType t, const char* what) {
  fail(ErrorKind::NotImplemented, "\"", what, "\" not implemented for '", info(t).legacy, "'");
}

const float* float8_values(DType format) {
  static const auto tables = [] {
    std::array<std::array<float, 256>, 5> made;
    for (size_t k = 0; k < made.size(); ++k)
      for (int code = 0; code < 256; ++code)
        made[k][static_cast<size_t>(code)] =
            decode(code, static_cast<DType>(static_cast<size_t>(DType::Float8_e4m3fn) + k));
    return made;
  }();
  return tables[static_cast<size_t>(number(format))].data();
}

uint8_t to_float8(float v, DType format) {
  const Format& f = kFormats[number(format)];
  const uint32_t u = std::bit_cast<uint32_t>(v), a = u & 0x7fffffffu;
  if (format == DType::Float8_e8m0fnu) return to_power(u);
  const uint32_t sign = u >> 24 & 0x80;
  const auto nan = static_cast<uint8_t>(f.unsigned0 ? 0x80 : sign | 0x7f);
  if (a > 0x7f800000u) return nan;
  uint32_t code;
  const int drop = 23 - f.mantissa;
  if (static_cast<int>(a >> 23) - 127 < 1 - f.bias) {  // subnormal: the FPU rounds to a multiple of the smallest
    code = static_cast<uint32_t>(std::nearbyint(std::ldexp(std::bit_cast<float>(a), f.bias - 1 + f.mantissa)));
  } else {
    const uint32_t rounded = a + ((1u << (drop - 1)) - 1) + (a >> drop & 1);
    code = (rounded >> drop) - (static_cast<uint32_t>(127 - f.bias) << f.mantissa);
  }
  if (code > static_cast<uint32_t>(f.largest))
    return f.has_inf ? static_cast<uint8_t>(sign | static_cast<uint32_t>(f.largest + 1)) : nan;
  if (f.unsigned0 && code == 0) return 0;
  return static_cast<uint8_t>(sign | code);
}

double largest_float8(DType format) { return decode(kFormats[number(format)].largest, format); }

}  // namespace rl
