// Bytes from anywhere as a list of kernels: they are refused, or a list whose patterns can be asked for.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "planner/input/file.h"
#include "planner/recompute/observed/kernel_list.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace memopt;
  const std::string text(reinterpret_cast<const char*>(data), size);
  recompute::KernelList list;
  try {
    input::File file = input::File::holding(text, "fuzzed");
    list = recompute::KernelList::read(file);
  } catch (const input::InputError&) {
    return 0;
  }
  std::uint64_t line = 0;
  for (const recompute::KernelRule& rule : list.rules()) {
    if (rule.line <= line || rule.pattern.empty()) std::abort();
    if ((rule.use == recompute::KernelRule::Use::kByPosition) == rule.roles.empty()) std::abort();
    line = rule.line;
  }
  // Each pattern matches itself, so that the last one that is the same, or more, is found.
  for (const recompute::KernelRule& rule : list.rules()) {
    const recompute::KernelRule* const found = list.find(rule.pattern);
    if (found == nullptr || found->line < rule.line) std::abort();
  }
  return 0;
}
