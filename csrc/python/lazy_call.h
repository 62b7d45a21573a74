// Calls of ops with conjugate or negative views among their arguments: see Note [Lazy views].
#pragma once
#include "schema/op_def.h"

namespace rl {

// Whether a value that an op is called with is such a view, or a list with one in it.
bool has_lazy(PyObject* value);
bool any_lazy(const Bound& b, int count);

// The arguments of a call with plain copies instead of such views, for as long as this lives. `finish` writes what the
// call has written to copies back through the views, and gives the views back as its result.
class PlainArguments {
 public:
  PlainArguments(const OpDef& def, bool in_place, Bound& b, int count);
  ~PlainArguments();
  PlainArguments(const PlainArguments&) = delete;
  PlainArguments& operator=(const PlainArguments&) = delete;
  PyObject* finish(PyObject* result);  // takes a reference and gives one

 private:
  PyObject* plain(PyObject* value, bool written);
  SmallVector<PyObject*, 4> owned_;
  struct Written {
    Tensor view, copy;
  };
  SmallVector<Written, 2> written_;
};

}  // namespace rl
