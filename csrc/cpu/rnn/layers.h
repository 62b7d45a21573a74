// A layer and its gradient for every cell and type. Included once per register width: see layer.h.
#pragma once
#include "cpu/rnn/layer.h"
#include "cpu/rnn/layer_backward.h"
#include "cpu/rnn/strassen_wgrad.h"

namespace rl::RL_ISA {
namespace {

template <class F> void visit_cell(RnnCell cell, DType dtype, F&& f) {
  auto with = [&](auto tag) {
    switch (cell) {
      case RnnCell::Lstm: return f(tag, std::integral_constant<RnnCell, RnnCell::Lstm>{});
      case RnnCell::Gru: return f(tag, std::integral_constant<RnnCell, RnnCell::Gru>{});
      case RnnCell::Tanh: return f(tag, std::integral_constant<RnnCell, RnnCell::Tanh>{});
      case RnnCell::Relu: return f(tag, std::integral_constant<RnnCell, RnnCell::Relu>{});
    }
  };
#ifdef RL_RNN_PAIRS
  static_cast<void>(dtype);
  with(type_tag<bfloat16>{});
#else
  if (dtype == DType::Float64) with(type_tag<double>{});
  else with(type_tag<float>{});
#endif
}

int64_t workspace_of(const RnnShape& shape, DType dtype) {
  int64_t size = 0;
  visit_cell(shape.cell, dtype, [&](auto tag, auto cell) {
    using T = compute_t<typename decltype(tag)::type>;
    using C = Cell<decltype(cell)::value>;
    size = up(shape.hidden, W<T> * C::kUnits) * C::kKept;
  });
  return size;
}
bool by_strassen_any(const RnnShape& shape, DType dtype) {
  bool found = false;
  visit_cell(shape.cell, dtype, [&](auto tag, auto cell) {
    found = steps_by_strassen<decltype(cell)::value, typename decltype(tag)::type>(shape);
  });
  return found;
}
void layer_any(const RnnShape& shape, const RnnForward& f) {
  visit_cell(shape.cell, f.out.dtype,
             [&](auto tag, auto cell) { layer_of<decltype(cell)::value, typename decltype(tag)::type>(shape, f); });
}
void layer_grad_any(const RnnShape& shape, const RnnBackward& b) {
  visit_cell(shape.cell, b.dgates.dtype, [&](auto tag, auto cell) {
    using S = typename decltype(tag)::type;
    using T = compute_t<S>;
    // Wide panels read the gradients of the gates less often, narrow ones have fewer units too many.
    if constexpr (std::is_same_v<T, float>)
      if (up(shape.hidden, 4 * W<T>) * 8 > up(shape.hidden, 2 * W<T>) * 9)
        return layer_grad_of<decltype(cell)::value, S, 2>(shape, b);
    layer_grad_of<decltype(cell)::value, S, 4>(shape, b);
  });
}

}  // namespace
}  // namespace rl::RL_ISA
