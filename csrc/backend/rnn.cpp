#include "backend/rnn.h"

#include <cstdlib>
#include <string_view>

namespace rl {

std::atomic<RnnGemm> g_rnn_gemm{[] {
  const char* name = std::getenv("RUSHLIGHT_RNN_GEMM");
  const std::string_view wanted = name ? name : "";
  return wanted == "direct" ? RnnGemm::Direct : wanted == "strassen" ? RnnGemm::Strassen : RnnGemm::Fastest;
}()};

}  // namespace rl
