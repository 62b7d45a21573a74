// What rushlight.serialization needs at the speed of memory: checksums, and reading a file with all threads.
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "base/crc32.h"
#include "base/parallel.h"
#include "schema/registry.h"

namespace rl {
namespace {

constexpr int64_t kPiece = 1 << 20;  // bytes; still in a core's own cache when they are summed

void check_bytes(const char* name, const Tensor& t) {
  CHECK(t.dtype() == DType::UInt8 && t.dim() == 1 && t.is_contiguous() && t.on_host(), Type, name,
        ": expected contiguous bytes on the CPU");
}

// piece(start, bytes) of every piece, taken by the threads in the order of the file, so that a disk reads ahead;
// returns the checksum of all when piece returns its own.
template <class Piece> int64_t in_order(int64_t bytes, Piece piece) {
  int64_t count = (bytes + kPiece - 1) / kPiece;
  std::vector<uint32_t> sums(static_cast<size_t>(count));
  std::atomic<int64_t> next{0};
  parallel_for(0, std::min<int64_t>(count, num_threads()), 1, [&](int64_t, int64_t) {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;)
      sums[static_cast<size_t>(i)] = piece(i * kPiece, std::min(kPiece, bytes - i * kPiece));
  });
  uint32_t sum = 0;
  for (int64_t i = 0; i < count; i++)
    sum = crc32_joined(sum, sums[static_cast<size_t>(i)], static_cast<uint64_t>(std::min(kPiece, bytes - i * kPiece)));
  return sum;
}

int64_t checksum(const Tensor& input) {
  check_bytes("_crc32", input);
  const auto* data = static_cast<const unsigned char*>(input.data());
  return in_order(input.numel(),
                  [&](int64_t start, int64_t bytes) { return crc32(data + start, static_cast<size_t>(bytes)); });
}

int64_t read_file(const Tensor& input, int64_t fd, int64_t offset, bool sums) {
  check_bytes("_read_file", input);
  CHECK(fd >= 0 && offset >= 0, Value, "_read_file: expected a descriptor and a position, got ", fd, " and ", offset);
  auto* data = static_cast<unsigned char*>(input.data());
  return in_order(input.numel(), [&](int64_t start, int64_t bytes) -> uint32_t {
    for (int64_t done = 0; done < bytes;) {
      ssize_t got =
          pread(static_cast<int>(fd), data + start + done, static_cast<size_t>(bytes - done), offset + start + done);
      if (got < 0 && errno == EINTR) continue;
      CHECK(got >= 0, Runtime, "reading the file failed: ", std::strerror(errno));
      CHECK(got > 0, Runtime, "the file ends too early");
      done += got;
    }
    return sums ? crc32(data + start, static_cast<size_t>(bytes)) : 0;
  });
}

// Asks the system to begin writing a part of a file to its disk, without waiting for the disk. What goes wrong here
// goes wrong again, and is reported, where the file is used.
void begin_writeback(int64_t fd, int64_t offset, int64_t bytes) {
#ifdef SYNC_FILE_RANGE_WRITE
  PyThreadState* state = PyEval_SaveThread();
  sync_file_range(static_cast<int>(fd), offset, bytes, SYNC_FILE_RANGE_WRITE);
  PyEval_RestoreThread(state);
#endif
}

const Register registered([](Ops& ops) {
  ops.def("_begin_writeback", begin_writeback, "fd, offset, bytes", kNoOut,
          "Starts writing a part of a file to its disk, where the system has a call for it.");
  ops.def("_crc32", checksum, "input", kNoOut, "The CRC-32 of a tensor of bytes.");
  ops.def("_read_file", read_file, "input, fd, offset, sums", kNoOut,
          "Fills a tensor of bytes from an open file; returns their CRC-32 if asked for, else 0.");
});

}  // namespace
}  // namespace rl
