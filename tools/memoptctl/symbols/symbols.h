// Names of the code of a recorded program, from the files that it had loaded, as they are now.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "planner/recording/modules.h"

namespace memopt::tools {

// Looks into each file when the first address in it is asked for: symbols, those of stripped files as far as they are
// in .gnu_debugdata or below /usr/lib/debug by their build id, and lines where there are some. A file that is not the
// one that was loaded (its build id is another) gives no names. Nothing is fetched. Not thread-safe.
class Symbols {
 public:
  explicit Symbols(const planner::Modules& modules);
  ~Symbols();
  Symbols(const Symbols&) = delete;
  Symbols& operator=(const Symbols&) = delete;

  // Of the call that returns to the address: "c10::Allocator::raw_allocate(unsigned long) at Allocator.cpp:12
  // (libc10.so+0x1234)"; as Modules::name() where there is no symbol. Text from files, not cleaned.
  std::string of_call(std::uint64_t return_address);

 private:
  struct Files;
  const planner::Modules& modules_;
  std::unique_ptr<Files> files_;
};

}  // namespace memopt::tools
