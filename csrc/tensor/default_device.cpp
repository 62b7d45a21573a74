#include "tensor/default_device.h"

#include <vector>

#include "backend/backend.h"

namespace rl {
namespace {

thread_local Device t_default;
thread_local std::vector<Device> t_blocks;

}  // namespace

Device chosen_device() { return t_blocks.empty() ? t_default : t_blocks.back(); }
Device default_device() {
  Device d = chosen_device();
  if (!d.is_cpu()) backend(d);
  return d;
}
void set_default_device(Device d) { t_default = d; }
void push_device(Device d) { t_blocks.push_back(d); }
void pop_device() {
  if (!t_blocks.empty()) t_blocks.pop_back();
}

}  // namespace rl
