// Names of the code of a recorded program, from the files that it had loaded, where these are still there and are the
// same.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "planner/recording/modules.h"

namespace memopt::tools {

// Looks into a file when the first address in it is asked for: symbols, of stripped files those that are exported, in
// .gnu_debugdata or below /usr/lib/debug by their build id, and lines where there are some. A recording is not trusted:
// only regular files are opened, one that has no build id, or another than was recorded, names nothing, and nothing is
// fetched.
//
// By libdw, in a module that is loaded when the first name is asked for; without it nothing has a name. Not
// thread-safe.
class Symbols {
 public:
  // Which must outlive it, and get no more files.
  explicit Symbols(const planner::Modules& modules) : modules_(modules) {}

  struct Function {
    std::string name;  // "at::empty(long)"; empty: not known
    std::string line;  // "Empty.cpp:12"; empty: not known
  };
  // Of the call that returns to the address. Text from files, not cleaned.
  const Function& function(std::uint64_t return_address);

  // With the place in its file: "at::empty(long) at Empty.cpp:12 (libtorch.so+0x1234)", or that alone.
  std::string of_call(std::uint64_t return_address);

 private:
  Function find(std::uint64_t return_address) const;

  const planner::Modules& modules_;
  std::unordered_map<std::uint64_t, Function> functions_;  // by address
};

}  // namespace memopt::tools
