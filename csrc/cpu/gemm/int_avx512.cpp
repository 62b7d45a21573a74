#include "cpu/gemm/int_gemv.h"
#include "cpu/gemm/int_microkernel.h"

namespace rl::RL_ISA {

template <class U> IntBlocks<U> int_blocks(IntMultiply kind) { return int_blocks_of<U, 64, 8>(kind); }
template IntBlocks<uint8_t> int_blocks(IntMultiply);
template IntBlocks<uint16_t> int_blocks(IntMultiply);
template IntBlocks<uint32_t> int_blocks(IntMultiply);
template IntBlocks<uint64_t> int_blocks(IntMultiply);

template <class T, class U>
void int_gemv(const T* matrix, int64_t rs, int64_t cs, const U* x, int64_t n, int64_t k, U* sums) {
  int_gemv_of(matrix, rs, cs, x, n, k, sums);
}
#define RL_INT_GEMV(T, U) template void int_gemv(const T*, int64_t, int64_t, const U*, int64_t, int64_t, U*);
RL_INT_GEMV(bool, uint8_t)
RL_INT_GEMV(uint8_t, uint16_t)
RL_INT_GEMV(int8_t, uint16_t)
RL_INT_GEMV(int16_t, uint16_t)
RL_INT_GEMV(int32_t, uint32_t)
RL_INT_GEMV(int64_t, uint64_t)
#undef RL_INT_GEMV

}  // namespace rl::RL_ISA
