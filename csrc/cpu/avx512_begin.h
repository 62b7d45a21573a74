// What the convolutions for AVX-512 see of the other kernels for it.
#include "cpu/gemm/microkernel_avx512.h"
namespace rl::cpu {
using namespace rl::avx512;
}
