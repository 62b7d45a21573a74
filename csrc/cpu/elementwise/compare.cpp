// Comparisons and logic: the result is bool.
#include "base/float8.h"
#include "cpu/elementwise/pointwise.h"
#include "cpu/isa.h"

namespace rl::RL_ISA {
namespace {

// x < y and the like; y < x is the same loop with its inputs swapped.
template <auto F, class... T> void order_of(LoopTable& t, Pointwise op, Pointwise swapped) {
  binary<F, T...>(t, op);
  ((t.at(swapped, dtype_of<T>::value) = &loop_swapped<&loop2<F, T>>), ...);
}
template <auto F> void order(LoopTable& t, Pointwise op, Pointwise swapped) {
  order_of<F, uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t, float, double>(t, op, swapped);
  put_half<&loop2<F, float>, 2, false>(t, op);
  put_half<&loop_swapped<&loop2<F, float>>, 2, false>(t, swapped);
  t.at(op, DType::Bool) = t.at(op, DType::UInt8);
  t.at(swapped, DType::Bool) = t.at(swapped, DType::UInt8);
}
// Integers of one width share a loop.
template <auto F> void equality(LoopTable& t, Pointwise op) {
  t.at(op, DType::Bool) = t.at(op, DType::UInt8) = t.at(op, DType::Int8) = &loop2<F, uint8_t>;
  t.at(op, DType::Int16) = t.at(op, DType::UInt16) = &loop2<F, uint16_t>;
  t.at(op, DType::Int32) = t.at(op, DType::UInt32) = &loop2<F, uint32_t>;
  t.at(op, DType::Int64) = t.at(op, DType::UInt64) = &loop2<F, uint64_t>;
  binary_floats<F>(t, op);
  binary_complex<F>(t, op);
}
// By value: NaNs differ from themselves, and 0 is -0.
template <DType kFormat, bool kEqual>
void float8_equality(char* const* data, const int64_t* strides, int64_t n, const LoopParams&) {
  const float* values = float8_values(kFormat);
  auto value = [&](int k, int64_t i) { return values[static_cast<uint8_t>(data[k][i * strides[k]])]; };
  for (int64_t i = 0; i < n; ++i) data[0][i * strides[0]] = (value(1, i) == value(2, i)) == kEqual;
}
template <DType... kFormats> void put_float8_equality(LoopTable& t) {
  ((t.at(Pointwise::Eq, kFormats) = &float8_equality<kFormats, true>,
    t.at(Pointwise::Ne, kFormats) = &float8_equality<kFormats, false>),
   ...);
  for (Pointwise op : {Pointwise::Eq, Pointwise::Ne}) t.at(op, DType::Float4_e2m1fn_x2) = t.at(op, DType::UInt8);
}
template <class T> RL_INLINE bool truth(T x) { return x != T(0); }

}  // namespace

void put_compare(LoopTable& t) {
  using enum Pointwise;
  equality<[](auto x, auto y) { return x == y; }>(t, Eq);
  equality<[](auto x, auto y) { return x != y; }>(t, Ne);
  put_float8_equality<DType::Float8_e4m3fn, DType::Float8_e4m3fnuz, DType::Float8_e5m2, DType::Float8_e5m2fnuz,
                      DType::Float8_e8m0fnu>(t);
  order<[](auto x, auto y) { return x < y; }>(t, Lt, Gt);
  order<[](auto x, auto y) { return x <= y; }>(t, Le, Ge);
  equality<[](auto x, auto y) { return truth(x) && truth(y); }>(t, LogicalAnd);
  equality<[](auto x, auto y) { return truth(x) || truth(y); }>(t, LogicalOr);
  equality<[](auto x, auto y) { return truth(x) != truth(y); }>(t, LogicalXor);
}

}  // namespace rl::RL_ISA
