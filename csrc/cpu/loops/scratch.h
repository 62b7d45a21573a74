// Scratch memory of a kernel. Freed blocks are kept by their thread, so that a loop of products does not
// pay for fresh pages each time; large blocks go back to the system.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/check.h"

namespace rl {

void* scratch_take(size_t bytes);  // 64-byte aligned; throws an OutOfMemory error
void scratch_give(void* block) noexcept;

template <class T> class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(int64_t count) { reset(count); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { scratch_give(data_); }
  void reset(int64_t count) {
    scratch_give(data_);
    data_ = nullptr;
    data_ = static_cast<T*>(scratch_take(static_cast<size_t>(checked_mul(count > 0 ? count : 1, sizeof(T)))));
  }
  T* get() const { return data_; }
  T& operator[](int64_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
};

}  // namespace rl
