// The elementwise half of recurrent cells: what remains of a step once the products are taken.
#pragma once
#include <cstdint>

#include "backend/view.h"

namespace rl {

// All contiguous floats of one type. H = hidden size; states are (N, H).
struct RnnKernels {
  // gates (N, 4H) are input, forget, cell, output before their activation, `active` after it.
  // c = sigmoid(f) c0 + sigmoid(i) tanh(g), h = sigmoid(o) tanh(c)
  void (*lstm)(int64_t rows, int64_t hidden, const View& h, const View& c, const View& active, const View& gates,
               const View& c0);
  // dgates and dc0 from dh and dc
  void (*lstm_grad)(int64_t rows, int64_t hidden, const View& dgates, const View& dc0, const View& dh, const View& dc,
                    const View& active, const View& c, const View& c0);
  // x and y (N, 3H) are reset, update and new of the input and of the state; active (N, 3H) after activation.
  // n = tanh(xn + r yn), h = n + z (h0 - n)
  void (*gru)(int64_t rows, int64_t hidden, const View& h, const View& active, const View& x, const View& y,
              const View& h0);
  void (*gru_grad)(int64_t rows, int64_t hidden, const View& dx, const View& dy, const View& dh0, const View& dh,
                   const View& active, const View& y, const View& h0);
};

}  // namespace rl
