// What compressing registers gives: the lanes that are wanted, next to each other.
#pragma once
#include <cstdint>

namespace rl::avx512 {

// Writes the positions of what is set among n bools, from `base` on, and returns their number; `at` has room for n
// + 16.
int64_t true_positions(const char* bools, int64_t n, int32_t base, int32_t* at);
// Keeps the offsets within [low, low + span), and their values of four or eight bytes next to each other; n is a
// multiple of eight.
template <class U> int64_t keep_band(const int64_t* offsets, const char* values, int64_t n, int64_t low, int64_t span,
                                     int64_t* kept, void* kept_values);

}  // namespace rl::avx512
