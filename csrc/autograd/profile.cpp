#include "autograd/profile.h"

#include <time.h>

#include "autograd/profile_events.h"
#include "base/allocator.h"

extern "C" PyCodeObject* rl_next_frame(void** cursor, int* offset);

namespace rl {

uint32_t g_watched = 0;

namespace {

std::vector<ProfileEvent> g_events;
ProfileOptions g_options;
uint64_t g_session = 0;  // of profile_start: an event that was begun before it has no end in it
thread_local ProfileHandle t_open = -1;
thread_local uint64_t t_session = 0;

constexpr int kMaxFrames = 32;

int64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<int64_t>(t.tv_sec) * 1000000000 + t.tv_nsec;
}

}  // namespace

ProfileEvent::~ProfileEvent() {
  Py_XDECREF(scope);
  Py_XDECREF(shapes);
}

void profile_start(const ProfileOptions& options) {
  g_events.clear();
  g_options = options;
  ++g_session;
  g_watched |= kWatchProfile;
}

std::vector<ProfileEvent> profile_stop() {
  g_watched &= ~static_cast<uint32_t>(kWatchProfile);
  ++g_session;
  return std::exchange(g_events, {});
}

bool profile_wants_shapes() { return g_options.shapes; }

ProfileHandle profile_begin(const char* name, ProfileKind kind, const Site* site, PyObject* scope, PyObject* shapes) {
  if (t_session != g_session) t_open = -1, t_session = g_session;
  ProfileEvent e;
  e.name = name;
  e.kind = kind;
  if (site) {
    if (*site) e.stack.push_back(*site);
  } else if (g_options.stack) {
    void* cursor = nullptr;
    int offset = 0;
    while (PyCodeObject* code = rl_next_frame(&cursor, &offset)) {
      if (!Site::is_library(code)) e.stack.push_back(Site(code, offset));
      if (e.stack.size() == kMaxFrames) break;
    }
  } else if (Site here = Site::here()) {
    e.stack.push_back(std::move(here));
  }
  e.scope = Py_XNewRef(scope);
  e.shapes = Py_XNewRef(shapes);
  e.thread = PyThread_get_thread_ident();
  e.parent = t_open;
  e.bytes = memory_stats().live_bytes;
  t_open = static_cast<ProfileHandle>(g_events.size());
  g_events.push_back(std::move(e));
  g_events.back().start = now();  // last: what it takes to note a call is no part of it
  return t_open;
}

void profile_end(ProfileHandle event) {
  int64_t end = now();
  if (event < 0 || t_session != g_session || event >= static_cast<ProfileHandle>(g_events.size())) return;
  ProfileEvent& e = g_events[static_cast<size_t>(event)];
  e.end = end;
  e.bytes = memory_stats().live_bytes - e.bytes;
  t_open = e.parent;
}

void profile_drop(ProfileHandle event) {
  if (event < 0 || t_session != g_session || event >= static_cast<ProfileHandle>(g_events.size())) return;
  t_open = g_events[static_cast<size_t>(event)].parent;
  if (event + 1 == static_cast<ProfileHandle>(g_events.size())) g_events.pop_back();
}

}  // namespace rl
