// softmax and its gradient on 512-bit registers, along columns that lie side by side and along rows.
#pragma once
#include <cstdint>

#include "cpu/isa.h"

namespace rl::RL_ISA {

inline constexpr int64_t kStripBytes = 256;  // columns done at once, as bytes of the type they are computed in

// n columns, at most a strip, of `rows` rows that are xapart and yapart elements apart.
template <class T>
using SoftmaxColumns = void (*)(bool log, const T* x, int64_t xapart, T* y, int64_t yapart, int64_t rows, int64_t n);
// dx from dy and the result y: of columns as above, or of rows along which numbers lie side by side.
template <class T> using SoftmaxGrad = void (*)(bool log, const T* dy, int64_t dapart, const T* y, int64_t yapart,
                                                T* dx, int64_t xapart, int64_t rows, int64_t n);

// Null where the processor has no such registers.
template <class T> SoftmaxColumns<T> wide_softmax_columns();
template <class T> SoftmaxGrad<T> wide_softmax_grad_columns();
template <class T> SoftmaxGrad<T> wide_softmax_grad_rows();

}  // namespace rl::RL_ISA
