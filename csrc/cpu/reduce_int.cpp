// Reductions of integers and bool: sums and products in int64, the others in the type itself.
#include "cpu/isa.h"

#include "cpu/reduce_ops.h"

namespace rl::RL_ISA {
namespace {

template <class T> bool reduce_integer(Reduce what, const View& out, const View& in) {
  // A block of kBlock numbers of up to 16 bits has a 32-bit sum.
  using Part = std::conditional_t<(sizeof(T) <= 2), int32_t, int64_t>;
  switch (what) {
    case Reduce::Sum: reduce_into<IntSumOp<Part>, T>({}, out, in, store_int64(out.dtype)); return true;
    case Reduce::Prod: reduce_into<ProdOp<int64_t>, T>({}, out, in, store_int64(out.dtype)); return true;
    case Reduce::Min: reduce_into<MinOp<T>, T>({}, out, in, store_results<T, T>); return true;
    case Reduce::Max: reduce_into<MaxOp<T>, T>({}, out, in, store_results<T, T>); return true;
    case Reduce::Any: reduce_into<AnyOp, T>({}, out, in, store_bool(out.dtype)); return true;
    case Reduce::All: reduce_into<AllOp, T>({}, out, in, store_bool(out.dtype)); return true;
    case Reduce::CountNonzero: reduce_into<CountOp, T>({}, out, in, store_int64(out.dtype)); return true;
    default: return false;
  }
}

}  // namespace

bool reduce_int(Reduce op, const View& out, const View& in) {
  switch (in.dtype) {
    case DType::Bool: return reduce_integer<bool>(op, out, in);
    case DType::UInt8: return reduce_integer<uint8_t>(op, out, in);
    case DType::Int8: return reduce_integer<int8_t>(op, out, in);
    case DType::Int16: return reduce_integer<int16_t>(op, out, in);
    case DType::Int32: return reduce_integer<int32_t>(op, out, in);
    case DType::Int64: return reduce_integer<int64_t>(op, out, in);
    default: return false;
  }
}

}  // namespace rl::RL_ISA
