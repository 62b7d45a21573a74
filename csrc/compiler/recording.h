// The backend that records: laid over the CPU's, whose kernels it calls.
#pragma once

namespace rl::compiler {

void lay_recording_backend(bool on);

}  // namespace rl::compiler
