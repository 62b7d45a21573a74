// The kernels of backend/index.h, one file for each group.
#pragma once
#include "backend/index.h"
#include "cpu/isa.h"

namespace rl::RL_ISA {

void get(const View& out, const View& in, const IndexSpec& spec);
void put(const View& target, const View& values, const IndexSpec& spec, Combine combine);
bool add_half_rows(const View& target, const View& values, const IndexSpec& spec);
void masked_fill(const View& target, const View& mask, const void* value);
int64_t count_nonzero(const View& in);
void masked_select(const View& out, const View& in, const View& mask);
void masked_scatter(const View& target, const View& mask, const View& source);
void nonzero(const View& out, const View& in);

// put by combination: `put_set` moves bytes, `put_combined` computes.
struct PutLoops {
  void (*row)(char* target, int64_t target_step, const char* values, int64_t values_step, int64_t n);
  void (*each)(char* target, int64_t target_step, const char* values, int64_t values_step, const int64_t* offsets,
               int64_t n);
};
PutLoops put_loops(DType dtype, Combine combine);

}  // namespace rl::RL_ISA
