// The maxima of contiguous rows and the sums of e^(x - maximum).
#pragma once
#include <cstdint>

#include "cpu/isa.h"

namespace rl::RL_ISA {

inline constexpr int64_t kRowsAtOnce = 16;  // whose logarithms are taken together

// `rows` rows of n elements: greatest[r] = the row's maximum, sums[r] = the sum of e^(x - greatest), whose terms
// divided by it are written to y unless that is null. Rows of x and y have strides x_stride and y_stride; y may be x.
template <class T> using ExpSums = void (*)(const T* x, int64_t x_stride, T* y, int64_t y_stride, int64_t rows,
                                            int64_t n, T* greatest, T* sums);

// The same on the registers of this build, or wider ones where there are: floats and doubles.
template <class T>
void exp_sums(const T* x, int64_t x_stride, T* y, int64_t y_stride, int64_t rows, int64_t n, T* greatest, T* sums);

}  // namespace rl::RL_ISA

namespace rl::avx512 {
template <class T>
void exp_sums(const T* x, int64_t x_stride, T* y, int64_t y_stride, int64_t rows, int64_t n, T* greatest, T* sums);
}  // namespace rl::avx512
