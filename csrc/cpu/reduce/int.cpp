// Reductions of integers and bool, in int64; and the truth of elements of every type.
#include "cpu/isa.h"
#include "cpu/reduce/ops.h"
#include "cpu/reduce/real.h"

namespace rl::RL_ISA {
namespace {

template <class A> void store_integer(DType to, const A* acc, int64_t n, char* out, int64_t stride) {
  switch (to) {
    case DType::Bool: return store_as<A, bool>(acc, n, out, stride);
    case DType::UInt8: return store_as<A, uint8_t>(acc, n, out, stride);
    case DType::Int8: return store_as<A, int8_t>(acc, n, out, stride);
    case DType::Int16: return store_as<A, int16_t>(acc, n, out, stride);
    case DType::Int32: return store_as<A, int32_t>(acc, n, out, stride);
    case DType::UInt16: return store_as<A, uint16_t>(acc, n, out, stride);
    case DType::UInt32: return store_as<A, uint32_t>(acc, n, out, stride);
    default: return store_as<A, int64_t>(acc, n, out, stride);
  }
}

// The least or greatest in the type of the elements: more of them in a register than of int64.
template <class T> bool own_extreme(Reduce op, const View& out, const View& in) {
  const Source<T> own{static_cast<const char*>(in.data), sizeof(T), nullptr, nullptr};
  auto store = [](T* acc, int64_t n, char* to, int64_t stride) { store_as<T, T>(acc, n, to, stride); };
  if (op == Reduce::Min) reduce_into(MinOp<T>{}, out, in, own, store);
  else reduce_into(MaxOp<T>{}, out, in, own, store);
  return true;
}

}  // namespace

bool reduce_int(Reduce op, const View& out, const View& in) {
  auto finish = [&](int64_t* acc, int64_t n, char* to, int64_t stride) {
    store_integer(out.dtype, acc, n, to, stride);
  };
  if (in.dtype == DType::Bool && op == Reduce::Sum) return reduce_truth(Reduce::CountNonzero, out, in);
  if (op == Reduce::Min || op == Reduce::Max) {
    if (in.dtype == DType::Int32 && out.dtype == DType::Int32) return own_extreme<int32_t>(op, out, in);
    const bool bytes = in.dtype == DType::UInt8 || in.dtype == DType::Bool;
    if (bytes && out.dtype == in.dtype) return own_extreme<uint8_t>(op, out, in);
  }
  Source<int64_t> source = int_source(in);
  switch (op) {
    case Reduce::Sum: return reduce_into(SumOp<int64_t>{}, out, in, source, finish), true;
    case Reduce::Prod: return reduce_into(ProdOp<int64_t>{}, out, in, source, finish), true;
    case Reduce::Min: return reduce_into(MinOp<int64_t>{}, out, in, source, finish), true;
    case Reduce::Max: return reduce_into(MaxOp<int64_t>{}, out, in, source, finish), true;
    case Reduce::Xor: return reduce_into(XorOp{}, out, in, source, finish), true;
    default: return false;
  }
}

bool reduce_truth(Reduce op, const View& out, const View& in) {
  auto finish = [&](uint8_t* acc, int64_t n, char* to, int64_t stride) {
    store_integer(out.dtype, acc, n, to, stride);
  };
  Source<uint8_t> source = truth_source(in);
  switch (op) {
    case Reduce::Any: return reduce_into(AnyOp{}, out, in, source, finish), true;
    case Reduce::All: return reduce_into(AllOp{}, out, in, source, finish), true;
    case Reduce::CountNonzero:
      return reduce_into(CountOp{}, out, in, source,
                         [&](int64_t* acc, int64_t n, char* to, int64_t stride) {
                           store_integer(out.dtype, acc, n, to, stride);
                         }),
             true;
    default: return false;
  }
}

}  // namespace rl::RL_ISA
