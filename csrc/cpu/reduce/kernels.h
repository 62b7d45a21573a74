// The functions of ReduceKernels, one or a few to a file; reduce.cpp puts them in the table.
#pragma once
#include "backend/reduce.h"
#include "cpu/isa.h"

namespace rl::RL_ISA {

void variance(const View* var, const View* mean, const View& in, double correction, bool root);
void extremum(bool largest, const View* values, const View& indices, const View& in, int dim);
void select(Select what, int64_t k, const View* values, const View* indices, const View& in, int dim);
void softmax(bool log, const View& out, const View& in, int dim);
void softmax_grad(bool log, const View& dx, const View& dy, const View& y, int dim);
void logsumexp(const View& out, const View& in, int dim);
// The maxima, and log(sum(e^(x - maximum))), of x's computing type; NaN where the maximum is not finite.
void log_sums(const View& greatest, const View& log, const View& in, int dim);
void scan(Scan op, const View& out, const View& in, int dim);
void scan_extremum(bool largest, const View& values, const View& indices, const View& in, int dim);
void histogram(const View& out, const View& in, const View* weights, double low, double high);
void bincount(const View& out, const View& in, const View* weights);

}  // namespace rl::RL_ISA
