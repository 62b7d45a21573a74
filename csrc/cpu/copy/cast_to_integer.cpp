#include "cpu/copy/truth_avx512.h"
#include "cpu/features.h"
#include "cpu/simd/cast.h"

namespace rl::RL_ISA {

Cast cast_to_integer(DType to, DType from) {
  if (to == DType::Bool && has_avx512())
    if (Cast truth = avx512::truth_of(from)) return truth;
  switch (to) {
    case DType::Bool: return cast_from<bool>(from);
    case DType::UInt8: return cast_from<uint8_t>(from);
    case DType::Int8: return cast_from<int8_t>(from);
    case DType::Int16: return cast_from<int16_t>(from);
    case DType::Int32: return cast_from<int32_t>(from);
    case DType::Int64: return cast_from<int64_t>(from);
    case DType::UInt16: return cast_from<uint16_t>(from);
    case DType::UInt32: return cast_from<uint32_t>(from);
    case DType::UInt64: return cast_from<uint64_t>(from);
    default: return nullptr;
  }
}

}  // namespace rl::RL_ISA
