// GEMMs of integers and bools.
#include "cpu/isa.h"
//
#include "cpu/gemm/dot.h"
#include "cpu/gemm/matmul.h"

namespace rl::RL_ISA {
namespace {

template <class T> void run(const View& out, const View& a, const View& b, const MatmulParams* params) {
  if (params) matmul_as<T>(out, a, b, params->alpha.get<T>(), params->beta.get<T>(), params->addend);
  else matmul_as<T>(out, a, b, T(1), T(0), nullptr);
}

template <class T> constexpr DTypeMatmul matmul_for() { return {run<T>, dot<T>}; }

}  // namespace

DTypeMatmul int_matmul(DType dtype) {
  switch (dtype) {
    case DType::Bool: return matmul_for<bool>();
    case DType::UInt8:
    case DType::Int8: return matmul_for<uint8_t>();  // the same bits whatever their sign
    case DType::Int16: return matmul_for<int16_t>();
    case DType::Int32: return matmul_for<int32_t>();
    case DType::Int64: return matmul_for<int64_t>();
    default: return {nullptr, nullptr};
  }
}

}  // namespace rl::RL_ISA
