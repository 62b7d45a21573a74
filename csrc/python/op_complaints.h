// What a call that does not match an op is told.
#pragma once
#include "schema/op_def.h"

namespace rl {

std::string too_many(const OpDef& def, const Overload& o, const Call& call);
std::string unknown_name(const OpDef& def, const Overload& o, PyObject* name);
std::string given_twice(const OpDef& def, PyObject* name);
std::string missing(const OpDef& def, const Overload& o, const Param& p);
std::string wrong_type(const OpDef& def, const Overload& o, const Call& call, int param, PyObject* given);

}  // namespace rl
