// Where factories make tensors when they are not told: the CPU, or the device of the innermost `with device:` block.
#pragma once
#include "base/device.h"

namespace rl {

Device default_device();
void set_default_device(Device d);  // of this thread, outside of blocks
void push_device(Device d);
void pop_device();

}  // namespace rl
