// Python scalars on their way into elements: which type holds which number, and what is refused.
#pragma once
#include "backend/pointwise.h"
#include "base/scalar.h"

namespace rl {

// float16 and bfloat16: computed in float.
inline bool is_half(DType t) { return t == DType::Float16 || t == DType::BFloat16; }

// Each throws a RuntimeError, "value cannot be converted to type int8_t without overflow", for what a type cannot
// hold. Infinities and NaN are held by floats, everything by bool, and negative integers wrap in unsigned types.
void check_holds(const Scalar& s, DType dtype);
// The same of the type in which elements are computed: short floats are computed in float.
void check_computes(const Scalar& s, DType dtype);
// A number that a loop over floats takes as a double; checked as above where the elements are floats.
double float_number(const Scalar& s, DType dtype);
// The number as an element of `dtype`, in storage form; checked.
void write_element(void* to, const Scalar& s, DType dtype);
// The number in the type that elements are computed in; checked.
void write_compute(LoopScalar& to, const Scalar& s, DType dtype);
// The number as operand of an operator: x + 300 wraps where x is uint8, and what is too large for a float is inf.
void write_operand(void* to, const Scalar& s, DType dtype);
// The number as a tensor of one element takes it: rounded to a short float without a question, else checked.
Scalar single_element(const Scalar& s, DType dtype);
void write_single(void* to, const Scalar& s, DType dtype);

}  // namespace rl
