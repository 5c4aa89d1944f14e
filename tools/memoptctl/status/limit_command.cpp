#include "tools/memoptctl/status/limit_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <optional>

#include "shm/status.h"
#include "tools/memoptctl/status/agents.h"
#include "tools/memoptctl/status/status_command.h"

namespace memopt::tools {
namespace {

constexpr std::chrono::milliseconds kPatience{2000};

std::optional<std::uint64_t> bytes_of(const nlohmann::json& answer, const char* name) {
  const auto found = answer.find(name);
  if (found == answer.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<std::uint64_t>();
}

int fail(pid_t pid, const std::string& why) {
  fmt::print(stderr, "memoptctl: no limit was set for process {}: {}\n", pid, why);
  return 1;
}

}  // namespace

int limit(const LimitOptions& options) {
  std::vector<Agent> agents = find_agents();
  if (::geteuid() != 0) std::erase_if(agents, [](const Agent& agent) { return agent.uid != ::geteuid(); });
  query_one(agents, options.pid, fmt::format("{}{}\n", shm::kLimitRequest, options.value), kPatience);
  if (agents.empty()) {
    const std::string why = why_out_of_reach(options.pid, ::geteuid());
    if (!why.empty()) return fail(options.pid, why);
    return fail(options.pid,
                "expected a process of this user that runs under memopt and has called CUDA "
                "(memoptctl status lists them)");
  }
  const Agent& agent = agents.front();
  if (!agent.error.empty()) return fail(options.pid, agent.error);
  const auto limit = bytes_of(agent.status, "limit");
  const auto held = bytes_of(agent.status, "held");
  if (!limit || !held) return fail(options.pid, "its answer has no limit");
  fmt::print("limit {}: {} held{}\n", *limit == 0 ? "none" : precise_amount(limit), precise_amount(held),
             *limit != 0 && *held > *limit ? ", which comes below it as the program goes on" : "");
  return 0;
}

}  // namespace memopt::tools
