// Kernels that make many elements into one: reductions, norms, variance, extrema with their indices,
// order statistics, histograms, softmax along a dimension, and running totals (scans).
// Results have the same bits for every number of threads.
#pragma once
#include <cstdint>

#include "backend/view.h"

namespace rl {

// What a reduction computes. NaN takes part as in torch: Min and Max propagate it, NanSum skips it.
enum class Reduce : uint8_t {
  Sum,     // out: the input's type; for integers and bool any integer type, accumulated in int64
  NanSum,  // floats: NaN counts as 0
  Mean,    // floats and complex: the sum over the number of elements; NaN when there are none
  Prod,    // as Sum
  Min,
  Max,  // real types; the reduced count must not be 0
  Any,
  All,           // every type; out: bool or uint8
  CountNonzero,  // every type; out: int64
  Norm0,
  Norm1,
  Norm2,
  NormInf,
  NormNegInf,
  NormP,       // floats and complex; out: the real type. (sum |x|^p)^(1/p)
  SumSquares,  // floats and complex: sum |x|^2, out: the real type
  Xor,         // int64; out: int64 or uint64
  Count,
};

// Which running total a scan keeps.
enum class Scan : uint8_t { Sum, Prod, LogSumExp };

// An order statistic along a dimension.
enum class Select : uint8_t {
  Kth,        // the k-th smallest, k from 0; NaN sorts last
  Median,     // the lower median; NaN if the row has one
  NanMedian,  // the lower median of the values that are not NaN; NaN if there are none
  Mode,       // the most frequent value, the smallest of them; its last index
};

struct ReduceKernels {
  // out = op over the dimensions where out has size 1 and in has another. Same ndim. `p` is for NormP.
  void (*reduce)(Reduce op, const View& out, const View& in, double p);
  // Variance over the same dimensions, divisor max(0, count - correction); `root` gives the standard deviation.
  // Floats, all of one type. Either of `var` and `mean` may be null.
  void (*variance)(const View* var, const View* mean, const View& in, double correction, bool root);
  // Extremum along `dim` and its first index (NaN wins). in.sizes[dim] >= 1; values (in's type) may be null;
  // values and indices (int64) have size 1 along dim.
  void (*extremum)(bool largest, const View* values, const View& indices, const View& in, int dim);
  // min and max; dimensions as for reduce. Real types.
  void (*aminmax)(const View& smallest, const View& largest, const View& in);
  // Order statistics along `dim`, shapes as for extremum. Either output may be null. Real types.
  void (*select)(Select what, int64_t k, const View* values, const View* indices, const View& in, int dim);
  // softmax or log_softmax along dim; floats. And their gradients from dy and y. All have the same sizes.
  void (*softmax)(bool log, const View& out, const View& in, int dim);
  void (*softmax_grad)(bool log, const View& dx, const View& dy, const View& y, int dim);
  // log(sum(exp(x))) along dim; floats; out has size 1 along dim. Rows without elements give -inf.
  void (*logsumexp)(const View& out, const View& in, int dim);
  // Running totals along dim; out and in have one type. LogSumExp: floats and complex.
  void (*scan)(Scan op, const View& out, const View& in, int dim);
  // Running extremum along dim, with the last index that reached it. NaN stays once met. Real types.
  void (*scan_extremum)(bool largest, const View& values, const View& indices, const View& in, int dim);
  // out[b] += number (or weight) of values in bin b of `bins` equal bins over [low, high]; the last bin is
  // closed; others and NaN are skipped. All are 1-d and contiguous floats of one type; weights may be null.
  void (*histogram)(const View& out, const View& in, const View* weights, double low, double high);
  // out[v] += 1 or weights[i] for each v = in[i]. in: 1-d int64, values checked against out's size;
  // out: 1-d contiguous, int64 without weights, else float64 as the weights are.
  void (*bincount)(const View& out, const View& in, const View* weights);
};

}  // namespace rl
