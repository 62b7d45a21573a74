// A device for tests: its memory may not be touched by the host, and the CPU's kernels compute for it.
#pragma once
namespace rl {

void register_isolated_backend(bool present);  // as that of `privateuseone`, or none again

}  // namespace rl
