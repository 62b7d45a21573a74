// Matching the arguments of a call with the parameters of an op.
#pragma once
#include "schema/op_def.h"

namespace rl {

// Reads the signature, once.
void prepare(Overload& o);
// Fills `b`. On failure returns false, with the reason in `why` if that is given.
bool bind(OpDef& def, Overload& o, const Call& call, Bound& b, std::string* why);
// The TypeError of a call that no overload takes.
[[noreturn]] void no_overload(OpDef& def, const Call& call);
// "Tensor", "int", ...: how messages name the class of a value.
std::string type_name(PyObject* o);

}  // namespace rl
