// Optimizer steps: one call updates all parameters of a group, with their state.
#pragma once
#include <cstdint>

#include "backend/view.h"

namespace rl {

// Tensors of a row: parameter p, gradient g, then the state named in the comment. c.. are the row's own coefficients,
// s.. those of the group. `sign` of the group is -1 for maximize, and decay adds decay * p to g.
enum class OptimStep : uint8_t {
  Sgd,     // buf (with kMomentum)              c0 = momentum (0 at the first step), c1 = 1 - dampening; s0 = lr, s1 =
           // momentum
  Adam,    // m, v, largest v (with kAmsgrad)   c0 = lr / (1 - beta1^t), c1 = sqrt(1 - beta2^t); s0 = 1 - beta1, s1 =
           // beta2, s2 = eps, s3 = 1 - beta2
  Adamax,  // m, u                              c0 = lr / (1 - beta1^t); s0 = 1 - beta1, s1 = beta2, s2 = eps
  NAdam,   // m, v                              c0, c1 = rates of g and m, c2 = 1 - beta2^t; s as for Adam
  RAdam,  // m, v                              c0 = 1 - beta1^t, c1 = rectification * sqrt(1 - beta2^t), 0: none yet, c2
          // = lr; s as for Adam
  Adagrad,   // sum                               c0 = lr / (1 + (t - 1) * lr_decay); s0 = eps
  Adadelta,  // v, acc                            s0 = rho, s1 = eps, s2 = lr, s3 = 1 - rho
  RMSprop,   // v, mean (kCentered), buf (kMomentum)   s0 = alpha, s1 = eps, s2 = lr, s3 = momentum, s4 = 1 - alpha
  Rprop,     // previous gradient, step size      s0, s1 = etas, s2, s3 = limits of the step size
  Asgd,      // average                           c0 = 1 - lambd * eta, c1 = eta, c2 = mu
};

enum OptimFlags : uint32_t { kMomentum = 1, kNesterov = 2, kAmsgrad = 4, kCentered = 8, kWeightDecay = 16 };

struct OptimRow {
  static constexpr int kTensors = 5;
  void* data[kTensors];  // p, g, state; all of one type, in the same order in memory
  int64_t numel;         // real numbers
  double c[3];
};

struct OptimGroup {
  OptimStep step;
  uint32_t flags;
  double sign, weight_decay;
  double decoupled_decay;  // p is multiplied by this first (decoupled weight decay)
  double s[5];             // 1 - x comes beside x: in float32 it could not be had from it
};

// Adafactor's parameter, dense and row-major, all arrays of one type. A matrix (the last two dimensions, `batch` of
// them) has means of g^2 along its rows and columns in `row` and `col`; anything else has them element by element in
// `row`, with col null.
struct FactorRow {
  void* p;
  const void* g;
  void* row;
  void* col;
  int64_t batch, rows, columns;
  double fresh;  // the weight of the new g^2 in the means
  double floor;  // eps1
  double rate;   // the step relative to the root mean square of p
};

struct FactorGroup {
  double sign;             // -1: maximize
  double decoupled_decay;  // p is multiplied by this first
  double smallest;         // eps2: p's root mean square counts as at least this
  double clip;             // d: updates whose root mean square is larger are scaled down to it
};

struct OptimKernels {
  // Updates all rows, in parallel over pieces of all of them. dtype: float16, bfloat16, float32 or float64.
  void (*step)(DType dtype, const OptimGroup& group, const OptimRow* rows, int64_t count);
  // out[i] = the sum of |x|^order over row i's data[0], order 1 or 2; the largest |x| for order infinity.
  void (*powers)(DType dtype, double order, const OptimRow* rows, int64_t count, double* out);
  // Multiplies data[0] of all rows by a number.
  void (*scale)(DType dtype, double factor, const OptimRow* rows, int64_t count);
  // One step of Adafactor on all rows.
  void (*adafactor)(DType dtype, const FactorGroup& group, const FactorRow* rows, int64_t count);
};

}  // namespace rl
