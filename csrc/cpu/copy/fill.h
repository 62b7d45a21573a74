// The kernels that generate elements; see backend/copy.h.
#pragma once
#include <complex>
#include <cstdint>

#include "backend/view.h"
#include "cpu/isa.h"

namespace rl::RL_ISA {

void fill(const View& out, const void* value);
void zero(const View& out);
void range(const View& out, std::complex<double> start, std::complex<double> step, int64_t int_start, int64_t int_step);
void linspace(const View& out, std::complex<double> start, std::complex<double> end, const std::complex<double>* base);
void triangle(const View& out, const View& in, int64_t diagonal, bool upper);

}  // namespace rl::RL_ISA
