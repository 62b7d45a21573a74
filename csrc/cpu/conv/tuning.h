// Limits of the heuristics that choose among convolution algorithms: where an algorithm stops to be faster than the
// next. They were found over time with benchmarks/conv.py on x86-64 servers with AVX-512 (AMD Zen 4 and Intel), and
// gathered here in November 2026 without measuring them again. They change speed alone: what an algorithm can compute
// at all is its X_applicable().
#pragma once
#include <cstdint>

namespace rl::cpu::conv::tuning {

// Winograd: channels and tiles that pay for the transforms, and the part of the tiles' outputs that is wanted.
inline constexpr int64_t kWinogradChannels = 16, kWinogradTiles = 32, kWinograd512Channels = 12;
inline constexpr double kWinogradUsefulOutputs = 0.45, kDilatedUsefulOutputs = 0.6;

// bf16 pairs are taken before Winograd below so many multiplications, or (wrt weight) output pixels.
inline constexpr double kBf16Macs = 1.5e8;
inline constexpr int64_t kBf16WgradPixels = 512;

// Depthwise: filters per channel; channels that fill registers.
inline constexpr int64_t kDepthwiseMultiplier = 4, kDepthwiseNhwcChannels = 12;

// im2row: width of a filter that is worth copying in rows; see input_excess() for the rest.
inline constexpr int64_t kIm2rowWidth = 4, kIm2rowPixels = 256, kIm2rowFilters = 4, kIm2rowGroupChannels = 8,
                         kIm2rowTile = 8, kIm2rowTileFilters = 32;
inline constexpr double kIm2rowExcess = 3, kIm2rowDgradExcess = 1.5, kIm2rowDgradPerFilter = 4,
                        kIm2colDgradExcess = 2.5, kIm2colDgradPerFilter = 16;

// im2col: bytes of the matrix, its rows, and pixels at a time; pieces of work that are enough, and the elements of the
// matrix where they are not; planes of 1x1 filters that are copied side by side; elements of the partial sums of dw.
inline constexpr int64_t kIm2colBytes = 384 << 10, kIm2colRows = 512, kIm2colPixels = 1024, kIm2colPieces = 8,
                         kIm2colWhole = 1 << 22, kIm2colPointwisePlane = 160, kIm2colSums = 1 << 22,
                         kIm2colSmall = 1 << 20;

// NCHW images are transposed for nhwc_gemm where taps and channels are many, or dilation is large and much of what taps
// see is padding.
inline constexpr int64_t kReorderTaps = 16, kReorderChannels = 16, kReorderDilation = 4;
inline constexpr double kReorderInside = 0.75;

// direct instead of im2col: at most so many filters (for a 1x1 filter's gradient wrt weight fewer), at least so many
// images in a batch (wrt weight) and values that a filter sees, and wrt the input so many channels or so small an
// image. Zen 5, one thread, 25 layers, November 2026.
inline constexpr int64_t kDirectFilters = 256, kDirectPointFilters = 128, kDirectImages = 8, kDirectField = 40,
                         kDirectWgradField = 27, kDirectChannels = 8, kDirectPlane = 64 * 64, kDirectTaps = 200;

}  // namespace rl::cpu::conv::tuning

namespace rl {
namespace tuning = cpu::conv::tuning;
}
