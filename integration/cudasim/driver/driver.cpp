#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <type_traits>

#include "contexts.h"
#include "graph/graphs.h"
#include "pools.h"
#include "texture/arrays.h"
#include "texture/texture_objects.h"

namespace cudasim {
namespace {

std::atomic<Driver*> g_driver{nullptr};
std::atomic<bool> g_forked_child{false};
Driver* volatile g_parents_driver = nullptr;  // in a child that has its own: kept reachable, never used

// Ready before any constructor and, its destructor being trivial, after all of them: calls come from other libraries'
// at both ends.
constinit std::mutex g_making;
static_assert(std::is_trivially_destructible_v<std::mutex>);

void before_fork() { g_making.lock(); }
void after_fork_in_parent() { g_making.unlock(); }

void after_fork_in_child() {
  if (Driver* const driver = g_driver.load(std::memory_order_relaxed)) {
    if (driver->initialized) {
      g_forked_child.store(true, std::memory_order_relaxed);
    } else {
      // Only looked at (cuDriverGetVersion, say): the child starts afresh. The parent's copy stays where it is; another
      // thread may have been inside.
      g_parents_driver = driver;
      g_driver.store(nullptr, std::memory_order_relaxed);
    }
  }
  g_making.unlock();
}

}  // namespace

Driver::Driver()
    : config(Config::from_environment()),
      schedule(config.schedule ? std::make_unique<HostSchedule>(*config.schedule, config.schedule_trace,
                                                                HostSchedule::kPatience, config.schedule_at)
                               : nullptr),
      gate(config.serialize && !schedule),
      memory(config, counters),
      checker(config.check, memory, counters),
      engine(config, counters, checker, mutex),
      modules(*this),
      contexts(std::make_unique<Contexts>(*this)),
      pools(std::make_unique<Pools>(*this)),
      graphs(std::make_unique<Graphs>(*this)),
      arrays(std::make_unique<Arrays>(memory)),
      textures(std::make_unique<TextureObjects>()) {
  counters.totals.interface_version = CUDASIM_INTERFACE_VERSION;
  counters.totals.capacity = memory.capacity();
  if (schedule) attach_schedule();
}

void Driver::attach_schedule() {
  HostSchedule::set_current(schedule.get());
  const auto attach =
      reinterpret_cast<decltype(&cudasim_schedule_attach)>(dlsym(RTLD_DEFAULT, "cudasim_schedule_attach"));
  if (attach == nullptr) {
    std::fputs(
        "cudasim: CUDASIM_SCHEDULE: libcudasim_schedule.so is not preloaded: where threads wait for locks and for each "
        "other is not seen\n",
        stderr);
    return;
  }
  is_service_thread_ = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "cudasim_schedule_is_service"));
  attach(&HostSchedule::table());
}

Driver& Driver::get() {
  if (Driver* const driver = g_driver.load(std::memory_order_acquire)) return *driver;  // released below
  const std::lock_guard lock(g_making);
  if (Driver* const driver = g_driver.load(std::memory_order_relaxed)) return *driver;
  static const int registered = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  if (registered != 0)
    std::fprintf(stderr, "cudasim: fork handlers can't be registered: a forked child must not call CUDA\n");
  try {
    auto* const driver = new Driver;
    g_driver.store(driver, std::memory_order_release);
    return *driver;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "cudasim: the simulated device can't be made: %s\n", problem.what());
    std::abort();
  }
}

Driver* Driver::if_made() { return g_driver.load(std::memory_order_acquire); }

bool Driver::in_forked_child() { return g_forked_child.load(std::memory_order_relaxed); }

}  // namespace cudasim
