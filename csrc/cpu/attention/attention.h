// Attention on AVX-512 registers, and what its algorithms share.
#pragma once
#include <algorithm>

#include "backend/view.h"
#include "cpu/loops/scratch.h"

namespace rl::cpu {

// The matrix of one of `heads` heads in each of the batch: rows of unit stride. Keys and values may have fewer heads,
// each for several that follow one another.
template <class T> struct Head {
  T* data;
  int64_t rows, width, step;
  Head(const View& v, int64_t index, int64_t heads)
      : data(v.as<T>() + index / heads * v.strides[0] + index % heads * v.sizes[1] / heads * v.strides[1]),
        rows(v.sizes[2]),
        width(v.sizes[3]),
        step(v.sizes[2] > 1 ? v.strides[2] : std::max<int64_t>(v.sizes[3], 1)) {}
  Head(T* memory, const View& v)  // the same as contiguous rows elsewhere
      : data(memory), rows(v.sizes[2]), width(v.sizes[3]), step(std::max<int64_t>(v.sizes[3], 1)) {}
};

}  // namespace rl::cpu

namespace rl::avx512 {

// As AttentionKernels (backend/attention.h) where cpu::has_avx512().
void attention_forward(bool causal, double scale, const View& out, const View& lse, const View& q, const View& k,
                       const View& v, const View* mask);
void attention_backward(bool causal, double scale, const View& dq, const View& dk, const View& dv, const View& dout,
                        const View& out, const View& lse, const View& q, const View& k, const View& v,
                        const View* mask);

// What attention_forward does for so few queries of the same keys, as in writing a text word by word: keys and values
// are read in place, where packing them would be most of the work.
inline constexpr int64_t kFewQueries = 32;
template <class T> void attention_decode(bool causal, double scale, const View& out, const View& lse, const View& q,
                                         const View& k, const View& v, const View* mask);

}  // namespace rl::avx512
