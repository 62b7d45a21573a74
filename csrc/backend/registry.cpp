// Which backend is whose.
#include <utility>

#include "backend/backend.h"
#include "backend/meta.h"
#include "base/check.h"

namespace rl {

constinit const Backend* g_backends[kDeviceTypes] = {nullptr, &meta_backend};

const Backend* register_backend(DeviceType type, const Backend* backend) {
  return std::exchange(g_backends[static_cast<int>(type)], backend);
}

void fail_without_backend(Device device) {
  CHECK(device.type != DeviceType::PrivateUse1, Runtime, "PyTorch is not linked with support for ", device.name(),
        " devices");
  const bool cuda = device.type == DeviceType::Cuda;
  fail(ErrorKind::Assertion, cuda ? "Torch not compiled with CUDA enabled" : "rushlight has no backend for ",
       cuda ? "" : device.name(),
       "\n  There is no GPU here. Ask first: device = \"cuda\" if torch.cuda.is_available() else \"cpu\"");
}

}  // namespace rl
