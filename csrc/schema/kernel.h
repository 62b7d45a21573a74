// What is known of an op that is one elementwise kernel. It stands in the op's block: its function runs it, its
// registration hands it on to all who ask (the fuser, vmap, Python).
#pragma once
#include "backend/pointwise.h"

namespace rl {

namespace ops {
struct Writer;  // of terms: ops/elementwise/program.h
}

// What the result's type is, given the operands' common type.
enum class Rule : uint8_t {
  Same,       // the common type
  Float,      // integers become the default float type
  Bool,       // computed in the common type, result bool
  Real,       // as Same, but complex operands give their real type (abs)
  RealFloat,  // as Float, then Real (angle)
  FloatBool,  // as Float, result bool
};

struct Kernel {
  Pointwise op;
  int operands = 1;
  Rule rule = Rule::Same;
  int cost = 1;  // of one element, in additions
  // The gradient of one operand in terms of a program, for float tensors; programs hold ops that have it, and masks.
  int (*gradient)(ops::Writer& w) = nullptr;
  uint32_t wrt = ~0u;                          // operands that a gradient goes to: a bit each
  double (*number)(double, double) = nullptr;  // of Python scalars, where Python computes the same

  constexpr bool is_mask() const { return rule == Rule::Bool || rule == Rule::FloatBool; }
  constexpr bool fusable() const { return gradient || is_mask(); }
  constexpr bool sends(int operand) const { return !is_mask() && (wrt >> operand & 1); }
};

}  // namespace rl
