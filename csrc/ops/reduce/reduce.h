// Reductions, scans, sorting and softmax as C++ functions, for other ops and for backward formulas.
#pragma once
#include <optional>
#include <tuple>

#include "autograd/record.h"
#include "backend/reduce.h"

namespace rl::ops {

using OptDims = std::optional<Ints>;  // none or empty: all dimensions
using Pair = std::tuple<Tensor, Tensor>;

// The geometry of a reduction.
struct Reduced {
  Ints dims;      // reduced, wrapped and in order
  Ints kept;      // the input's sizes, 1 along the reduced dimensions
  Ints strides;   // of a contiguous result seen with `kept`
  Ints result;    // the result's sizes
  int64_t count;  // elements that make one result
  View of(const Tensor& out) const {
    return {out.memory(), kept.data(), strides.data(), static_cast<int32_t>(kept.size()), out.dtype()};
  }
};
Reduced reduced(const Tensor& input, const OptDims& dim, bool keepdim);
// dy of a reduction, seen with the input's sizes.
Tensor spread(const Tensor& dy, IntSpan kept, IntSpan sizes);
// The raw kernel: no history.
Tensor reduce_raw(Reduce op, const Tensor& input, const Reduced& r, DType dtype, double p = 0);

Tensor sum(const Tensor& input, const OptDims& dim = std::nullopt, bool keepdim = false,
           std::optional<DType> dtype = std::nullopt);
Tensor nansum(const Tensor& input, const OptDims& dim = std::nullopt, bool keepdim = false,
              std::optional<DType> dtype = std::nullopt);
Tensor mean(const Tensor& input, const OptDims& dim = std::nullopt, bool keepdim = false,
            std::optional<DType> dtype = std::nullopt);
Tensor prod(const Tensor& input, std::optional<int64_t> dim = std::nullopt, bool keepdim = false,
            std::optional<DType> dtype = std::nullopt);
Tensor amax(const Tensor& input, const Ints& dim = {}, bool keepdim = false);
Tensor amin(const Tensor& input, const Ints& dim = {}, bool keepdim = false);
Tensor any(const Tensor& input, const OptDims& dim = std::nullopt, bool keepdim = false);
Tensor all(const Tensor& input, const OptDims& dim = std::nullopt, bool keepdim = false);
Tensor argmax(const Tensor& input, std::optional<int64_t> dim = std::nullopt, bool keepdim = false);
Tensor var(const Tensor& input, const OptDims& dim, double correction = 1, bool keepdim = false);
Tensor vector_norm(const Tensor& input, double ord = 2, const OptDims& dim = std::nullopt, bool keepdim = false,
                   std::optional<DType> dtype = std::nullopt);
Tensor logsumexp(const Tensor& input, const Ints& dim, bool keepdim = false);
Tensor softmax(const Tensor& input, int64_t dim, std::optional<DType> dtype = std::nullopt);
Tensor log_softmax(const Tensor& input, int64_t dim, std::optional<DType> dtype = std::nullopt);
Tensor cumsum(const Tensor& input, int64_t dim, std::optional<DType> dtype = std::nullopt);
Tensor cumprod(const Tensor& input, int64_t dim, std::optional<DType> dtype = std::nullopt);
Pair sort(const Tensor& input, int64_t dim = -1, bool descending = false, bool stable = false);
Pair topk(const Tensor& input, int64_t k, int64_t dim = -1, bool largest = true, bool sorted = true);

}  // namespace rl::ops
