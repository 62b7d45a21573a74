#include "tensor/storage.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "base/allocator.h"
#include "base/check.h"
#include "base/sanitized.h"

namespace rl {
namespace {

Storage* g_listed = nullptr;

// The host's memory is not asked for by way of its table: a small op would feel it.
inline char* allocate_on(Device device, int64_t bytes) {
  if (device.is_cpu()) return static_cast<char*>(allocate(static_cast<size_t>(bytes)));
  return static_cast<char*>(backend(device).memory->allocate(device, bytes));
}
inline void release_on(Device device, void* memory, int64_t bytes) {
  if (device.is_cpu()) return deallocate(memory, static_cast<size_t>(bytes));
  if (has_backend(device)) backend(device).memory->release(device, memory, bytes);  // else it went with its device
}

constexpr size_t kMaxSpare = kSanitized ? 0 : 256;
std::vector<void*>& spare() {  // headers of dead storages, reused: a small tensor costs no malloc
  static std::vector<void*> list;
  return list;
}

void* header() {
  auto& list = spare();
  if (list.empty()) return ::operator new(sizeof(Storage));
  void* p = list.back();
  list.pop_back();
  return p;
}

void enlist(Storage* s) {
  s->site = Site::here();
  s->next = g_listed;
  if (g_listed) g_listed->previous = s;
  g_listed = s;
}

void delist(Storage* s) {
  if (s->previous) s->previous->next = s->next;
  else if (g_listed == s) g_listed = s->next;
  if (s->next) s->next->previous = s->previous;
  s->previous = s->next = nullptr;
}

// What was asked for, and the lines that hold the most memory.
[[noreturn, gnu::cold]] void out_of_memory(const Error& cause) {
  std::string message = text(cause.what());
  std::vector<Storage*> blocks;
  for (Storage* s = g_listed; s; s = s->next) blocks.push_back(s);
  size_t shown = std::min<size_t>(blocks.size(), 8);
  std::partial_sort(blocks.begin(), blocks.begin() + static_cast<long>(shown), blocks.end(),
                    [](Storage* a, Storage* b) { return a->bytes > b->bytes; });
  if (Site here = Site::here()) message += text("\n  asked for at ", here.describe());
  if (shown) message += "\n  the largest live tensors:";
  for (size_t i = 0; i < shown; ++i)
    message += text("\n  ", blocks[i]->bytes, " bytes, made at ",
                    blocks[i]->site ? blocks[i]->site.describe() : "an unknown line");
  message +=
      "\n  Smaller batches, no_grad() where no gradient is needed, and dropping references (del, .item()) free memory.";
  throw Error(ErrorKind::OutOfMemory, message);
}

}  // namespace

Storage* Storage::first_listed() { return g_listed; }

bool g_other_devices = false;

Storage* Storage::make(int64_t bytes, Device device) {
  if (!device.is_cpu()) {
    backend(device);  // names the device if there is none
    g_other_devices = true;
    if (!device.is_meta() && device.index < 0) device.index = 0;  // "cuda" is the first of them
  }
  Storage* s = new (header()) Storage;
  s->version.owner = s;
  s->bytes = bytes;
  s->device = device;
  if (bytes) {
    try {
      s->data = allocate_on(device, bytes);
    } catch (const Error& e) {
      s->bytes = 0;
      s->unref();
      out_of_memory(e);
    }
  }
  if (bytes >= kSiteBytes) enlist(s);
  if (g_storage_watch) [[unlikely]]
    g_storage_watch->made(s);
  return s;
}

static void tell(const char* how) {
  if (g_storage_watch) g_storage_watch->touched(how);
}

Storage* Storage::borrow(void* data, int64_t bytes, void (*release)(Storage*), void* owner) {
  tell("memory of somebody else's");
  Storage* s = new (header()) Storage;
  s->version.owner = s;
  s->data = static_cast<char*>(data);
  s->bytes = bytes;
  s->release = release;
  s->owner = owner;
  s->resizable = false;
  return s;
}

// Memory of several storages, and how it is given back: the last of them takes it over again.
struct LazyCopies {
  int64_t refs;
  void (*release)(Storage*);
  void* owner;
  bool resizable;
};

Storage* Storage::lazy_clone() {
  tell("a lazy clone");
  if (!lazy) {
    lazy = new LazyCopies{1, release, owner, resizable};
    copy_on_write = true;
  }
  Storage* s = borrow(data, bytes, nullptr, nullptr);
  s->device = device;
  s->resizable = true;
  s->lazy = lazy;
  s->copy_on_write = true;
  ++lazy->refs;
  return s;
}

void Storage::materialize() {
  if (!lazy) return;
  tell("a lazy clone");
  LazyCopies* group = std::exchange(lazy, nullptr);
  if (--group->refs == 0) {
    release = group->release;
    owner = group->owner;
    resizable = group->resizable;
    delete group;
    return;
  }
  const char* from = data;
  data = nullptr;
  release = nullptr;
  owner = nullptr;
  resizable = true;
  if (!bytes) return;
  data = allocate_on(device, bytes);
  if (data) backend(device).memory->within(device, data, from, bytes);
}

void Storage::read(int64_t offset, void* to, int64_t count) const {
  tell("bytes of a storage are read");
  if (!count || device.is_meta()) return;
  if (device.is_cpu()) std::memcpy(to, data + offset, static_cast<size_t>(count));
  else backend(device).memory->to_host(device, to, data + offset, count);
}
void Storage::write(int64_t offset, const void* from, int64_t count) {
  tell("bytes of a storage are written");
  materialize();
  if (!count || device.is_meta()) return;
  if (device.is_cpu()) std::memmove(data + offset, from, static_cast<size_t>(count));
  else backend(device).memory->from_host(device, data + offset, from, count);
}
void Storage::copy_from(const Storage& other) {
  tell("a storage is copied");
  if (other.device.is_meta() || device.is_meta()) return;
  if (other.device.is_cpu()) return write(0, other.data, other.bytes);
  materialize();
  if (device == other.device) {
    if (other.bytes && data != other.data) backend(device).memory->within(device, data, other.data, other.bytes);
  } else if (device.is_cpu()) {
    other.read(0, data, other.bytes);
  } else {
    std::vector<char> on_host(static_cast<size_t>(other.bytes));
    other.read(0, on_host.data(), other.bytes);
    write(0, on_host.data(), other.bytes);
  }
}

void Storage::move_memory(char* to, void (*new_release)(Storage*), void* new_owner) {
  tell("a storage moves");
  std::memcpy(to, data, static_cast<size_t>(bytes));
  if (release) release(this);
  else if (data) release_on(device, data, bytes);
  data = to;
  release = new_release;
  owner = new_owner;
  resizable = false;
}

void Storage::resize(int64_t new_bytes) {
  tell("a storage is resized");
  CHECK(resizable, Runtime, "Trying to resize storage that is not resizable");
  materialize();
  if (new_bytes == bytes) return;
  char* fresh = nullptr;
  if (new_bytes) {
    fresh = allocate_on(device, new_bytes);
    if (bytes && fresh) backend(device).memory->within(device, fresh, data, std::min(bytes, new_bytes));
  }
  if (data) release_on(device, data, bytes);
  data = fresh;
  bytes = new_bytes;
}

void Storage::destroy() {
  if (g_storage_watch) [[unlikely]]
    g_storage_watch->gone(this);
  if (object) g_drop_object(this);
  if (next || previous || g_listed == this) delist(this);
  if (lazy && lazy->refs > 1) {  // the others go on using the memory
    --lazy->refs;
    lazy = nullptr;
    data = nullptr;
    release = nullptr;
  }
  materialize();
  if (release) release(this);
  else if (data) release_on(device, data, bytes);
  data = nullptr;
  if (!holders) recycle();
}

void Storage::recycle() {
  this->~Storage();
  auto& list = spare();
  if (list.size() < kMaxSpare) list.push_back(this);
  else ::operator delete(this);
}

}  // namespace rl
