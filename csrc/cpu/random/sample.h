// Sampling by rejection and search, one number after the other: compiled once, in sample.cpp and
// reparametrized_grad.cpp.
#pragma once
#include "backend/random.h"
#include "base/parallel.h"

namespace rl::cpu {

void bernoulli_each(const View& out, const View& p, Generator& generator);
// draw_below(out, n, most) draws out[k] below most - k.
void permutation(const View& out, Generator& generator, FunctionRef<void(int32_t*, int64_t, int64_t)> draw_below);
void multinomial(const View& out, const View& weights, Generator& generator);
void poisson(const View& out, const View& rate, Generator& generator);
void binomial(const View& out, const View& count, const View& probability, Generator& generator);
void gamma(const View& out, const View& alpha, Generator& generator);
void gamma_grad(const View& out, const View& alpha, const View& sample);
void dirichlet_grad(const View& out, const View& sample, const View& alpha, const View& total);

}  // namespace rl::cpu
