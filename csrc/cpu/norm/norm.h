#pragma once
#include "backend/norm.h"
#include "cpu/isa.h"

namespace rl::RL_ISA {

void channel_stats(const NormChannels& s, const View& mean, const View& var, const View& x);
void norm_channels(const NormChannels& s, const View& y, const View& x, const View& mean, const View& rstd,
                   const View* weight, const View* bias);
void norm_channels_grad(const NormChannels& s, bool batch_stats, const View* dx, const View* dw, const View* db,
                        const View& dy, const View& x, const View& mean, const View& rstd, const View* weight);
// The same where `inner` is 1.
void column_stats(const NormChannels& s, const View& mean, const View& var, const View& x);
void norm_columns(const NormChannels& s, const View& y, const View& x, const View& mean, const View& rstd,
                  const View* weight, const View* bias);
void norm_columns_grad(const NormChannels& s, bool batch_stats, const View* dx, const View* dw, const View* db,
                       const View& dy, const View& x, const View& mean, const View& rstd, const View* weight);

}  // namespace rl::RL_ISA
