#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "shm/options.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/common/suggestion.h"
#include "tools/memoptctl/doctor/checks.h"

namespace memopt::tools {
namespace {

// The option that a name is nearly one of, as a question; empty: none.
std::string meant(std::string_view name) {
  if (shm::find_option(name) != nullptr) return "";
  std::vector<std::string> names;
  for (const shm::Option& option : shm::kOptions) names.emplace_back(option.name);
  const std::string near = nearest(name, names);
  return near.empty() ? near : fmt::format("did you mean {}? ", near);
}

}  // namespace

void check_options(Report& report, const char* const* environment) {
  std::string set;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view variable = *environment;
    if (!variable.starts_with(shm::kOptionPrefix)) continue;
    const std::size_t equals = variable.find('=');
    const std::string_view value = equals == std::string_view::npos ? std::string_view() : variable.substr(equals + 1);
    const std::string fault = shm::option_fault(variable.substr(0, equals), value);
    if (fault.empty()) {
      set += (set.empty() ? "" : ", ") + printable(variable);
    } else {
      report.add(
          "options", Verdict::kWarning, printable(fault),
          meant(variable.substr(0, equals)) + "correct it or unset it; memoptctl options lists what is accepted");
    }
  }
  if (!set.empty()) report.add("options", Verdict::kOk, "set in the environment: " + set);
}

}  // namespace memopt::tools
