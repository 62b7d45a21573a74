// Normalisation: by the statistics of rows (layer, group, instance) or of channels (batch).
#pragma once
#include <cstdint>

#include "backend/view.h"

namespace rl {

// x is contiguous with `rows` rows of `length` elements. Element i of row r has the scale and shift number
// (r % groups) * (length / inner) + i / inner: layer norm has groups = inner = 1; group norm has one row per sample and
// group, and `inner` the spatial size. x, y, dx, dy are floats of one type; mean, rstd (one per row), weight, bias, dw
// and db are of compute_t of it and contiguous. Null where absent.
struct NormRows {
  int64_t rows, length, groups, inner;
  int64_t params() const { return groups * (length / inner); }
};

// x is contiguous (batch, channels, inner); mean, rstd, weight, bias, dw, db have one element per channel.
struct NormChannels {
  int64_t batch, channels, inner;
};

struct NormKernels {
  // mean and rstd = 1 / sqrt(var + eps) of each row, y = (x - mean) * rstd * weight + bias. With `rms`, mean is left
  // out (null) and rstd = 1 / sqrt(mean square + eps).
  void (*rows)(const NormRows& s, bool rms, double eps, const View& y, const View* mean, const View& rstd,
               const View& x, const View* weight, const View* bias);
  // dx, and the sums dw and db, any of which may be null.
  void (*rows_grad)(const NormRows& s, bool rms, const View* dx, const View* dw, const View* db, const View& dy,
                    const View& x, const View* mean, const View& rstd, const View* weight);
  // mean and (biased) variance of each channel.
  void (*channel_stats)(const NormChannels& s, const View& mean, const View& var, const View& x);
  // y = (x - mean) * rstd * weight + bias
  void (*channels)(const NormChannels& s, const View& y, const View& x, const View& mean, const View& rstd,
                   const View* weight, const View* bias);
  // dx, dw and db, any of which may be null. `batch_stats`: mean and rstd are those of x itself.
  void (*channels_grad)(const NormChannels& s, bool batch_stats, const View* dx, const View* dw, const View* db,
                        const View& dy, const View& x, const View& mean, const View& rstd, const View* weight);
};

}  // namespace rl
