#include "planner/recording/modules.h"

#include <cinttypes>
#include <cstdio>
#include <iterator>

namespace memopt::planner {
namespace {

constexpr std::size_t kMostModules = 100'000;

std::string hex(std::uint64_t number) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%" PRIx64, number);
  return text;
}

}  // namespace

void Modules::add(std::uint64_t base, std::string_view text) {
  if (paths_.size() >= kMostModules) return;
  paths_[base] = text.substr(0, text.find('\n'));
}

std::string Modules::name(std::uint64_t address) const {
  auto above = paths_.upper_bound(address);
  if (above == paths_.begin()) return hex(address);
  const std::uint64_t base = std::prev(above)->first;
  std::string_view path = std::prev(above)->second;
  if (path == "/proc/self/exe" && !program_.empty()) path = program_;
  const std::size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1)) + "+" + hex(address - base);
}

}  // namespace memopt::planner
