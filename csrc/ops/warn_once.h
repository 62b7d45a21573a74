// Warnings that a program sees once, or at every call after torch.set_warn_always(True).
#pragma once
#include <string>

namespace rl {

extern bool g_warn_always;

// A UserWarning at the caller's line, if this text has not been shown yet.
void warn_once(const std::string& message);

}  // namespace rl
