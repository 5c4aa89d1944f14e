// Which bytes one piece of work read and wrote, by virtual address, collected while the piece runs and handed to the
// checker. Not thread-safe: a piece runs on one thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace cudasim {

struct AddressRange {
  std::uintptr_t begin;
  std::uintptr_t end;  // exclusive
};

// Exact to the byte. Large ranges are kept as ranges, small accesses (from instrumented kernels, millions of them) in
// page bitmaps. Owner: checker/access_log.cpp.
class AccessLog {
 public:
  AccessLog();
  ~AccessLog();
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  void read(std::uintptr_t address, std::size_t size);
  void write(std::uintptr_t address, std::size_t size);

  // Sorted, disjoint, merged.
  std::vector<AddressRange> reads() const;
  std::vector<AddressRange> writes() const;
  bool empty() const;
  void clear();  // keeps its buffers for the next piece

 private:
  struct Pages;
  std::unique_ptr<Pages> pages_;
  std::vector<AddressRange> large_reads_;
  std::vector<AddressRange> large_writes_;
};

// The log of the piece that is running on this thread; null outside of pieces. No lock needed.
AccessLog* current_access_log();

// Makes `log` the current one for the lifetime of this object.
class CurrentAccessLog {
 public:
  explicit CurrentAccessLog(AccessLog& log);
  ~CurrentAccessLog();
  CurrentAccessLog(const CurrentAccessLog&) = delete;
  CurrentAccessLog& operator=(const CurrentAccessLog&) = delete;

 private:
  AccessLog* previous_;
};

}  // namespace cudasim
