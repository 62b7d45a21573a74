// The functions of SortKernels that live outside sort.cpp.
#pragma once
#include "backend/sort.h"
#include "cpu/isa.h"

namespace rl::RL_ISA {

int64_t unique(const View& values, const View* inverse, const View* counts, const View& in, bool consecutive);
int64_t unique_rows(const View& first, const View* inverse, const View* counts, const View& in, bool consecutive);
void searchsorted(const View& out, const View& sorted, const View& values, const View* sorter, bool right);

}  // namespace rl::RL_ISA
