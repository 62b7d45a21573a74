// Where factories make tensors when they are not told: the CPU, or the device of the innermost `with device:` block.
#pragma once
#include <optional>

#include "base/device.h"

namespace rl {

Device default_device();  // an error where there is no such device
Device chosen_device();   // what was asked for, there or not
inline Device device_or_default(const std::optional<Device>& d) { return d ? *d : default_device(); }
void set_default_device(Device d);  // of this thread, outside of blocks
void push_device(Device d);
void pop_device();

}  // namespace rl
