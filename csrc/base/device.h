#pragma once
#include <cstdint>
#include <iterator>
#include <string>

#include "base/check.h"
#include "base/dtype.h"

namespace rl {

// Devices that can be named. Only cpu and meta have a backend; naming another is no error until it is used.
enum class DeviceType : uint8_t { Cpu, Meta, Cuda, Mps, Xpu, PrivateUse1 };
inline constexpr const char* kDeviceNames[] = {"cpu", "meta", "cuda", "mps", "xpu", "privateuseone"};
inline constexpr int kDeviceTypes = static_cast<int>(std::size(kDeviceNames));

struct Device {
  DeviceType type = DeviceType::Cpu;
  int16_t index = -1;  // -1: none given
  bool operator==(const Device&) const = default;
  bool is_cpu() const { return type == DeviceType::Cpu; }
  bool is_meta() const { return type == DeviceType::Meta; }
  const char* name() const { return kDeviceNames[static_cast<int>(type)]; }
};
inline std::string to_text(const Device& d) {
  return d.index < 0 ? std::string(d.name()) : std::string(d.name()) + ":" + std::to_string(d.index);
}
inline std::string to_text(DType t) { return info(t).legacy; }

}  // namespace rl
