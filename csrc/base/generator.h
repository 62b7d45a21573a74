// The random number generator of a device. The streams of the CPU's are those of torch.Generator on the CPU, bit for
// bit, and so is the layout of its saved state: the two libraries can continue each other's sequences. Another device's
// kernels draw from it what they like, a seed for a stream of their own, say.
//
// Drawing needs the interpreter lock (or a generator of one's own): a generator has no lock.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/device.h"
#include "base/mersenne.h"

namespace rl {

class Generator {
 public:
  static constexpr uint64_t kDefaultSeed = 67280421310721;
  static constexpr size_t kStateBytes = 5056;

  explicit Generator(uint64_t seed = kDefaultSeed, Device device = {}) : device_(device) { manual_seed(seed); }
  Device device() const { return device_; }

  // Only the low 32 bits reach the twister; the whole seed is remembered.
  void manual_seed(uint64_t seed);
  uint64_t initial_seed() const { return seed_; }
  uint64_t seed();  // seeds from the system's entropy and returns the seed

  uint32_t random() {
    if (engine.left == 1) {
      mersenne_twist(engine.words);
      engine.next = 0;
      engine.left = kMersenneWords + 1;
    }
    --engine.left;
    return mersenne_temper(engine.words[engine.next++]);
  }
  uint64_t random64() {
    uint64_t high = random();
    return high << 32 | random();
  }
  // Uniform in [0, 1), in steps of 2^-53.
  double uniform() { return static_cast<double>(random64() & kDoubleMask) * 0x1p-53; }
  // Normal(0, 1) by Box and Muller; the second number of a pair is kept for the next call.
  double normal();
  bool has_next_normal() const { return has_next_normal_; }

  // `bytes` is kStateBytes long. set_state throws Error(Runtime) for a wrong size or an impossible state, and then
  // leaves the generator as it was.
  void get_state(uint8_t* bytes) const;
  void set_state(const uint8_t* bytes, size_t size);

  static constexpr uint64_t kDoubleMask = (uint64_t{1} << 53) - 1;

  Mersenne engine;  // for kernels that draw many values at once

 private:
  Device device_;
  uint64_t seed_ = 0;
  double next_normal_ = 0;
  float next_float_normal_ = 0;  // no CPU stream uses it; carried so that states survive a round trip
  bool has_next_normal_ = false, has_next_float_normal_ = false;
};

// The device's own, used where no generator is given; seeded from the system's entropy at its first use. Meta tensors,
// which draw nothing, share the CPU's.
Generator& default_generator(Device device = {});

uint64_t entropy_seed();

}  // namespace rl
