// Registration of ops. One row gives the function, the method, the in-place and `out=` forms, the signature and the
// documentation; nothing else in the project lists ops.
#pragma once
#include "schema/arguments.h"
#include "schema/kernel.h"
#include "schema/type_letters.h"

namespace rl {

// X(flag, its name in Python, bit, what it says of an op). Python has them as `_C.OpFlags` and `op.traits`.
// clang-format off
#define RL_OP_FLAGS(X) \
  X(kMethod, method, 0, "also Tensor.name") \
  X(kInplace, inplace, 1, "also Tensor.name_ (and the function name_)") \
  X(kNoFunction, no_function, 2, "method only") \
  X(kView, view, 3, "the result shares memory with the input") \
  X(kNoOut, no_out, 4, "no out= form") \
  X(kElementwise, elementwise, 5, "each element of a result comes from those at its index in the operands, as they broadcast") \
  X(kKeepsInput, keeps_input, 6, "direct, and its derivative never needs the first input: direct even when recorded") \
  X(kNotDifferentiable, not_differentiable, 7, "integer or bool results, or none") \
  X(kRandom, random, 8, "draws random numbers") \
  X(kFactory, factory, 9, "makes tensors from no tensor") \
  X(kOverlapOk, overlap_ok, 10, "writes (in place, out=) also where several elements share memory") \
  X(kNoOverlap, no_overlap, 11, "what is written (in place, out=) may share no memory with another argument, not even be one") \
  X(kExactOut, exact_out, 12, "out= must have the result's own type; else any that the result can be cast to") \
  X(kCastLow, cast_low, 13, "inside autocast, float arguments (not float64) become the region's short type") \
  X(kCastFull, cast_full, 14, "... float32") \
  X(kCastWidest, cast_widest, 15, "... the longest type among them") \
  X(kOld, old, 16, "a form of PyTorch 1.4 and before: works, warns once, and is shown nowhere") \
  X(kFreeOut, free_out, 17, "out= may lie across an argument: the result is computed apart from it") \
  X(kOutType, out_type, 18, "out= says what type is computed in, as dtype= does") \
  X(kBoolOut, bool_out, 19, "out= must be bool or uint8") \
  X(kLazyOk, lazy_ok, 20, "takes conjugate and negative views as they are, as views (kView) do") \
  X(kAnyType, any_type, 21, "moves elements or casts them: also of float8 and of bits, which have no arithmetic") \
  X(kDirect, direct, 22, "in place and with out= it writes straight into the target") \
  X(kBatchable, batchable, 23, "dimensions in front are carried along, though it is not elementwise: vmap calls it once") \
  X(kOwnType, own_type, 24, "the result's type is not that of all arguments together") \
  X(kAnyDevice, any_device, 25, "takes tensors of several devices")
// clang-format on

enum OpFlags : uint32_t {
#define RL_FLAG(flag, name, bit, says) flag = uint32_t{1} << bit,
  RL_OP_FLAGS(RL_FLAG)
#undef RL_FLAG
};

using Invoke = PyObject* (*)(void (*fn)(), PyObject* const* slots, const char* results);
using CheckArg = bool (*)(PyObject*);

struct OverloadSpec {
  const char* signature;  // "input, dim=None, keepdim=False, *, dtype=None"; "size..." collects positional ints
  void (*fn)();
  Invoke invoke;
  const CheckArg* checks;
  const char* const* type_names;
  int count;
  uint32_t flags;
  const char* results;                     // "values, indices" for a named tuple, else null
  const char *param_types, *result_types;  // see type_letters.h
  const Kernel* kernel;                    // that the op is, or null
};

void define_op(const char* name, const OverloadSpec& spec, const char* doc);
void define_alias(const char* alias, const char* name);
void document_op(const char* name, const char* doc);
// The kernel that the op of that name is; null if it is none, or there is no such op.
const Kernel* kernel_of(const char* name);

namespace detail {

template <class R> PyObject* result_to_python(R&& r, const char*) { return to_python(std::forward<R>(r)); }
PyObject* named_tuple(const char* names, PyObject** items, int count);  // steals the items
template <class Tuple, size_t... I> PyObject* tuple_to_python(Tuple&& r, const char* names, std::index_sequence<I...>) {
  PyObject* items[] = {to_python(std::move(std::get<I>(r)))...};
  return named_tuple(names, items, sizeof...(I));
}
template <class... T> PyObject* result_to_python(std::tuple<T...>&& r, const char* names) {
  return tuple_to_python(std::move(r), names, std::index_sequence_for<T...>());
}

template <class R, class... A> struct Caller {
  static inline const CheckArg checks[sizeof...(A) + 1] = {Arg<std::remove_cvref_t<A>>::check..., nullptr};
  static inline const char* const names[sizeof...(A) + 1] = {Arg<std::remove_cvref_t<A>>::kName..., nullptr};
  template <size_t... I>
  static PyObject* call(R (*fn)(A...), PyObject* const* slots, const char* results, std::index_sequence<I...>) {
    (void)slots;
    if constexpr (std::is_void_v<R>) {
      (void)results;
      fn(Arg<std::remove_cvref_t<A>>::load(slots[I])...);
      return Py_NewRef(Py_None);
    } else {
      return result_to_python(fn(Arg<std::remove_cvref_t<A>>::load(slots[I])...), results);
    }
  }
  static PyObject* invoke(void (*fn)(), PyObject* const* slots, const char* results) {
    return call(reinterpret_cast<R (*)(A...)>(fn), slots, results, std::index_sequence_for<A...>());
  }
};

}  // namespace detail

struct Ops {
  // A second `def` of the same name adds an overload; overloads are tried in order.
  template <class R, class... A> void def(const char* name, R (*fn)(A...), const char* signature, uint32_t flags = 0,
                                          const char* doc = "", const char* results = nullptr,
                                          const Kernel* kernel = nullptr) {
    using C = detail::Caller<R, A...>;
    define_op(name,
              {signature, reinterpret_cast<void (*)()>(fn), C::invoke, C::checks, C::names, sizeof...(A), flags,
               results, TypeLetters<A...>::kText, TypeLetters<std::remove_cvref_t<R>>::kText, kernel},
              doc);
  }
  // An op that is one kernel, which lives as long as the program.
  template <class R, class... A> void def(const char* name, R (*fn)(A...), const char* signature, uint32_t flags,
                                          const char* doc, const Kernel& kernel) {
    def(name, fn, signature, flags | kElementwise, doc, nullptr, &kernel);
  }
  void alias(const char* alias, const char* name) { define_alias(alias, name); }
  // The documentation of an op whose rows a template makes.
  void document(const char* name, const char* doc) { document_op(name, doc); }
};

// `static const Register registered([](Ops& ops) { ops.def(...); });` closes each file of ops.
struct Register {
  explicit Register(void (*f)(Ops&)) {
    Ops ops;
    f(ops);
  }
};

}  // namespace rl
