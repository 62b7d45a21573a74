// The loops of elementwise kernels. An operation is a lambda on elements, `[](auto x, auto y) { return x + y; }`;
// a last argument, if it takes one, receives its Params. The templates here make a Loop of it:
//   contiguous operands run through one plain loop that the compiler turns into SIMD code;
//   other strides are gathered to, and scattered from, contiguous blocks by one routine for all operations;
//   reduced-precision types convert blocks to float and call the float loop.
#pragma once
#include <cstddef>

#include "backend/named_kernel.h"
#include "backend/pointwise.h"
#include "cpu/features.h"
#include "cpu/isa.h"
#include "cpu/simd/math.h"
#ifdef RL_OVERLAY
#include "cpu/simd/vector.h"
#endif

namespace rl::cpu {

// Runs n elements whose operands are contiguous.
using FlatLoop = void (*)(char* const* data, int64_t n, const LoopParams& params);

// Loops by operation and type; null where a type has none.
class LoopTable {
 public:
  Loop& at(Pointwise op, DType t) { return rows_[static_cast<int>(op)][static_cast<int>(t)]; }
  Loop get(Pointwise op, DType t) const { return rows_[static_cast<int>(op)][static_cast<int>(t)]; }

 private:
  Loop rows_[static_cast<int>(Pointwise::Count) + kNamedKernels][kDTypes] = {};
};

}  // namespace rl::cpu

// What the loops of all operations go through: not compiled again for an overlay.
namespace rl::RL_FULL {

// Runs `flat` on blocks gathered from, and scattered to, operands with any strides. `count` operands, the result first.
void run_blocks(cpu::FlatLoop flat, const uint8_t* itemsizes, int count, char* const* data, const int64_t* strides,
                int64_t n, const LoopParams& params);
// Runs a float loop on half or bfloat16 operands; a result that is not of the reduced-precision type is written as it
// is.
void run_half(Loop loop, bool bfloat, bool half_result, int inputs, char* const* data, const int64_t* strides,
              int64_t n, const LoopParams& params);

// Runs a double loop on float operands, result included: for what is computed in double anyway.
void run_as_double(Loop loop, int inputs, char* const* data, const int64_t* strides, int64_t n,
                   const LoopParams& params);
// Runs a complex64 loop on complex32 operands; the result is complex32 (parts = 2), float16 (1) or as the loop's (0).
void run_complex_half(Loop loop, int parts, int inputs, char* const* data, const int64_t* strides, int64_t n,
                      const LoopParams& params);

}  // namespace rl::RL_FULL

namespace rl::RL_ISA {

#ifdef RL_OVERLAY
using RL_FULL::run_as_double;
using RL_FULL::run_blocks;
using RL_FULL::run_complex_half;
using RL_FULL::run_half;
#endif

// LoopParams in the type of the loop.
template <class T> struct real_type {
  using type = double;
};
template <> struct real_type<float> {
  using type = float;
};
template <> struct real_type<std::complex<float>> {
  using type = float;
};
template <class T> struct Params {
  typename real_type<T>::type d0, d1, d2;
  int64_t i0;
  T s0, s1;
  explicit Params(const LoopParams& p)
      : d0(static_cast<decltype(d0)>(p.d0)),
        d1(static_cast<decltype(d0)>(p.d1)),
        d2(static_cast<decltype(d0)>(p.d2)),
        i0(p.i0),
        s0(p.s0.get<T>()),
        s1(p.s1.get<T>()) {}
};

template <auto F, class P, class... A> RL_INLINE auto call(const P& p, A... a) {
  if constexpr (requires { F(a..., p); }) {
    return F(a..., p);
  } else {
    return F(a...);
  }
}
// An operation of two bools would be an int by C++'s promotions: the elements written must be what the caller
// allocated.
template <class R, class T> struct result_check {
  static_assert(!__is_same(R, int) || __is_same(T, int), "the lambda of this operation returns int by promotion");
  using type = R;
};
template <auto F, class T, class... A> using result_t =
    typename result_check<decltype(call<F>(Params<T>(LoopParams{}), A{}...)), T>::type;

// The plain loops, not inlined: each is called from several functions. Bit i of kScalars says that input i is one
// element for all. The compiler may assume no dependence between iterations: operands overlap fully (in-place) or not
// at all.
template <auto F, class T, class A>
[[gnu::flatten, gnu::noinline]] void flat1(char* const* data, int64_t n, const LoopParams& params) {
  const Params<T> p(params);
  auto* out = reinterpret_cast<result_t<F, T, A>*>(data[0]);
  auto* a = reinterpret_cast<const A*>(data[1]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = call<F>(p, a[i]);
}
template <auto F, class T, unsigned kScalars, class A, class B>
[[gnu::flatten, gnu::noinline]] void flat2(char* const* data, int64_t n, const LoopParams& params) {
  const Params<T> p(params);
  auto* out = reinterpret_cast<result_t<F, T, A, B>*>(data[0]);
  auto* a = reinterpret_cast<const A*>(data[1]);
  auto* b = reinterpret_cast<const B*>(data[2]);
  const A a0 = *a;
  const B b0 = *b;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = call<F>(p, kScalars & 1 ? a0 : a[i], kScalars & 2 ? b0 : b[i]);
}
template <auto F, class T, unsigned kScalars, class A, class B, class C>
[[gnu::flatten, gnu::noinline]] void flat3(char* const* data, int64_t n, const LoopParams& params) {
  const Params<T> p(params);
  auto* out = reinterpret_cast<result_t<F, T, A, B, C>*>(data[0]);
  auto* a = reinterpret_cast<const A*>(data[1]);
  auto* b = reinterpret_cast<const B*>(data[2]);
  auto* c = reinterpret_cast<const C*>(data[3]);
  const A a0 = *a;
  const B b0 = *b;
  const C c0 = *c;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    out[i] = call<F>(p, kScalars & 1 ? a0 : a[i], kScalars & 2 ? b0 : b[i], kScalars & 4 ? c0 : c[i]);
  }
}

template <auto F, class T, class A = T>
void loop1(char* const* data, const int64_t* strides, int64_t n, const LoopParams& params) {
  if (n < 1) return;
  static constexpr uint8_t kSizes[] = {sizeof(result_t<F, T, A>), sizeof(A)};
  constexpr FlatLoop kFlat = &flat1<F, T, A>;
  if (n == 1 || (strides[0] == kSizes[0] && strides[1] == kSizes[1])) return kFlat(data, n, params);
  run_blocks(kFlat, kSizes, 2, data, strides, n, params);
}
// kCheap: also compile the loops with one scalar operand; otherwise a scalar is spread over a block first.
template <auto F, class T, bool kCheap = true, class A = T, class B = T>
void loop2(char* const* data, const int64_t* strides, int64_t n, const LoopParams& params) {
  if (n < 1) return;
  static constexpr uint8_t kSizes[] = {sizeof(result_t<F, T, A, B>), sizeof(A), sizeof(B)};
  const bool out = strides[0] == kSizes[0], a = strides[1] == kSizes[1], b = strides[2] == kSizes[2];
  if (n == 1 || (out && a && b)) return flat2<F, T, 0, A, B>(data, n, params);
  if constexpr (kCheap) {
    if (out && a && strides[2] == 0) return flat2<F, T, 2, A, B>(data, n, params);
    if (out && b && strides[1] == 0) return flat2<F, T, 1, A, B>(data, n, params);
  }
  run_blocks(&flat2<F, T, 0, A, B>, kSizes, 3, data, strides, n, params);
}
template <auto F, class T, class A = T, class B = T, class C = T>
void loop3(char* const* data, const int64_t* strides, int64_t n, const LoopParams& params) {
  if (n < 1) return;
  static constexpr uint8_t kSizes[] = {sizeof(result_t<F, T, A, B, C>), sizeof(A), sizeof(B), sizeof(C)};
  bool same = strides[0] == kSizes[0] && strides[1] == kSizes[1] && strides[2] == kSizes[2] && strides[3] == kSizes[3];
  if (n == 1 || same) return flat3<F, T, 0, A, B, C>(data, n, params);
  run_blocks(&flat3<F, T, 0, A, B, C>, kSizes, 4, data, strides, n, params);
}
template <Loop kFloat, class H, int kInputs, bool kHalfResult>
void loop_half(char* const* data, const int64_t* strides, int64_t n, const LoopParams& params) {
  run_half(kFloat, __is_same(H, bfloat16), kHalfResult, kInputs, data, strides, n, params);
}

template <Loop kDouble, int kInputs>
void loop_as_double(char* const* data, const int64_t* strides, int64_t n, const LoopParams& params) {
  run_as_double(kDouble, kInputs, data, strides, n, params);
}
// Runs a loop with its two inputs in the other order.
template <Loop kLoop>
void loop_swapped(char* const* data, const int64_t* strides, int64_t n, const LoopParams& params) {
  char* const swapped[] = {data[0], data[2], data[1]};
  const int64_t steps[] = {strides[0], strides[2], strides[1]};
  kLoop(swapped, steps, n, params);
}

template <Loop kComplex, int kInputs, int kParts>
void loop_complex_half(char* const* data, const int64_t* strides, int64_t n, const LoopParams& params) {
  run_complex_half(kComplex, kParts, kInputs, data, strides, n, params);
}

template <Loop kFloat, int kInputs, bool kHalfResult> void put_half(LoopTable& t, Pointwise op) {
  t.at(op, DType::Float16) = &loop_half<kFloat, float16, kInputs, kHalfResult>;
  t.at(op, DType::BFloat16) = &loop_half<kFloat, bfloat16, kInputs, kHalfResult>;
}
// A loop for double, and the other types through it: blocks of floats cost little to convert, and a loop of their own
// much room.
template <Loop kDouble, int kInputs> void put_doubles(LoopTable& t, Pointwise op) {
  t.at(op, DType::Float64) = kDouble;
  t.at(op, DType::Float32) = &loop_as_double<kDouble, kInputs>;
  put_half<&loop_as_double<kDouble, kInputs>, kInputs, true>(t, op);
}
// unary<F, int32_t, int64_t>(table, op) puts the loops of F for these types; *_floats for float, double and both
// fp16 and bf16.
template <auto F, class... T> void unary(LoopTable& t, Pointwise op) {
  ((t.at(op, dtype_of<T>::value) = &loop1<F, T>), ...);
}
template <auto F, class... T> void binary(LoopTable& t, Pointwise op) {
  ((t.at(op, dtype_of<T>::value) = &loop2<F, T>), ...);
}
template <auto F, class... T> void ternary(LoopTable& t, Pointwise op) {
  ((t.at(op, dtype_of<T>::value) = &loop3<F, T>), ...);
}
template <auto F> void unary_floats(LoopTable& t, Pointwise op) {
  unary<F, float, double>(t, op);
  put_half<&loop1<F, float>, 1, __is_same(result_t<F, float, float>, float)>(t, op);
}
template <auto F, bool kCheap = true> void binary_floats(LoopTable& t, Pointwise op) {
  t.at(op, DType::Float32) = &loop2<F, float, kCheap>;
  t.at(op, DType::Float64) = &loop2<F, double, kCheap>;
  put_half<&loop2<F, float, kCheap>, 2, __is_same(result_t<F, float, float, float>, float)>(t, op);
}
template <auto F> void ternary_floats(LoopTable& t, Pointwise op) {
  ternary<F, float, double>(t, op);
  put_half<&loop3<F, float>, 3, true>(t, op);
}

#ifdef RL_OVERLAY
// fp16 and bf16 of cheap operations: widened, computed and narrowed in registers, as going through blocks of floats
// takes longer than the operation. Of bfloat16 the bits are spelled out: the compiler makes vectors of whole numbers.
// Sixteen of float16 are converted at once; the arrays between stay in registers.
RL_INLINE uint16_t bf16_of(float x) {
  const uint32_t u = __builtin_bit_cast(uint32_t, x);
  const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1)) >> 16;
  return static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
}
RL_INLINE float of_bf16(uint16_t x) { return __builtin_bit_cast(float, static_cast<uint32_t>(x) << 16); }
struct Sixteen {
  using V = simd::Vec<float, 64>;
  alignas(64) float x[16];
  [[gnu::always_inline]] void widen(const uint16_t* from) {
    V::store(x, V::load(reinterpret_cast<const float16*>(from)));
  }
  [[gnu::always_inline]] void narrow(uint16_t* to) const { V::store(reinterpret_cast<float16*>(to), V::load(x)); }
};
// Bit i of kScalars says that input i is one element for all.
template <auto F, class H, int kInputs, unsigned kScalars>
[[gnu::flatten, gnu::noinline]] void half_flat(char* const* data, int64_t n, const LoopParams& params) {
  const Params<float> p(params);
  auto* out = reinterpret_cast<uint16_t*>(data[0]);
  const uint16_t* in[3];
  for (int k = 0; k < kInputs; ++k) in[k] = reinterpret_cast<const uint16_t*>(data[k + 1]);
  auto apply = [&](float a, float b, float c) __attribute__((always_inline)) {
    if constexpr (kInputs == 1) return call<F>(p, a);
    else if constexpr (kInputs == 2) return call<F>(p, a, b);
    else return call<F>(p, a, b, c);
  };
  constexpr int kB = kInputs > 1, kC = kInputs > 2 ? 2 : 0;
  if constexpr (__is_same(H, bfloat16)) {
    const uint16_t *a = in[0], *b = in[kB], *c = in[kC];
    const float a0 = of_bf16(*a), b0 = of_bf16(*b);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i)
      out[i] = bf16_of(apply(kScalars & 1 ? a0 : of_bf16(a[i]), kScalars & 2 ? b0 : of_bf16(b[i]), of_bf16(c[i])));
  } else {
    Sixteen x[3], y;
    uint16_t few[3][16] = {};
    for (int k = 0; k < kInputs; ++k)
      if (kScalars >> k & 1) {
        for (int j = 0; j < 16; ++j) few[k][j] = *in[k];
        x[k].widen(few[k]);
      }
    int64_t i = 0;
    auto run = [&]() __attribute__((always_inline)) {
      for (int j = 0; j < 16; ++j) y.x[j] = apply(x[0].x[j], x[kB].x[j], x[kC].x[j]);
    };
    for (; i + 16 <= n; i += 16) {
      for (int k = 0; k < kInputs; ++k)
        if (!(kScalars >> k & 1)) x[k].widen(in[k] + i);
      run();
      y.narrow(out + i);
    }
    if (i == n) return;
    const auto bytes = static_cast<size_t>(n - i) * 2;
    for (int k = 0; k < kInputs; ++k)
      if (!(kScalars >> k & 1)) __builtin_memcpy(few[k], in[k] + i, bytes), x[k].widen(few[k]);
    run();
    y.narrow(few[0]);
    __builtin_memcpy(out + i, few[0], bytes);
  }
}
template <auto F, class H, int kInputs>
void half_loop(char* const* data, const int64_t* strides, int64_t n, const LoopParams& params) {
  if (n < 1) return;
  unsigned scalars = 0;
  bool flat = strides[0] == 2;
  for (int k = 0; k < kInputs; ++k) {
    flat = flat && (strides[k + 1] == 2 || strides[k + 1] == 0);
    if (strides[k + 1] == 0) scalars |= 1u << k;
  }
  if (flat && scalars == 0) return half_flat<F, H, kInputs, 0>(data, n, params);
  if constexpr (kInputs == 2) {
    if (flat && scalars == 1) return half_flat<F, H, 2, 1>(data, n, params);
    if (flat && scalars == 2) return half_flat<F, H, 2, 2>(data, n, params);
  }
  static constexpr uint8_t kSizes[] = {2, 2, 2, 2};
  run_blocks(&half_flat<F, H, kInputs, 0>, kSizes, kInputs + 1, data, strides, n, params);
}
template <auto F, int kInputs> void put_half_loops(LoopTable& t, Pointwise op) {
  t.at(op, DType::BFloat16) = &half_loop<F, bfloat16, kInputs>;
  t.at(op, DType::Float16) = &half_loop<F, float16, kInputs>;
}
template <auto F> void unary_half(LoopTable& t, Pointwise op) { put_half_loops<F, 1>(t, op); }
template <auto F> void binary_half(LoopTable& t, Pointwise op) { put_half_loops<F, 2>(t, op); }
#endif

// complex64, complex128 and complex32
template <auto F> void unary_complex(LoopTable& t, Pointwise op) {
  using C = std::complex<float>;
  using R = result_t<F, C, C>;
  unary<F, C, std::complex<double>>(t, op);
  t.at(op, DType::Complex32) = &loop_complex_half < &loop1<F, C>, 1,
           is_complex_v<R>       ? 2
           : __is_same(R, float) ? 1
                                 : 0 > ;
}
template <auto F, bool kCheap = false> void binary_complex(LoopTable& t, Pointwise op) {
  using C = std::complex<float>;
  t.at(op, DType::Complex64) = &loop2<F, C, kCheap>;
  t.at(op, DType::Complex128) = &loop2<F, std::complex<double>, kCheap>;
  t.at(op, DType::Complex32) = &loop_complex_half < &loop2<F, C, kCheap>, 2,
           is_complex_v<result_t<F, C, C, C>> ? 2 : 0 > ;
}

// Each group of operations fills its rows; run.cpp calls them all. In an overlay they replace the rows that gain.
void put_copy(LoopTable& t);
void put_arith(LoopTable& t);
void put_compare(LoopTable& t);
void put_math(LoopTable& t);
void put_trig(LoopTable& t);
void put_divide(LoopTable& t);
void put_misc(LoopTable& t);
void put_complex(LoopTable& t);
void put_special(LoopTable& t);
void put_gamma(LoopTable& t);
void put_activation(LoopTable& t);

// `static const Loops loops([](LoopTable& t) { ... });` in a file of its own fills rows, too: those of named kernels.
struct Loops {
  explicit Loops(void (*put)(LoopTable& t));
};

}  // namespace rl::RL_ISA

namespace rl::avx512 {
void put_loops(cpu::LoopTable& t);
}
