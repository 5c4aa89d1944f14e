#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string_view>

#include "tools/memoptctl/common/install_paths.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/doctor/checks.h"
#include "tools/memoptctl/run/limited_process.h"
#include "tools/memoptctl/status/agents.h"
#include "tools/memoptctl/status/processes.h"
#include "tools/memoptctl/status/status_command.h"

namespace memopt::tools {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLook{10};
constexpr milliseconds kLookAtProcesses{100};
constexpr milliseconds kStatusAnswer{500};
constexpr milliseconds kToEnd{1000};

// What one process of the program was seen to have mapped at once, and what its agent said last.
struct Seen {
  std::string command;
  bool memopt = false;
  bool driver = false;
  bool shared_runtime = false;
  nlohmann::json status;  // null: never answered
};

struct Children {
  std::map<pid_t, pid_t> parents;

  bool descends(pid_t pid, pid_t from) const {
    for (int depth = 0; depth < 64 && pid > 1; ++depth) {
      if (pid == from) return true;
      const auto found = parents.find(pid);
      if (found == parents.end()) return false;
      pid = found->second;
    }
    return false;
  }
};

Children read_children() {
  Children children;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry->path() / "stat");
    std::string text;
    std::getline(file, text);
    const std::size_t close = text.rfind(')');
    if (close == std::string::npos || close + 4 >= text.size()) continue;
    children.parents[std::atoi(name.c_str())] = std::atoi(text.c_str() + close + 4);
  }
  return children;
}

// A process may become another program on its way (a shell, env, sudo): what counts is what is mapped together, at the
// latest in the program that has the driver.
void look_at_maps(pid_t pid, Seen& seen) {
  bool memopt = false;
  bool driver = false;
  bool any = false;
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  for (std::string line; std::getline(maps, line);) {
    const std::size_t slash = line.rfind('/');
    if (slash == std::string::npos) continue;
    const std::string_view name = std::string_view(line).substr(slash + 1);
    any = true;
    memopt = memopt || is_library_name(name);
    driver = driver || name.starts_with("libcuda.so");
    // Some wheels put a hash into the name.
    seen.shared_runtime = seen.shared_runtime || name.starts_with("libcudart.so") || name.starts_with("libcudart-");
  }
  if (!any || (seen.driver && !driver)) return;
  seen.memopt = memopt;
  seen.driver = driver;
}

class Trial {
 public:
  Trial(Report& report, const ProgramTrial& wanted) : report_(report), wanted_(wanted) {}
  bool run();

 private:
  void look(bool processes_too);
  void end_all();
  bool tell(const LimitedProcess& program);
  void tell_of(const Seen& seen);
  void tell_of_frameworks(const Seen& seen);

  Report& report_;
  const ProgramTrial& wanted_;
  std::map<pid_t, Seen> seen_;
};

void Trial::look(bool processes_too) {
  if (processes_too) {
    const Children children = read_children();
    for (const auto& [pid, parent] : children.parents) {
      if (pid == ::getpid() || !children.descends(pid, ::getpid())) continue;
      Seen& seen = seen_[pid];
      const std::string command = command_of(pid);
      if (command != "?") seen.command = command;
      look_at_maps(pid, seen);
    }
  }
  std::vector<Agent> agents = find_agents();
  std::erase_if(agents, [](const Agent& agent) { return agent.uid != ::geteuid(); });
  // Before a process has been looked at, it may have a socket already.
  if (!agents.empty()) {
    const Children children = read_children();
    std::erase_if(agents, [&](const Agent& agent) { return !children.descends(agent.pid, ::getpid()); });
  }
  query(agents, kStatusAnswer);
  for (const Agent& agent : agents) {
    Seen& seen = seen_[agent.pid];
    if (agent.error.empty()) seen.status = agent.status;
    if (seen.command.empty()) seen.command = command_of(agent.pid);
    if (!processes_too) look_at_maps(agent.pid, seen);
  }
}

// Also those that have left the program's process group: they are our children since we are their reaper.
void Trial::end_all() {
  for (const int signal : {SIGTERM, SIGKILL}) {
    const auto until = Clock::now() + kToEnd;
    bool sent = false;
    do {
      const Children children = read_children();
      bool any = false;
      for (const auto& [pid, parent] : children.parents) {
        if (pid == ::getpid() || !children.descends(pid, ::getpid())) continue;
        any = true;
        if (!sent || signal == SIGKILL) ::kill(pid, signal);
      }
      sent = true;
      while (::waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      if (!any) return;
      ::usleep(10'000);
    } while (Clock::now() < until);
  }
}

std::uint64_t allocations_of(const nlohmann::json& status, std::string* names) {
  std::uint64_t sum = 0;
  const auto calls = status.find("calls");
  if (calls == status.end() || !calls->is_object()) return 0;
  const auto points = calls->find("entry_points");
  if (points == calls->end() || !points->is_object()) return 0;
  for (const auto& [name, count] : points->items()) {
    const bool allocates =
        (name.starts_with("cuMemAlloc") && !name.starts_with("cuMemAllocHost")) || name == "cuMemCreate";
    if (!allocates || !count.is_number_unsigned()) continue;
    sum += count.get<std::uint64_t>();
    *names += fmt::format("{}{} {}", names->empty() ? "" : ", ", printable(name), count.get<std::uint64_t>());
  }
  return sum;
}

void Trial::tell_of_frameworks(const Seen& seen) {
  const auto loaded = seen.status.find("frameworks");
  if (loaded == seen.status.end() || !loaded->is_array()) return;
  for (const nlohmann::json& framework : *loaded) {
    if (!framework.is_object()) continue;
    const auto text = [&](const char* name) {
      const auto found = framework.find(name);
      return found != framework.end() && found->is_string() ? found->get<std::string>() : std::string();
    };
    const auto visible = framework.find("visible");
    const std::string line = fmt::format("{}: {}", text("name"), text("text"));
    if (visible == framework.end() || !visible->is_boolean()) {
      report_.add("program.framework", Verdict::kUnknown, line, "docs/frameworks.md");
    } else if (visible->get<bool>()) {
      report_.add("program.framework", Verdict::kOk, line);
    } else {
      report_.add("program.framework", Verdict::kProblem, line + ": its caching allocator is still on",
                  "leave the variable unset, and MEMOPT_FRAMEWORK_ENV too (docs/frameworks.md)");
    }
  }
}

void Trial::tell_of(const Seen& seen) {
  Agent agent;
  agent.pid = 0;
  agent.status = seen.status;
  const StatusRow row = join({agent}, Scan{}).at(0);
  const bool asked = seen.status.dump().find("\"cuGetProcAddress") != std::string::npos;
  const RuntimeKind kind = wanted_.file ? runtime_kind(*wanted_.file) : RuntimeKind::kNone;
  const bool is_static = kind == RuntimeKind::kStatic || kind == RuntimeKind::kStaticWithoutSymbols;
  // The simulated device brings a runtime into every program: one that is used asks for the driver's functions.
  const bool is_shared =
      seen.shared_runtime && (!wanted_.simulated_device || kind == RuntimeKind::kShared || (asked && !is_static));
  const char* const way = is_shared ? "the shared runtime" : is_static ? "the static runtime" : "the driver API";
  report_.add("program.driver", row.calls.value_or(0) == 0 ? Verdict::kProblem : Verdict::kOk,
              fmt::format("{}: {} calls were seen, by {}{}", printable(seen.command, 60), row.calls.value_or(0), way,
                          asked ? " and cuGetProcAddress" : ""));
  std::string names;
  const std::uint64_t allocations = allocations_of(seen.status, &names);
  // In other states a reason is given only where the driver serves.
  const bool served = row.state != "passthrough" && row.state != "disabled" && row.why.empty();
  if (allocations == 0) {
    report_.add("program.memory", Verdict::kUnknown, "no allocation of device memory was seen",
                "let it run longer (--seconds), as far as its first iterations");
  } else {
    report_.add("program.memory", served ? Verdict::kOk : Verdict::kProblem,
                fmt::format("allocations seen: {}; {}", names,
                            served ? "memopt serves them" : "memopt does not serve them: " + row.why),
                served ? "" : "the problem above is why; where there is none, look at MEMOPT_PLAN and MEMOPT_RECORD");
  }
  std::string state = row.state;
  for (const std::string& why : row.why_not) state += "; " + why;
  const bool planned = row.state == "planned" || row.state == "deviating";
  report_.add("program.state",
              planned                      ? Verdict::kOk
              : served && allocations != 0 ? Verdict::kUnknown
                                           : Verdict::kWarning,
              "state reached: " + state, planned ? "" : "a plan takes some iterations: let it run longer (--seconds)");
  for (const std::string& problem : row.problems) {
    if (problem.find("docs/frameworks.md") == std::string::npos) {  // said below
      report_.add("program.problem", Verdict::kProblem, problem);
    }
  }
  tell_of_frameworks(seen);
}

bool Trial::tell(const LimitedProcess& program) {
  const std::string& errors = program.errors().empty() ? program.output() : program.errors();
  std::string last = errors.substr(0, errors.find_last_not_of('\n') + 1);
  last = last.substr(last.rfind('\n') + 1);
  if (program.timed_out()) {
    report_.add("program", Verdict::kOk,
                fmt::format("ran for {} s, then it was ended", (wanted_.limit.count() + 999) / 1000));
  } else if (program.ok()) {
    report_.add("program", Verdict::kOk, "ran to its end");
  } else {
    report_.add("program", Verdict::kProblem,
                fmt::format("{}{}{}", program.how_it_ended(), last.empty() ? "" : ": ", printable(last)),
                "does it run without memopt? If so, MEMOPT_DISABLE=1 helps until this is mended");
  }
  // The process that did most with CUDA.
  const Seen* chosen = nullptr;
  const Seen* bare = nullptr;
  const Seen* silent = nullptr;
  std::uint64_t most = 0;
  for (const auto& [pid, seen] : seen_) {
    if (seen.status.is_object()) {
      std::string names;
      const std::uint64_t count = allocations_of(seen.status, &names) + 1;
      if (count > most) {
        most = count;
        chosen = &seen;
      }
    } else if (seen.driver && !seen.memopt) {
      bare = &seen;
    } else if (seen.driver && seen.memopt) {
      silent = &seen;
    }
  }
  if (bare != nullptr) {
    report_.add(
        "program.driver", Verdict::kProblem,
        printable(bare->command, 60) + " has loaded the CUDA driver, but not libmemopt.so",
        "something on its way removes LD_PRELOAD (sudo, env -i, a setuid program, a container): set it behind that");
  }
  if (chosen != nullptr) {
    tell_of(*chosen);
    return true;
  }
  if (bare != nullptr) return false;
  if (silent != nullptr) {
    // One that failed had no time to call.
    report_.add("program.driver", program.ok() || program.timed_out() ? Verdict::kProblem : Verdict::kUnknown,
                printable(silent->command, 60) + " has loaded the CUDA driver and libmemopt.so, but no call was seen",
                "its calls go past memopt, or it made none yet: --seconds; is MEMOPT_DISABLE=1 set?");
    return false;
  }
  report_.add("program.driver", Verdict::kUnknown, "no process was seen that uses the CUDA driver",
              "let it run longer (--seconds): it ended, or was ended, before its first call could be seen");
  return false;
}

bool Trial::run() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  LimitedCommand command{{own_program(), "run", "--no-config"}};  // its settings are taken by now
  if (wanted_.simulated_device) {
    command.command.emplace_back("--sim");
    command.command.push_back(*wanted_.simulated_device);
  }
  command.command.emplace_back("--");
  command.command.insert(command.command.end(), wanted_.command.begin(), wanted_.command.end());
  // A planner for this run only, which can be ended with it.
  command.environment = {{"MEMOPT_PLANNER_NAME", fmt::format("doctor-run-{}", ::getpid())}};
  command.limit = wanted_.limit;
  LimitedProcess program(command);
  auto next = Clock::now();
  while (program.run_for(kLook)) {
    const bool due = Clock::now() >= next;
    look(due);
    if (due) next = Clock::now() + kLookAtProcesses;
  }
  end_all();
  return tell(program);
}

}  // namespace

bool check_program(Report& report, const ProgramTrial& trial) { return Trial(report, trial).run(); }

}  // namespace memopt::tools
