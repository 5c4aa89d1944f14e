// Bytes from anywhere as a file of another tool; what is read of it is written again in all formats. The first byte
// chooses which tool's.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>

#include "planner/exchange/exchange.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace memopt;
  if (size == 0) return 0;
  const int fd = ::memfd_create("fuzzed", 0);
  const int own = ::dup(fd);
  try {
    input::File file = input::File::holding({reinterpret_cast<const char*>(data) + 1, size - 1}, "fuzzed");
    planner::RecordingWriter writer(fd, {}, {});
    if (data[0] % 3 == 0) {
      exchange::read_operations_csv(file, writer);
    } else if (data[0] % 3 == 1) {
      exchange::read_buffers(file, writer, 2);
    } else {
      exchange::read_snapshot(file, writer);
    }
    writer.finish();
    std::string bytes(static_cast<std::size_t>(::lseek(own, 0, SEEK_END)), '\0');
    if (::pread(own, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size())) {
      for (const auto write : {exchange::write_operations_csv, exchange::write_snapshot, exchange::write_buffers,
                               exchange::write_trace_events}) {
        input::File recording = input::File::holding(bytes, "recording");
        std::ostringstream out;
        write(recording, out);
      }
    }
  } catch (const std::runtime_error&) {
  }
  ::close(own);
  return 0;
}
