// Why a tensor has no gradient: the call that left the graph, or that made the values in the first place. Noted when a
// result could have had a history and has none, and handed on, as a pointer, to what is computed from it.
#pragma once
#include <cstdint>
#include <string>

#include "base/dtype.h"
#include "tensor/site.h"
#include "tensor/tensor.h"

namespace rl {

enum class CutKind : uint8_t {
  Made,     // by a call without tensor arguments
  Strided,  // a view in another memory order: no cut, but asked for by the error of view(); `before` has the reason
  NoGrad,   // grad mode was off
  Inference,
  Detached,  // detach(), detach_()
  Data,      // .data
  Integer,   // the result's type has no derivative
  Constant,  // a float result that does not depend on the argument's values: zeros_like
  Frozen,    // requires_grad was switched off
};

struct Cut {
  uint32_t refs = 1;
  CutKind kind = CutKind::Made;
  DType dtype = DType::Float32;
  const char* op = nullptr;  // lives as long as the process
  Site site;                 // the call
  Site mode;                 // where grad mode was switched off
  Cut* before = nullptr;     // owned; Strided only

  void ref() { ++refs; }
  void unref() {
    if (--refs == 0) destroy();
  }
  std::string describe() const;  // lines of an error message: what happened, where, what to write instead

 private:
  void destroy();
};

// The line that switched grad mode off in this thread.
Site& mode_site();
extern bool g_sites_enabled;  // Site::enabled(), without the call

// Notes on y that the call `op` here cut it off. Does nothing when sites are not recorded.
void note_cut(TensorObject* y, CutKind kind, const char* op);
// y is a view of x in another order of memory.
void note_strided(TensorObject* y, const TensorObject* x, const char* op);
// y was computed from x, which has no history either.
inline void inherit_cut(TensorObject* y, const TensorObject* x) {
  if (!x->cut || x->cut == y->cut) return;
  x->cut->ref();
  if (Cut* old = std::exchange(y->cut, x->cut)) old->unref();
}

const char* cut_name(CutKind kind);

}  // namespace rl
