// How many CPUs this process may really use: the affinity mask, lowered by the quota of its control groups.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/parallel.h"

#ifdef __linux__
#include <sched.h>
#endif

namespace rl {
namespace {

#ifdef __linux__
std::string read_text(const std::string& path) {
  std::string content;
  if (FILE* file = std::fopen(path.c_str(), "re")) {
    char buffer[4096];
    while (size_t n = std::fread(buffer, 1, sizeof buffer, file)) content.append(buffer, n);
    std::fclose(file);
  }
  return content;
}

int affinity_cpus() {
  // The kernel refuses a mask smaller than its own, so it grows until it fits.
  for (int cpus = 1024; cpus <= (1 << 20); cpus *= 2) {
    std::vector<unsigned long> mask(static_cast<size_t>(cpus) / (8 * sizeof(unsigned long)));
    size_t bytes = mask.size() * sizeof(unsigned long);
    if (sched_getaffinity(0, bytes, reinterpret_cast<cpu_set_t*>(mask.data())) != 0) continue;
    int count = 0;
    for (unsigned long word : mask) count += __builtin_popcountl(word);
    return count;
  }
  return 0;
}

// quota / period rounded up; no limit (0) where the quota is absent, "max" or -1.
int quota_cpus(const char* quota_text, const char* period_text) {
  long long quota = std::atoll(quota_text), period = std::atoll(period_text);
  if (quota <= 0 || period <= 0) return 0;
  long long cpus = quota / period + (quota % period != 0);
  return cpus > (1 << 20) ? 0 : static_cast<int>(cpus);
}
int quota_v2(const std::string& directory) {  // "max 100000" or "150000 100000"
  std::string line = read_text(directory + "/cpu.max");
  size_t space = line.find(' ');
  return space == std::string::npos ? 0 : quota_cpus(line.c_str(), line.c_str() + space + 1);
}
int quota_v1(const std::string& directory) {
  return quota_cpus(read_text(directory + "/cpu.cfs_quota_us").c_str(),
                    read_text(directory + "/cpu.cfs_period_us").c_str());
}

bool lists_cpu(const std::string& controllers) { return ("," + controllers + ",").find(",cpu,") != std::string::npos; }

// The tightest quota of our group and of every group above it. Inside a container the path named in
// /proc/self/cgroup may not be visible; the walk still ends at the mount point, which is the container's own group.
int cgroup_cpus() {
  int tightest = 0;
  auto walk = [&](const std::string& mount, std::string path, int (*quota)(const std::string&)) {
    while (true) {
      int cpus = quota(mount + path);
      if (cpus > 0 && (tightest == 0 || cpus < tightest)) tightest = cpus;
      if (path.empty()) break;
      path.erase(path.rfind('/'));
    }
  };
  std::string groups = read_text("/proc/self/cgroup");
  for (size_t at = 0; at < groups.size();) {  // lines of "id:controllers:/path"
    size_t end = groups.find('\n', at);
    if (end == std::string::npos) end = groups.size();
    std::string line = groups.substr(at, end - at);
    at = end + 1;
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos || line[second + 1] != '/') continue;
    std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers.empty()) {
      walk("/sys/fs/cgroup", path, quota_v2);
      walk("/sys/fs/cgroup/unified", path, quota_v2);
    } else if (lists_cpu(controllers)) {
      walk("/sys/fs/cgroup/cpu", path, quota_v1);
      walk("/sys/fs/cgroup/" + controllers, path, quota_v1);
    }
  }
  return tightest;
}
#endif

}  // namespace

int usable_cpus() {
  int cpus = 0;
#ifdef __linux__
  cpus = affinity_cpus();
#endif
  if (cpus <= 0) cpus = static_cast<int>(std::thread::hardware_concurrency());
#ifdef __linux__
  int quota = cgroup_cpus();
  if (quota > 0 && quota < cpus) cpus = quota;
#endif
  return cpus < 1 ? 1 : cpus;
}

}  // namespace rl
