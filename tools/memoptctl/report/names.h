// Names that many things share: written once, and told by number.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memopt::tools {

class Names {
 public:
  std::uint32_t number(const std::string& name) {
    const auto [found, fresh] = numbers_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
    if (fresh) names_.push_back(name);
    return found->second;
  }
  const std::vector<std::string>& all() const { return names_; }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> names_;
};

// Call stacks, innermost frame first, of numbered frames.
class Stacks {
 public:
  std::uint32_t number(std::vector<std::uint32_t> frames) {
    const auto [found, fresh] = numbers_.try_emplace(std::move(frames), static_cast<std::uint32_t>(stacks_.size()));
    if (fresh) stacks_.push_back(&found->first);
    return found->second;
  }
  std::size_t size() const { return stacks_.size(); }
  const std::vector<std::uint32_t>& operator[](std::size_t stack) const { return *stacks_[stack]; }

 private:
  std::map<std::vector<std::uint32_t>, std::uint32_t> numbers_;
  std::vector<const std::vector<std::uint32_t>*> stacks_;  // keys of the map, which stay where they are
};

// What people know a kernel by: without what a C++ compiler makes of its name. Names that were cut off (memoptctl
// reduce --hash-names) are read as far as they go; any other is left as it is.
std::string kernel_name(std::string_view recorded);

}  // namespace memopt::tools
