// What a launch does to the blocks that it names: all their bytes are hashed, and rewritten as a function of the hash.
//
// The hash begins with the launch's digest (its kernel's name, and the parameters that are no addresses), and takes the
// blocks in the order in which the parameters name them; no address enters. What is written are finite numbers of
// either sign for every floating-point type (0.5 to 2 as single and bfloat16), so that a program's own checks for
// overflow go as they should. They mean nothing.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ranges.h"

namespace launch_effects {

// Whole blocks; the first 64 bytes of each 4 KiB of them, for large programs; or none.
enum class Extent { kAll, kSome, kNone };

struct Operand {
  unsigned char* bytes = nullptr;
  std::uint64_t size = 0;
  bool is_read = false;     // something has been written to it before
  bool is_written = false;  // its parameter is no pointer to const
  // Zeros, to be the same in every run, before anything is read.
  std::vector<Range> unwritten;
};

// Sums of what launches have read: the order in which unordered launches run does not matter. Outlives every launch.
struct Sums {
  std::atomic<std::uint64_t> hash{0};
  std::atomic<std::uint64_t> effects{0};
};

struct Effect {
  std::uint64_t digest = 0;
  std::uint64_t place = 0;  // of the launch in the program, for the sum
  Extent extent = Extent::kAll;
  std::vector<Operand> operands;
  Sums* sums = nullptr;
  std::atomic<std::uint64_t>* found = nullptr;  // where the hash is noted; may be null
  std::uint64_t hash = 0;                       // once read() has run

  // Each may be left by a longjmp where memory can't be touched.
  void fill_unwritten();  // all that the effect is, where the kernel itself runs
  void read();
  void write();
};

// Of a block's bytes from range.begin on, as far as they count.
std::uint64_t hash_of(const unsigned char* bytes, Range range, Extent extent);
std::uint64_t hash_of(const void* bytes, std::size_t size, std::uint64_t seed);
std::uint64_t mixed(std::uint64_t value, std::uint64_t with);

}  // namespace launch_effects
