#include "agent/agent.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <new>
#include <utility>

#include "agent/link/link.h"
#include "agent/memory/arena.h"
#include "agent/operations/operations.h"
#include "agent/order/in_flight.h"
#include "agent/process/frameworks.h"
#include "agent/process/made_once.h"
#include "agent/process/uncancellable.h"
#include "agent/recording/device_times.h"
#include "agent/recording/recorder.h"
#include "agent/stacks/stack_walker.h"
#include "agent/status/requests.h"
#include "agent/status/status_json.h"
#include "agent/status/status_server.h"

namespace memopt::agent {
namespace {

// Constant-initialised and trivially destructible: usable before constructors and after destructors.
constinit MemoryGauge g_gauge;
constinit BlockTable g_blocks(g_gauge);
constinit MadeOnce<const Driver> g_driver;
constinit MadeOnce<PhysicalMemory> g_physical_memory;
constinit std::atomic<const Interposer*> g_interposer{nullptr};
constinit std::atomic<bool> g_started{false};
constinit std::atomic<bool> g_fork_handled{false};
constinit std::atomic<std::int64_t> g_start_time{0};

std::int64_t now() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string read_link(const char* path) {
  char target[PATH_MAX];
  const ssize_t length = readlink(path, target, sizeof(target));
  return length < 0 ? std::string() : std::string(target, static_cast<std::size_t>(length));
}

std::string answer(std::string_view request) {
  constexpr Services kServices = {
      .status = [] { return to_json(read_status()); },
      .set_limit =
          [](std::string_view text) {
            NewLimit set = arena_set_limit(text);
            return Services::Limit{std::move(set.error), set.limit, set.held};
          },
  };
  return answer_request(request, kServices);
}

// The child begins anew: its counts are its own, and its server starts at its next call. Of the parent's device memory
// it can use nothing.
void after_fork_in_child() {
  const Uncancellable scope;
  forget_status_server_after_fork();
  reset_counters_after_fork();
  g_blocks.reset_after_fork();
  physical_memory().reset_after_fork();
  forget_arena_after_fork();
  forget_recorder_after_fork();
  forget_operations_after_fork();
  forget_in_flight_after_fork();
  forget_device_times_after_fork();
  forget_link_after_fork();
  g_gauge.reset();
  g_started.store(false);
}

[[gnu::cold, gnu::noinline]] void start(const Interposer& interposer) noexcept {
  const Uncancellable scope;
  g_interposer.store(&interposer);
  g_start_time.store(now());
  physical_memory();  // made now, so that the fork handler finds it
  if (!g_fork_handled.exchange(true)) pthread_atfork(nullptr, nullptr, after_fork_in_child);
  start_status_server(answer);
}

// The last word, if memopt did something, and the end of a recording. Runs at exit() only; nothing of CUDA is called.
[[gnu::destructor]] void at_exit() {
  const Uncancellable scope;
  hand_over_recording();
  say_goodbye();
}

const Driver* make_driver() noexcept {
  const Uncancellable scope;
  const Interposer* const interposer = g_interposer.load();
  // Without an interposer (tests of parts of the agent) there are no functions.
  return new (std::nothrow)
      Driver(interposer != nullptr && interposer->real_driver != nullptr ? interposer->real_driver() : Driver());
}

}  // namespace

const Driver& driver() noexcept { return *g_driver.get(make_driver); }

void first_call(const Interposer& interposer, std::size_t entry_point) noexcept {
  count_first_call(entry_point);
  // Exactly one thread starts the agent; the others do not wait for it.
  if (!g_started.load(std::memory_order_relaxed) && !g_started.exchange(true)) start(interposer);
}

BlockTable& blocks() noexcept { return g_blocks; }

PhysicalMemory& physical_memory() noexcept {
  return *g_physical_memory.get([] { return new PhysicalMemory(g_gauge); });
}

shm::Status read_status() {
  shm::Status status;
  status.pid = getpid();
  status.uid = geteuid();
  status.version = MEMOPT_VERSION;
  status.executable = read_link("/proc/self/exe");
  status.state = shm::AgentState::kPassthrough;
  status.reason = "no device memory has been allocated by cuMemAlloc yet";
  status.attached_for = shm::Nanoseconds(static_cast<std::uint64_t>(now() - g_start_time.load()));
  status.memory = g_gauge.read();
  read_arena(&status);
  status.stack_walker = stack_walker().status();
  status.frameworks = loaded_frameworks();
  const std::uint64_t reserved = framework_reserved();
  for (shm::FrameworkStatus& framework : status.frameworks) {
    if (reserved != 0 && is_pytorch_without_caching(framework)) framework.reserved = shm::Bytes(reserved);
  }
  const Interposer* const interposer = g_interposer.load();
  if (interposer == nullptr) return status;
  for (std::size_t i = 0; i < interposer->symbol_count; ++i) {
    const shm::CallCount calls(calls_of(i));
    if (calls == shm::CallCount(0)) continue;
    status.calls += calls;
    status.entry_points.push_back({interposer->symbols[i], calls});
  }
  if (interposer->driver_path != nullptr) status.driver = interposer->driver_path();
  if (status.memory.untracked != 0) {
    status.problems.push_back({"untracked", "some allocations could not be noted; the bytes shown are too small"});
  }
  if (interposer->find_problems != nullptr) interposer->find_problems(status.problems);
  return status;
}

}  // namespace memopt::agent
