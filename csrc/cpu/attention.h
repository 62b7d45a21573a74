// Attention of floats on registers of 512 bits.
#pragma once
#include "backend/view.h"

namespace rl::cpu {

// As AttentionKernels (backend/attention.h), for Float32 where gemm_available().
void attention_forward(bool causal, float scale, const View& out, const View& lse, const View& q, const View& k,
                       const View& v, const View* mask);
void attention_backward(bool causal, float scale, const View& dq, const View& dk, const View& dv, const View& dout,
                        const View& out, const View& lse, const View& q, const View& k, const View& v,
                        const View* mask);

// What attention_forward does for so few queries, as in writing a text word by word: each key and value is read once,
// in place, where packing them would be most of the work.
inline constexpr int64_t kFewQueries = 6;
void attention_few(bool causal, float scale, const View& out, const View& lse, const View& q, const View& k,
                   const View& v, const View* mask);

}  // namespace rl::cpu
