// The inner loops of `put`.
#include "cpu/index/index.h"
#include "cpu/loops/bytes.h"
#include "cpu/simd/cast.h"
#include "cpu/simd/transpose.h"

namespace rl::RL_ISA {

namespace {

template <Combine kHow, class T> inline T combined(T there, T value) {
  using C = compute_t<T>;
  if constexpr (kHow == Combine::Set) {
    return value;
  } else if constexpr (__is_same(T, bool)) {
    return kHow == Combine::Sum || kHow == Combine::Amax ? there | value : there & value;
  } else {
    C a = static_cast<C>(there), b = static_cast<C>(value);
    if constexpr (kHow == Combine::Sum) {
      return static_cast<T>(a + b);
    } else if constexpr (kHow == Combine::Prod) {
      return static_cast<T>(a * b);
    } else if constexpr (is_complex_v<T>) {
      return value;
    } else {
      bool replace = kHow == Combine::Amin ? b < a : b > a;
      if constexpr (is_floating_v<T>) replace |= b != b;
      return replace ? value : there;
    }
  }
}

template <Combine kHow, class T>
void row(char* target, int64_t target_step, const char* values, int64_t values_step, int64_t n) {
  if (target_step == sizeof(T) && values_step == sizeof(T)) {
    T* __restrict t = reinterpret_cast<T*>(target);
    const T* __restrict v = reinterpret_cast<const T*>(values);
    for (int64_t i = 0; i < n; ++i) t[i] = combined<kHow, T>(t[i], v[i]);
  } else if (kHow == Combine::Set && target_step == sizeof(T) && values_step == 0) {
    repeat_item(target, *reinterpret_cast<const T*>(values), n);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      T& t = *reinterpret_cast<T*>(target + i * target_step);
      t = combined<kHow, T>(t, *reinterpret_cast<const T*>(values + i * values_step));
    }
  }
}

template <Combine kHow, class T> void each(char* target, int64_t target_step, const char* values, int64_t values_step,
                                           const int64_t* offsets, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    T& t = *reinterpret_cast<T*>(target + offsets[i] + i * target_step);
    t = combined<kHow, T>(t, *reinterpret_cast<const T*>(values + i * values_step));
  }
}

}  // namespace

PutLoops put_loops(DType dtype, Combine combine) {
  PutLoops loops{};
  if (combine == Combine::Set) {
    visit_size(itemsize(dtype), [&](auto u) {
      using U = decltype(u);
      loops = {&row<Combine::Set, U>, &each<Combine::Set, U>};
    });
    return loops;
  }
  bool known = visit_compute(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    switch (combine) {
      case Combine::Sum: loops = {&row<Combine::Sum, T>, &each<Combine::Sum, T>}; break;
      case Combine::Prod: loops = {&row<Combine::Prod, T>, &each<Combine::Prod, T>}; break;
      case Combine::Amin: loops = {&row<Combine::Amin, T>, &each<Combine::Amin, T>}; break;
      default: loops = {&row<Combine::Amax, T>, &each<Combine::Amax, T>}; break;
    }
  });
  CHECK(known, NotImplemented, "scatter: no arithmetic for ", info(dtype).name);
  return loops;
}

}  // namespace rl::RL_ISA
