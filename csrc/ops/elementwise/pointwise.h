// The frame of every elementwise op: promote, broadcast, allocate, run the loop.
#pragma once
#include "autograd/record.h"
#include "backend/pointwise.h"
#include "ops/elementwise/scalar_cast.h"
#include "schema/kernel.h"

namespace rl {

struct PointwiseOptions {
  Rule rule = Rule::Same;
  LoopParams params;
  int cost = 1;                 // work of one element, in additions
  bool complex_result = false;  // real operands, complex result (MakeComplex, MakePolar)
};

// Runs `op` over the operands; scalars join type promotion as those of Python. No history: `record` follows.
// `fill_params`, if given, sets params that depend on the computing type (s0, s1).
Tensor pointwise(const char* name, Pointwise op, const Value* operands, int count, const PointwiseOptions& options = {},
                 void (*fill_params)(LoopParams&, DType, const void*) = nullptr, const void* context = nullptr);

inline Tensor unary(const char* name, Pointwise op, const Tensor& x, const PointwiseOptions& options = {}) {
  Value operands[] = {x};
  return pointwise(name, op, operands, 1, options);
}
inline Tensor binary(const char* name, Pointwise op, const Value& a, const Value& b,
                     const PointwiseOptions& options = {}) {
  Value operands[] = {a, b};
  return pointwise(name, op, operands, 2, options);
}
inline PointwiseOptions options_of(const Kernel& kernel) { return {.rule = kernel.rule, .cost = kernel.cost}; }
inline Tensor unary(const char* name, const Kernel& kernel, const Tensor& x) {
  return unary(name, kernel.op, x, options_of(kernel));
}
inline Tensor binary(const char* name, const Kernel& kernel, const Value& a, const Value& b) {
  return binary(name, kernel.op, a, b, options_of(kernel));
}
// With a number in the loop's own type (alpha of add, value of addcmul) as s0.
Tensor pointwise_scaled(const char* name, Pointwise op, const Value* operands, int count, const Scalar& s0,
                        const PointwiseOptions& options = {});

// The sizes all operands broadcast to; RuntimeError naming the sizes and the dimension otherwise.
Ints broadcast_sizes(IntSpan a, IntSpan b);
// Strides of a tensor seen with (larger) sizes: 0 along broadcast dimensions.
Ints broadcast_strides(const Tensor& t, IntSpan sizes);
// One device for all operands (0-dim cpu tensors go anywhere); errors name both.
Device common_device(const char* name, const Value* operands, int count);
// Refuses a write in place that reads part of the same memory through another view.
void check_overlap(const TensorObject* target, const Value* operands, int count);
[[noreturn]] void no_kernel(const char* name, DType dtype);

}  // namespace rl
