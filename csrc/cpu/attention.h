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

}  // namespace rl::cpu
