#include "base/generator.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <map>
#include <utility>

#include "base/check.h"

namespace rl {
namespace {

// The saved state, as bytes: words are widened to 64 bits, and two of the three fields about normals are unused.
struct SavedState {
  uint64_t seed;
  int32_t left;
  int32_t seeded;
  uint64_t next;
  uint64_t words[kMersenneWords];
  double unused_x;
  double next_normal;
  double unused_rho;
  int32_t has_next_normal;
  int32_t padding;
  float next_float_normal;
  uint8_t has_next_float_normal;
  uint8_t more_padding[3];
};
static_assert(sizeof(SavedState) == Generator::kStateBytes);

}  // namespace

void Generator::manual_seed(uint64_t seed) {
  seed_ = seed;
  engine.words[0] = static_cast<uint32_t>(seed);
  for (uint32_t i = 1; i < kMersenneWords; ++i) {
    uint32_t before = engine.words[i - 1];
    engine.words[i] = 1812433253u * (before ^ (before >> 30)) + i;
  }
  engine.left = 1;
  engine.next = 0;
  has_next_normal_ = has_next_float_normal_ = false;
}

uint64_t entropy_seed() {
  uint64_t seed = 0;
  bool read = false;
  if (FILE* file = std::fopen("/dev/urandom", "rb")) {
    read = std::fread(&seed, sizeof seed, 1, file) == 1;
    std::fclose(file);
  }
  if (!read) {
    timespec t;
    std::timespec_get(&t, TIME_UTC);
    seed = (static_cast<uint64_t>(t.tv_sec) << 30 ^ static_cast<uint64_t>(t.tv_nsec)) * 0x9e3779b97f4a7c15u;
  }
  return seed;
}

uint64_t Generator::seed() {
  manual_seed(entropy_seed());
  return seed_;
}

double Generator::normal() {
  if (has_next_normal_) {
    has_next_normal_ = false;
    return next_normal_;
  }
  double u1 = uniform(), u2 = uniform();
  double radius = std::sqrt(-2.0 * std::log1p(-u2)), theta = 2.0 * M_PI * u1;
  next_normal_ = radius * std::sin(theta);
  has_next_normal_ = true;
  return radius * std::cos(theta);
}

void Generator::get_state(uint8_t* bytes) const {
  SavedState state = {};
  state.seed = seed_;
  state.left = engine.left;
  state.seeded = 1;
  state.next = engine.next;
  for (int i = 0; i < kMersenneWords; ++i) state.words[i] = engine.words[i];
  if (has_next_normal_) {
    state.has_next_normal = 1;
    state.next_normal = next_normal_;
  }
  if (has_next_float_normal_) {
    state.has_next_float_normal = 1;
    state.next_float_normal = next_float_normal_;
  }
  std::memcpy(bytes, &state, sizeof state);
}

void Generator::set_state(const uint8_t* bytes, size_t size) {
  CHECK(size == kStateBytes, Runtime, "set_state: expected a generator state of ", uint64_t{kStateBytes},
        " bytes, got ", uint64_t{size});
  SavedState state;
  std::memcpy(&state, bytes, sizeof state);
  // The words not yet drawn are those from `next` to the end, except right after seeding, when all count as drawn.
  bool possible = state.seeded != 0 && (state.left == 1 ? state.next <= kMersenneWords
                                                        : state.left > 1 && state.left <= kMersenneWords &&
                                                              state.next == uint64_t(kMersenneWords + 1 - state.left));
  CHECK(possible, Runtime, "set_state: not a state of a Mersenne twister (seeded ", state.seeded, ", left ", state.left,
        ", next ", state.next, ")");
  seed_ = state.seed;
  engine.left = state.left;
  engine.next = static_cast<uint32_t>(state.next);
  for (int i = 0; i < kMersenneWords; ++i) engine.words[i] = static_cast<uint32_t>(state.words[i]);
  has_next_normal_ = state.has_next_normal != 0;
  next_normal_ = state.next_normal;
  has_next_float_normal_ = state.has_next_float_normal != 0;
  next_float_normal_ = state.next_float_normal;
}

Generator& default_generator(Device device) {
  static Generator cpu(entropy_seed());
  if (device.is_cpu() || device.is_meta()) return cpu;
  static std::map<std::pair<DeviceType, int>, Generator> others;
  const int index = std::max<int>(device.index, 0);
  return others.try_emplace({device.type, index}, entropy_seed(), device).first->second;
}

}  // namespace rl
