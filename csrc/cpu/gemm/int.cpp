// Products of integers and bools.
#include "cpu/isa.h"
//
#include "cpu/gemm/dot.h"
#include "cpu/gemm/matmul.h"

namespace rl::RL_ISA {
namespace {

template <class T> void run(const View& out, const View& a, const View& b, const MatmulParams* params) {
  if (params) product<T>(out, a, b, params->alpha.get<T>(), params->beta.get<T>(), params->addend);
  else product<T>(out, a, b, T(1), T(0), nullptr);
}

template <class T> constexpr DTypeProducts products() { return {run<T>, dot<T>}; }

}  // namespace

DTypeProducts int_products(DType dtype) {
  switch (dtype) {
    case DType::Bool: return products<bool>();
    case DType::UInt8:
    case DType::Int8: return products<uint8_t>();  // the same bits whatever their sign
    case DType::Int16: return products<int16_t>();
    case DType::Int32: return products<int32_t>();
    case DType::Int64: return products<int64_t>();
    default: return {nullptr, nullptr};
  }
}

}  // namespace rl::RL_ISA
