// softmax and its gradient on 512-bit registers, along columns that lie side by side and along rows.
#pragma once
#include <cstdint>

namespace rl {
namespace cpu {

inline constexpr int64_t kStripBytes = 256;  // columns done at once, as bytes of the type they are computed in

// n columns, at most a strip, of `rows` rows with strides x_stride and y_stride.
template <class T> using SoftmaxColumns = void (*)(bool log, const T* x, int64_t x_stride, T* y, int64_t y_stride,
                                                   int64_t rows, int64_t n);
// dx from dy and the result y: of columns as above, or of contiguous rows.
template <class T> using SoftmaxGrad = void (*)(bool log, const T* dy, int64_t dy_stride, const T* y, int64_t y_stride,
                                                T* dx, int64_t x_stride, int64_t rows, int64_t n);

}  // namespace cpu

namespace avx512 {
template <class T>
void softmax_columns(bool log, const T* x, int64_t x_stride, T* y, int64_t y_stride, int64_t rows, int64_t n);
template <class T> void softmax_grad_columns(bool log, const T* dy, int64_t dy_stride, const T* y, int64_t y_stride,
                                             T* dx, int64_t x_stride, int64_t rows, int64_t n);
template <class T> void softmax_grad_rows(bool log, const T* dy, int64_t dy_stride, const T* y, int64_t y_stride, T* dx,
                                          int64_t x_stride, int64_t rows, int64_t n);
}  // namespace avx512
}  // namespace rl
