// Comparisons and logic: the result is bool.
#include "cpu/isa.h"
#include "cpu/pointwise.h"

namespace rl::RL_ISA {
namespace {

template <auto F> void binary_numbers(LoopTable& t, Pointwise op) {
  binary<F, uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t>(t, op);
  binary_floats<F>(t, op);
  t.at(op, DType::Bool) = t.at(op, DType::UInt8);
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
template <class T> RL_INLINE bool truth(T x) { return x != T(0); }

}  // namespace

void put_compare(LoopTable& t) {
  using enum Pointwise;
  equality<[](auto x, auto y) { return x == y; }>(t, Eq);
  equality<[](auto x, auto y) { return x != y; }>(t, Ne);
  binary_numbers<[](auto x, auto y) { return x < y; }>(t, Lt);
  binary_numbers<[](auto x, auto y) { return x <= y; }>(t, Le);
  binary_numbers<[](auto x, auto y) { return (x > y); }>(t, Gt);
  binary_numbers<[](auto x, auto y) { return x >= y; }>(t, Ge);
  equality<[](auto x, auto y) { return truth(x) && truth(y); }>(t, LogicalAnd);
  equality<[](auto x, auto y) { return truth(x) || truth(y); }>(t, LogicalOr);
  equality<[](auto x, auto y) { return truth(x) != truth(y); }>(t, LogicalXor);
}

}  // namespace rl::RL_ISA
