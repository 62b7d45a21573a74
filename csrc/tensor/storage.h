// A block of memory that tensors share, and the counter of writes to it. Storage knows nothing of shape.
#pragma once
#include <cstdint>

#include "base/device.h"
#include "tensor/site.h"

namespace rl {

struct Storage;

// Who is told of storages that come and go, and of memory that is reached otherwise than by a kernel, while it records
// (csrc/compiler). Null mostly: then nobody is.
struct StorageWatch {
  void (*made)(Storage*);
  void (*gone)(Storage*);
  void (*touched)(const char* how);
};
inline const StorageWatch* g_storage_watch = nullptr;

// Counts in-place writes and remembers the line of the last one. A tensor and its views share one; the counter
// usually lives in their storage, and on its own where the two part (`.data`).
struct Version {
  Storage* owner = nullptr;  // where it is embedded
  uint32_t value = 0;
  uint32_t refs = 0;  // 0: embedded in a storage
  Site last_write;
  const char* last_op = nullptr;  // what wrote, if known; lives as long as the process
};

// Whether this process ever made a tensor that is not on the CPU: until then no call compares devices.
extern bool g_other_devices;

struct Storage {
  int64_t refs = 1;
  char* data = nullptr;
  int64_t bytes = 0;
  Device device;
  bool resizable = true;
  bool copy_on_write = false;  // a node has something here that a write must copy first (autograd/copy_on_write.h)
  void (*release)(Storage*) = nullptr;  // null: memory of the device's backend
  void* owner = nullptr;                // for `release`
  void* object = nullptr;               // its Python object, if there is one
  bool keeps_object = false;            // a reference to it: programs left attributes on it and have no other
  bool shared = false;                  // in memory that other processes may map
  struct LazyCopies* lazy = nullptr;    // its memory is also that of lazy clones, until one of them is written to
  Version version;
  uint32_t holders = 0;  // tensors that moved to other memory (x.data = y, set_) and go on counting here
  Site site;             // the line that allocated it; taken for blocks of kSiteBytes and more
  Storage *previous = nullptr, *next = nullptr;  // the list of such blocks

  static constexpr int64_t kSiteBytes = 1 << 14;

  static Storage* make(int64_t bytes, Device device);  // uninitialised
  static Storage* borrow(void* data, int64_t bytes, void (*release)(Storage*), void* owner);
  void resize(int64_t bytes);  // keeps the contents
  Storage* lazy_clone();       // the same memory, until one of both is written to
  void materialize();          // gives it memory of its own again
  // Bytes to and from the host, whatever device has them; and from another storage, as many as it has.
  void read(int64_t offset, void* to, int64_t count) const;
  void write(int64_t offset, const void* from, int64_t count);
  void copy_from(const Storage& other);
  void move_memory(char* to, void (*release)(Storage*), void* owner);  // copies its contents to memory that is there
  void ref() { ++refs; }
  void unref() {
    if (--refs == 0) destroy();
  }
  void unhold() {
    if (--holders == 0 && refs == 0) recycle();
  }

  // The live blocks that carry a site, newest first.
  static Storage* first_listed();

 private:
  void destroy();  // frees the memory; the counter lives on while somebody holds it
  void recycle();
};

// What to do with the Python object of a storage that goes.
inline void (*g_drop_object)(Storage*) = nullptr;

}  // namespace rl
