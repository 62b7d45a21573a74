#include "tensor/default_device.h"

#include <vector>

namespace rl {
namespace {

thread_local Device t_default;
thread_local std::vector<Device> t_blocks;

}  // namespace

Device default_device() { return t_blocks.empty() ? t_default : t_blocks.back(); }
void set_default_device(Device d) { t_default = d; }
void push_device(Device d) { t_blocks.push_back(d); }
void pop_device() {
  if (!t_blocks.empty()) t_blocks.pop_back();
}

}  // namespace rl
