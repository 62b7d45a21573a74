// What the profiler keeps of one call.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "autograd/profile.h"

namespace rl {

struct ProfileEvent {
  std::string name;
  ProfileKind kind = ProfileKind::Op;
  std::vector<Site> stack;  // innermost first; of a backward node, the line that recorded it
  PyObject* scope = nullptr;
  PyObject* shapes = nullptr;
  unsigned long thread = 0;
  ProfileHandle parent = -1;
  int64_t start = 0, end = 0;  // ns; end 0: still running when the profile ended, or dropped
  int64_t bytes = 0;           // more live memory after it than before

  ProfileEvent() = default;
  ProfileEvent(const ProfileEvent&) = delete;
  ProfileEvent& operator=(const ProfileEvent&) = delete;
  ProfileEvent(ProfileEvent&& o) noexcept
      : name(std::move(o.name)),
        kind(o.kind),
        stack(std::move(o.stack)),
        scope(std::exchange(o.scope, nullptr)),
        shapes(std::exchange(o.shapes, nullptr)),
        thread(o.thread),
        parent(o.parent),
        start(o.start),
        end(o.end),
        bytes(o.bytes) {}
  ~ProfileEvent();
};

struct ProfileOptions {
  bool shapes = false, stack = false;
};

void profile_start(const ProfileOptions& options);
std::vector<ProfileEvent> profile_stop();

}  // namespace rl
