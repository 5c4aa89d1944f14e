#include "tools/memoptctl/report/names.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace memopt::tools {
namespace {

constexpr std::size_t kLongest = 100'000;  // of a part of a name

// Of "_ZN2at6native29vectorized_elementwise_k~45304367cfc28b3a": at::native::vectorized_elementwise_k…45304367cfc28b3a.
std::string cut_off(std::string_view rest, std::string_view hash) {
  if (rest.starts_with("N")) rest.remove_prefix(1);
  std::string name;
  while (!rest.empty() && rest.front() >= '0' && rest.front() <= '9') {
    std::size_t length = 0;
    while (!rest.empty() && rest.front() >= '0' && rest.front() <= '9') {
      length = std::min(length * 10 + static_cast<std::size_t>(rest.front() - '0'), kLongest);
      rest.remove_prefix(1);
    }
    const std::string_view part = rest.substr(0, length);
    rest.remove_prefix(part.size());
    name += (name.empty() ? "" : "::") + (part.starts_with("_GLOBAL__N_") ? "(anonymous)" : std::string(part));
  }
  return name.empty() ? name : name + "…" + std::string(hash.substr(0, 4));
}

}  // namespace

std::string kernel_name(std::string_view recorded) {
  const std::string whole(recorded);
  if (!recorded.starts_with("_Z")) return whole;
  int failed = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(whole.c_str(), nullptr, nullptr, &failed),
                                                         &std::free);
  if (name) return name.get();
  const std::size_t cut = recorded.rfind('~');
  if (cut == std::string_view::npos) return whole;
  const std::string begin = cut_off(recorded.substr(2, cut - 2), recorded.substr(cut + 1));
  return begin.empty() ? whole : begin;
}

}  // namespace memopt::tools
