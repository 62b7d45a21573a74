#include "tensor/no_grad_reason.h"

#include <cstring>
#include <vector>

#include "base/check.h"

namespace rl {

namespace {

thread_local Site* t_mode_site = nullptr;  // never freed: a thread may end without the GIL

// Calls in a loop give the same record again and again: the last one is reused while it fits.
Cut* g_last = nullptr;

Cut* make_cut(CutKind kind, const char* op, DType dtype) {
  Site here = Site::here();
  Site mode;
  if (kind == CutKind::NoGrad || kind == CutKind::Inference) mode = mode_site();
  if (g_last && g_last->kind == kind && g_last->op == op && g_last->dtype == dtype && g_last->site == here &&
      g_last->mode == mode) {
    g_last->ref();
    return g_last;
  }
  auto* cut = new Cut;
  cut->kind = kind;
  cut->op = op;
  cut->dtype = dtype;
  cut->site = std::move(here);
  cut->mode = std::move(mode);
  if (kind != CutKind::Strided) {
    if (g_last) g_last->unref();
    g_last = cut;
    cut->ref();
  }
  return cut;
}

void set_cut(TensorObject* y, Cut* owned) {
  Cut* old = std::exchange(y->cut, owned);
  if (old) old->unref();
}

}  // namespace

Site& mode_site() {
  if (!t_mode_site) t_mode_site = new Site;
  return *t_mode_site;
}

void Cut::destroy() {
  if (before) before->unref();
  delete this;
}

void note_cut(TensorObject* y, CutKind kind, const char* op) {
  if (Site::enabled()) set_cut(y, make_cut(kind, op, y->dtype));
}

void note_strided(TensorObject* y, const TensorObject* x, const char* op) {
  if (!Site::enabled()) return;
  Cut* cut = make_cut(CutKind::Strided, op, y->dtype);
  Cut* before = x->cut && x->cut->kind == CutKind::Strided ? x->cut->before : x->cut;
  if (before) before->ref();
  cut->before = before;
  set_cut(y, cut);
}

const char* cut_name(CutKind kind) {
  switch (kind) {
    case CutKind::Made: return "made";
    case CutKind::Strided: return "strided";
    case CutKind::NoGrad: return "no_grad";
    case CutKind::Inference: return "inference_mode";
    case CutKind::Detached: return "detach";
    case CutKind::Data: return "data";
    case CutKind::Integer: return "integer";
    case CutKind::Constant: return "constant";
    case CutKind::Frozen: return "frozen";
  }
  return "";
}

std::string Cut::describe() const {
  if (kind == CutKind::Strided) return before ? before->describe() : "";
  std::string at = site ? " at " + site.describe() : "";
  static const std::string kFunctional = "nn.functional.";
  std::string name = !op ? "a call" : std::strcmp(op, "_share_array") == 0 ? "as_tensor" : op;
  if (name.compare(0, kFunctional.size(), kFunctional) == 0) name = name.substr(kFunctional.size());
  std::string call = name + "()";
  auto begins = [&](const char* s) { return op && std::strncmp(op, s, std::strlen(s)) == 0; };
  switch (kind) {
    case CutKind::NoGrad:
    case CutKind::Inference: {
      const char* name = kind == CutKind::NoGrad ? "no_grad()" : "inference_mode()";
      std::string s = text("\n  the graph was cut", at, ": ", call, " ran under ", name);
      if (mode) s += text("\n  grad mode was switched off at ", mode.describe());
      return s + text("\n  Do what the gradient should pass through outside ", name, ".");
    }
    case CutKind::Detached:
      return text("\n  the graph was cut", at, ": ", call,
                  " gives a tensor without history\n  Use the tensor itself where the gradient should pass.");
    case CutKind::Data:
      return text("\n  the graph was cut", at, ": .data gives the values without history",
                  "\n  Use the tensor itself where the gradient should pass (detach() where it should not).");
    case CutKind::Integer: {
      std::string s = text("\n  the graph was cut", at, ": ", call, " gives ", info(dtype).name,
                           ", and only floating point and complex values have gradients");
      if (begins("arg"))
        return s + "\n  A position has no derivative: use its soft form (softmax, a weighted sum), or max().values.";
      if (dtype == DType::Bool)
        return s + "\n  A comparison has no derivative: use a smooth form (sigmoid, relu, clamp).";
      return s + "\n  Keep the values in a float type up to the loss.";
    }
    case CutKind::Constant:
      return text("\n  its values come from ", call, at, ", and do not depend on those of its argument",
                  "\n  Use the tensor itself where the gradient should pass.");
    case CutKind::Frozen:
      return text("\n  requires_grad was switched off", at, "\n  Call requires_grad_() on what should be trained.");
    case CutKind::Made:
      if (begins("from_numpy") || begins("tensor") || begins("_share_array") || begins("frombuffer"))
        return text("\n  it comes from the values given to ", call, at,
                    ": NumPy arrays and Python numbers (.numpy(), .item(), .tolist()) carry no history",
                    "\n  Compute with tensors all the way, or, if it is a leaf, write requires_grad=True there.");
      return text("\n  nothing it was computed from asks for gradients: it comes from ", call, at,
                  "\n  Write requires_grad=True (or use an nn.Parameter) for what should get a gradient.");
    case CutKind::Strided: break;
  }
  return "";
}

}  // namespace rl
