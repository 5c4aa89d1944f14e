// What people know of kernels: how launches of them use the blocks that their parameters name. A file of lines
// `PATTERN: USE`, of which the last that matches a kernel's name holds; docs/formats/kernel-list.md has them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/input/file.h"

namespace memopt::recompute {

// Of one block that a launch names.
enum class Role : std::uint8_t { kReads, kWrites, kChanges };  // kWrites: without reading it

struct KernelRule {
  enum class Use : std::uint8_t {
    kReads,       // launches that make a block only read the others
    kChanges,     // all but those that they make may be changed
    kNever,       // no launch may be replayed
    kByPosition,  // as `roles` say
  };

  std::string pattern;  // with * for anything, and ? for one byte
  Use use = Use::kChanges;
  std::vector<Role> roles;  // kByPosition: of the blocks, in the order in which they are named
  bool rest = false;        // the last of these is that of all that follow, of which there may be none
  std::uint64_t line = 0;   // from 1
};

// The whole text. O(pattern · text).
bool matches(std::string_view pattern, std::string_view text);

class KernelList {
 public:
  KernelList() = default;  // of no line

  // Takes the file. Throws input::InputError with the name and the line: no such line.
  static KernelList read(input::File& file);

  // The last that matches; null if none does. A kernel whose name is not known has an empty one. O(lines · pattern ·
  // name).
  const KernelRule* find(std::string_view kernel) const;

  const std::vector<KernelRule>& rules() const { return rules_; }

 private:
  std::vector<KernelRule> rules_;
};

}  // namespace memopt::recompute
