// How an elementwise op writes straight into its target. `x.add_(y)` runs the same code as `add(x, y)`, with x offered
// as the place for the result; the op takes the offer when shape and type fit.
#pragma once
#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "autograd/record.h"

namespace rl {

struct Destination {
  TensorObject* wanted = nullptr;  // offered
  TensorObject* taken = nullptr;   // accepted: the op's result is this very tensor
  bool with_grad = false;          // may be taken by a call that will be recorded (the op never saves its first input)
  bool counted = false;            // the write has been counted already
  const char* op = nullptr;        // the call's name
  Edge pending_history;
};
extern thread_local Destination t_destination;

// The offered tensor if its shape and type fit, else undefined.
inline Tensor take_destination(IntSpan sizes, DType dtype, bool will_be_recorded) {
  TensorObject* t = t_destination.wanted;
  if (!t) return {};
  t_destination.wanted = nullptr;
  if (t->dtype != dtype || !(IntSpan(t->sizes, t->ndim) == sizes)) return {};
  if (will_be_recorded && !t_destination.with_grad) return {};
  if (will_be_recorded) check_view_history(Tensor::borrow(t));
  t_destination.taken = t;
  return Tensor::borrow(t);
}

}  // namespace rl
