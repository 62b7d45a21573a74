// Attention of many heads: softmax(q k' scale) v, and its gradients, without keeping the weights.
#pragma once
#include <cstdint>

#include "backend/view.h"

namespace rl {

// q, k, v and their gradients are (batch, heads, length, width) of one type, float or double, with rows of unit stride
// and a row stride of at least their width; `out`, `dout` too. lse (batch, heads, queries) is contiguous: the
// logarithm of each row's sum of exponentials, inf for a row that sees nothing. mask, or null, is (batch, heads,
// queries, keys) with any strides: booleans that say which keys a query sees, or elements of the same type to add to
// the scores.
struct AttentionKernels {
  // Whether `forward` takes reduced-precision types, with a mask of floats and lse in floats.
  bool (*takes_half)();
  // causal: query i sees the keys up to i. In `forward` k and v may have fewer heads, each for several of q's.
  void (*forward)(bool causal, double scale, const View& out, const View& lse, const View& q, const View& k,
                  const View& v, const View* mask);
  void (*backward)(bool causal, double scale, const View& dq, const View& dk, const View& dv, const View& dout,
                   const View& out, const View& lse, const View& q, const View& k, const View& v, const View* mask);
};

}  // namespace rl
