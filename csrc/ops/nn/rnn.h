// Single steps of recurrent cells.
#pragma once
#include <tuple>

#include "autograd/record.h"

namespace rl::ops {

std::tuple<Tensor, Tensor> lstm_step(const Tensor& gates, const Tensor& c0);  // (h, c)
Tensor gru_step(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& h0);

}  // namespace rl::ops
