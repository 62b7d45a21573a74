// Thresholds of the GEMM driver (driver.h): which algorithm takes a problem, and how large a task is. A "mac" is one
// multiply-add. They were found over time on x86-64 virtual machines of two cores with AVX-512, and gathered here in
// November 2026 without measuring them again; benchmarks/ops.py and benchmarks/layers.py do. Those that choose between
// algorithms (own GEMM or OpenBLAS, slices of the sum) change how results are rounded.
#pragma once
#include <cstdint>

namespace rl::gemm_tuning {

// Own GEMM against OpenBLAS.
inline constexpr double kOpenBlasMacs = 9e5;    // below, OpenBLAS is faster if it can read b in place
inline constexpr double kCachedMacs = 3e5;      // of each GEMM of a batch that the first-level cache holds
inline constexpr int64_t kCachedDepth = 128;    // the longest sum of such a GEMM
inline constexpr int64_t kCachedSide = 4;       // its rows and columns are more than these
inline constexpr double kOwnGemvMacs = 131072;  // from here on the own dot products, with prefetching, beat BLAS's gemv

// Batches.
inline constexpr int64_t kBatchOfTiny = 4;    // GEMMs from which on tiny ones have loops of their own
inline constexpr int64_t kPackRows = 128;     // below so many rows of a, a batch with one b is packed to one GEMM
inline constexpr int64_t kPackSide = 16;      // ... if its columns and its sum are at least as long
inline constexpr double kMacsToSplit = 3e7;   // a GEMM above is split itself; below, whole GEMMs are dealt to threads
inline constexpr double kMacsPerTask = 1e6;   // of a task of whole GEMMs
inline constexpr double kMacsPerCall = 2000;  // what calling one GEMM costs
inline constexpr int64_t kTinyMacsPerTask = 65536;
inline constexpr int64_t kTinyMacsPerCall = 64;

// Matrix-vector products: blocks of the longer side.
inline constexpr int64_t kGemvMacsPerBlock = 131072;
inline constexpr int64_t kGemvMacsPerTask = 65536;
inline constexpr int64_t kGemvMultiple = 16;  // blocks are multiples of it

// Tiles of one result: edges by the size of the problem.
inline constexpr double kOneTileMacs = 393216;
inline constexpr double kEdge64Macs = 1 << 22, kEdge128Macs = 1 << 25, kEdge256Macs = 2147483648.0;
inline constexpr int64_t kTileMultiple = 64;

// Small results with long sums: slices of the sum in parallel (split-K).
inline constexpr int64_t kSlicedSide = 128;    // the most rows and columns
inline constexpr int64_t kSlicedDepth = 4096;  // the shortest sum
inline constexpr int64_t kSlicedAspect = 16;   // how many times longer the sum is than the longer side
inline constexpr double kSlicedMacs = 1 << 21;
inline constexpr int64_t kSliceLeast = 512, kMostSlices = 32, kSliceMacs = 1 << 20;

}  // namespace rl::gemm_tuning
