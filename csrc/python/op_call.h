// A call of an op: the overload that takes the arguments, then the op itself.
#pragma once
#include "schema/op_def.h"

namespace rl {

PyObject* run_op(OpDef& def, const Call& call);
// The same, timed by the profiler under the op's name there.
PyObject* run_profiled(OpDef& def, const Call& call);

}  // namespace rl
