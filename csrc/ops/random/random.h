// Random numbers. Every op draws from the generator given, or from the default one (null).
#pragma once
#include <optional>

#include "autograd/record.h"
#include "base/generator.h"
#include "base/parallel.h"

namespace rl::ops {

// In place; the result is the tensor itself.
Tensor uniform_(const Tensor& self, double from, double to, Generator* generator = nullptr);
Tensor normal_(const Tensor& self, double mean, double std, Generator* generator = nullptr);
Tensor exponential_(const Tensor& self, double lambda, Generator* generator = nullptr);
Tensor bernoulli_(const Tensor& self, double p, Generator* generator = nullptr);
Tensor random_from_to_(const Tensor& self, int64_t from, std::optional<int64_t> to, Generator* generator = nullptr);

// y = x with elements zeroed with probability p and the others divided by 1 - p; x itself when not training.
Tensor dropout(const Tensor& input, double p, bool train);

// The generator that was given, or its device's own.
inline Generator& generator_or_default(Generator* generator, Device device) {
  Generator& own = default_generator(device);
  if (!generator) return own;
  CHECK(generator->device().type == own.device().type, Runtime, "Expected a '", own.device().name(),
        "' device type for generator but found '", generator->device().name(), "'");
  return *generator;
}

}  // namespace rl::ops
