// Registration of ops. One row gives the function, the method, the in-place and `out=` forms, the signature and the
// documentation; nothing else in the project lists ops.
#pragma once
#include "python/arguments.h"
#include "python/type_letters.h"

namespace rl {

enum OpFlags : uint32_t {
  kMethod = 1,               // also Tensor.name
  kInplace = 2,              // also Tensor.name_ (and the function name_)
  kNoFunction = 4,           // method only
  kView = 8,                 // the result shares memory with the input
  kNoOut = 16,               // no out= form
  kElementwise = 32,         // one kernel, element by element: in-place writes straight into the target
  kKeepsInput = 64,          // elementwise, and its derivative never needs the first input: direct even when recorded
  kNotDifferentiable = 128,  // integer or bool results, or none
  kRandom = 256,
  kFactory = 512,     // makes tensors from no tensor
  kOverlapOk = 1024,  // writes (in place, out=) also where several elements share memory
  kApart = 2048,      // what is written (in place, out=) may share no memory with another argument, not even be one
  kExactOut = 4096,   // out= must have the result's own type; else any that the result can be cast to
  kOld = 65536,       // a form of PyTorch 1.4 and before: works, warns once, and is shown nowhere
  // Inside autocast, float arguments (not float64) become:
  kCastLow = 8192,      // the region's short type
  kCastFull = 16384,    // float32
  kCastWidest = 32768,  // the longest type among them
  kFreeOut = 131072,    // out= may lie across an argument: the result is computed apart from it
  kOutType = 262144,    // out= says what type is computed in, as dtype= does
  kBoolOut = 524288,    // out= must be bool or uint8
  kLazyOk = 1048576,    // takes conjugate and negative views as they are, as views (kView) do
  kAnyType = 2097152,   // moves elements or casts them: also of float8 and of bits, which have no arithmetic
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
};

void define_op(const char* name, const OverloadSpec& spec, const char* doc);
void define_alias(const char* alias, const char* name);

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
                                          const char* doc = "", const char* results = nullptr) {
    using C = detail::Caller<R, A...>;
    define_op(name,
              {signature, reinterpret_cast<void (*)()>(fn), C::invoke, C::checks, C::names, sizeof...(A), flags,
               results, TypeLetters<A...>::kText, TypeLetters<std::remove_cvref_t<R>>::kText},
              doc);
  }
  void alias(const char* alias, const char* name) { define_alias(alias, name); }
};

// `static const Register registered([](Ops& ops) { ops.def(...); });` closes each file of ops.
struct Register {
  explicit Register(void (*f)(Ops&)) {
    Ops ops;
    f(ops);
  }
};

}  // namespace rl
