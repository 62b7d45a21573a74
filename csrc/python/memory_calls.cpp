// What rushlight.memory reads and sets: counters of the allocator, and the lines that hold memory.
#include <utility>
#include <vector>

#include "base/allocator.h"
#include "schema/registry.h"
#include "tensor/storage.h"

namespace rl {
namespace {

NewObject memory_stats_dict() {
  MemoryStats s = memory_stats();
  return {Py_BuildValue("{s:L,s:L,s:L,s:L,s:L,s:L,s:L}", "live_bytes", static_cast<long long>(s.live_bytes),
                        "peak_bytes", static_cast<long long>(s.peak_bytes), "live_blocks",
                        static_cast<long long>(s.live_blocks), "cached_bytes", static_cast<long long>(s.cached_bytes),
                        "allocations", static_cast<long long>(s.allocations), "limit",
                        static_cast<long long>(memory_limit()), "cache_limit", static_cast<long long>(cache_limit()))};
}

// A list of (bytes, file, line, function, source text) of the blocks that are large enough to remember their line.
NewObject memory_blocks() {
  // Reading a line's text runs Python, which may free blocks: remember the sites first.
  std::vector<std::pair<int64_t, Site>> blocks;
  for (Storage* s = Storage::first_listed(); s; s = s->next)
    if (!s->device.is_meta()) blocks.emplace_back(s->bytes, s->site);
  PyObject* list = PyList_New(0);
  if (!list) return {nullptr};
  for (const auto& [bytes, site] : blocks) {
    PyObject* row = Py_BuildValue("(Lsiss)", static_cast<long long>(bytes), site.file().c_str(), site.line(),
                                  site.function().c_str(), site.source().c_str());
    if (!row || PyList_Append(list, row) < 0) {
      Py_XDECREF(row);
      Py_DECREF(list);
      return {nullptr};
    }
    Py_DECREF(row);
  }
  return {list};
}

void check_bytes(const char* name, int64_t bytes) {
  CHECK(bytes >= 0, Value, name, ": expected a number of bytes, 0 or more, got ", bytes);
}
void put_limit(int64_t bytes) {
  check_bytes("set_limit", bytes);
  set_memory_limit(bytes);
}
void put_cache_limit(int64_t bytes) {
  check_bytes("set_cache_limit", bytes);
  set_cache_limit(bytes);
}

// Also where the program has switched the collector off: it is this or failing.
void collect_cycles() {
  int enabled = PyGC_Enable();
  PyGC_Collect();
  if (!enabled) PyGC_Disable();
}

const Register registered([](Ops& ops) {
  set_reclaim_hook(collect_cycles);
  ops.def("_memory_stats", memory_stats_dict, "", kNoOut, "The allocator's counters.");
  ops.def("_memory_blocks", memory_blocks, "", kNoOut,
          "The live blocks of 16 KB and more, with the lines that made them.");
  ops.def("_memory_reset_peak", reset_peak, "", kNoOut, "Starts the peak anew from what is live.");
  ops.def("_memory_raise_peak", raise_peak, "bytes", kNoOut, "Puts back a peak from before reset_peak.");
  ops.def("_memory_set_limit", put_limit, "bytes", kNoOut,
          "Makes allocations beyond so many live bytes fail; 0 for none.");
  ops.def("_memory_set_cache_limit", put_cache_limit, "bytes", kNoOut,
          "The most bytes kept for reuse; 0 turns that off.");
  ops.def("_memory_empty_cache", empty_cache, "", kNoOut, "Gives all cached memory back to the system.");
});

}  // namespace
}  // namespace rl
