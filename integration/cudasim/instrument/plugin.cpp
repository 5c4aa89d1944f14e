// record() inside a plug-in. Accesses of the piece of a launch that runs are collected in a small cache of lines, one
// bit a byte, and handed to the driver when a line is evicted or the piece has ended: neighbours and repeats cost a few
// instructions. What was read and what was written are sets, so that order within a piece does not matter. One thread
// at a time: the driver runs one kernel at a time.
#include <bit>
#include <cstring>

#include "cudasim/plugin_abi.h"
#include "record.h"

namespace cudasim::instrument {
namespace {

constexpr std::uintptr_t kLineBytes = 64;
constexpr std::size_t kLines = 4096;  // covers 256 KiB: the rows that a thread walks side by side, and its stack

struct Line {
  std::uintptr_t number = 0;  // address / kLineBytes; 0 is empty: nothing lives in the first line of the address space
  std::uint64_t touched[2] = {0, 0};  // bytes read, bytes written
  bool tracked = false;  // false: stack or other private memory, kept only so that it is not asked for again
};

Line lines[kLines];
void (*report)(const void*, std::size_t, int) = nullptr;
int (*is_tracked)(const void*) = nullptr;

void hand_over(const Line& line) {
  for (int write = 0; write < 2; ++write) {
    std::uint64_t bits = line.touched[write];
    std::uintptr_t at = line.number * kLineBytes;
    while (bits != 0) {
      const int skip = std::countr_zero(bits);
      bits >>= skip;
      at += static_cast<std::uintptr_t>(skip);
      const int run = std::countr_one(bits);
      report(reinterpret_cast<const void*>(at), static_cast<std::size_t>(run), write);
      if (run == 64) break;
      bits >>= run;
      at += static_cast<std::uintptr_t>(run);
    }
  }
}

// Both ends are asked: pinned memory may begin or end inside a line.
__attribute__((noinline)) void replace(Line& line, std::uintptr_t number) {
  if (line.tracked) hand_over(line);
  const auto* first = reinterpret_cast<const char*>(number * kLineBytes);
  line = {number, {0, 0}, is_tracked != nullptr && (is_tracked(first) != 0 || is_tracked(first + kLineBytes - 1) != 0)};
}

inline void record_in_line(std::uintptr_t address, std::size_t size, Access access) {
  const std::uintptr_t number = address / kLineBytes;
  Line& line = lines[number % kLines];
  if (__builtin_expect(line.number != number, 0)) replace(line, number);
  const std::uint64_t bits = size >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << size) - 1;
  line.touched[static_cast<int>(access)] |= bits << (address % kLineBytes);
}

__attribute__((noinline)) void record_across_lines(std::uintptr_t address, std::size_t size, Access access) {
  while (size != 0) {
    const std::size_t here = kLineBytes - address % kLineBytes;
    const std::size_t part = size < here ? size : here;
    record_in_line(address, part, access);
    address += part;
    size -= part;
  }
}

void flush() {
  for (Line& line : lines) {
    if (line.tracked) hand_over(line);
    line = {};
  }
}

}  // namespace

void record(const void* address, std::size_t size, Access access) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (__builtin_expect(at % kLineBytes + size <= kLineBytes, 1)) {
    record_in_line(at, size, access);
  } else if (size > kLineBytes * kLines / 4) {
    if (is_tracked != nullptr)
      report(address, size, static_cast<int>(access));  // the driver leaves out what is not its own
  } else {
    record_across_lines(at, size, access);
  }
}

}  // namespace cudasim::instrument

extern "C" __attribute__((visibility("hidden"))) void (*cudasim_instrument_attach(const CudasimHost* host))(void) {
  cudasim::instrument::report = host->access;
  cudasim::instrument::is_tracked = host->is_tracked;
  return &cudasim::instrument::flush;
}
