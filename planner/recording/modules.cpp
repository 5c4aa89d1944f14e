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
  if (files_.size() >= kMostModules) return;
  const std::size_t line = text.find('\n');
  const bool has_id = line != std::string_view::npos;
  files_[base] = {std::string(text.substr(0, line)), std::string(has_id ? text.substr(line + 1) : std::string_view())};
}

std::optional<Modules::File> Modules::file(std::uint64_t address) const {
  const auto above = files_.upper_bound(address);
  if (above == files_.begin()) return std::nullopt;
  const auto& [base, loaded] = *std::prev(above);
  const bool is_program = loaded.path == "/proc/self/exe" && !program_.empty();
  return File{base, is_program ? program_ : loaded.path, loaded.build_id};
}

std::string Modules::name(std::uint64_t address) const {
  const std::optional<File> found = file(address);
  if (!found) return hex(address);
  return std::string(found->path.substr(found->path.rfind('/') + 1)) + "+" + hex(address - found->base);
}

}  // namespace memopt::planner
