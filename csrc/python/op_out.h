// out=: where a result may be written, and writing it there.
#pragma once
#include "python/op_arguments.h"
#include "tensor/tensor.h"

namespace rl {

// Calls f with each tensor among the arguments, those in lists too.
template <class F> void each_tensor(PyObject* const* slots, int count, F f) {
  for (int i = 0; i < count; ++i) {
    if (!slots[i]) continue;
    if (is_tensor(slots[i])) f(Tensor::borrow(slots[i]));
    else if (PyTuple_Check(slots[i]) || PyList_Check(slots[i]))
      for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(slots[i]); ++k)
        if (PyObject* item = PySequence_Fast_GET_ITEM(slots[i], k); is_tensor(item)) f(Tensor::borrow(item));
  }
}

// dtype= where it was not given: the type of what is written to.
void take_type(const Overload& o, Bound& b, PyObject* written);
// The function form with out=. New reference: `b.out`, or a tuple of what was written.
PyObject* invoke_out(const OpDef& def, Overload& o, Bound& b);

}  // namespace rl
