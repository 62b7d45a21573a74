// Which algorithm is the fastest: the parts of the answer that concern several algorithms. What concerns one alone
// stands in its file, as X_profitable().
#pragma once
#include "backend/conv.h"
#include "cpu/isa.h"

namespace rl::RL_ISA {

// The convolution of dy that gives dx where strides are 1, by the filters rotated by 180 degrees. False where there is
// none.
bool dgrad_shape(const ConvShape& s, ConvShape& r);
// Whether the AVX-512 Winograd kernel computes and suits the pass, which copies to NCHW are worth.
bool takes_winograd_avx512(const ConvShape& s, ConvPass pass);
bool takes_dilated(const ConvShape& s, ConvPass pass);

bool im2row_profitable(const ConvProblem& p);
// Few output pixels that each add to many of dx.
bool im2col_dgrad_profitable(const ConvProblem& p);
// Whether images are worth a transpose to NHWC.
bool reorder_profitable(const ConvProblem& p);
// Whether bf16 pairs are multiplied, in the layout of p.shape.
bool bf16_nchw_profitable(const ConvProblem& p);
bool bf16_nhwc_profitable(const ConvProblem& p);

}  // namespace rl::RL_ISA
