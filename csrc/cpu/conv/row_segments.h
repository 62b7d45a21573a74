// Rows of pixels in parts whose sums are in registers together. Included by the AVX-512 files that have loops for such
// parts, one for each length: so there are few lengths.
#pragma once
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace rl::avx512::conv {
namespace {

constexpr int kLengths = 6;
constexpr int kLength[kLengths] = {1, 2, 4, 7, 8, 14};

struct Stretch {
  int64_t first;
  int length;  // its number among the lengths
};

// A row of n pixels, in as few and as long parts as do: a part costs as much as two or three pixels more, and a short
// one leaves the multipliers waiting.
inline std::vector<Stretch> cut_row(int64_t n) {
  constexpr int64_t kCost[kLengths] = {10, 12, 14, 19, 21, 32}, kWhole = 28;
  int64_t least[kWhole + 1] = {};
  int last[kWhole + 1] = {};
  for (int64_t i = 1; i <= kWhole; ++i)
    for (int l = 0; l < kLengths && kLength[l] <= i; ++l) {
      const int64_t cost = least[i - kLength[l]] + kCost[l];
      if (l == 0 || cost < least[i]) least[i] = cost, last[i] = l;
    }
  std::vector<Stretch> parts;
  int64_t first = 0;
  for (; n - first > kWhole; first += kLength[kLengths - 1]) parts.push_back({first, kLengths - 1});
  for (; first < n; first += kLength[parts.back().length]) parts.push_back({first, last[n - first]});
  return parts;
}

// So many taps side by side as runs of 3, 5 or, at stride 1, 7, for which there are loops; none where they cannot be
// cut so, or where stride or dilation is another.
inline std::vector<int64_t> cut_taps(int64_t stride, int64_t dilation, int64_t taps) {
  std::vector<int64_t> runs;
  if (stride > 2 || dilation != 1) return runs;
  std::vector<int64_t> fewest(taps + 1, INT32_MAX), last(taps + 1, 0);
  fewest[0] = 0;
  for (int64_t n = 3; n <= taps; ++n)
    for (int64_t run = 3; run <= (stride == 1 ? 7 : 5) && run <= n; run += 2)
      if (fewest[n - run] + 1 < fewest[n]) fewest[n] = fewest[n - run] + 1, last[n] = run;
  for (int64_t n = taps; n > 0 && last[taps] > 0; n -= last[n]) runs.push_back(last[n]);
  return runs;
}

}  // namespace
}  // namespace rl::avx512::conv
