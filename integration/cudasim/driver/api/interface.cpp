// The C interface of include/cudasim/cudasim.h. Like call(): nothing thrown gets out, and a forked child touches no
// lock.
#define __CUDA_API_VERSION_INTERNAL
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <limits>

#include "api/call.h"
#include "module/next_launch.h"
#include "report.h"
#include "turn.h"

#define CUDASIM_C extern "C" __attribute__((visibility("default")))

namespace cudasim {
namespace {

// Runs `body` with the driver's lock; `failed` in a forked child and where something is thrown.
template <typename Result, typename Body>
Result locked(Result failed, const Body& body) noexcept {
  if (Driver::in_forked_child()) return failed;
  try {
    Driver& driver = Driver::get();
    const std::lock_guard lock(driver.mutex);
    return body(driver);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "cudasim: C interface: %s\n", problem.what());
    return failed;
  }
}

Duration as_duration(std::uint64_t nanoseconds) {
  return Duration(std::int64_t(std::min<std::uint64_t>(nanoseconds, std::numeric_limits<std::int64_t>::max() / 4)));
}

CudasimCounters current_counters(Driver& driver) {
  CudasimCounters totals = driver.counters.totals;
  totals.interface_version = CUDASIM_INTERFACE_VERSION;
  totals.capacity = driver.memory.capacity();
  totals.host_now_ns = std::uint64_t(driver.engine.host_now().time_since_epoch().count());
  totals.device_now_ns = std::uint64_t(driver.engine.device_now().time_since_epoch().count());
  totals.races = driver.checker.races();
  return totals;
}

}  // namespace
}  // namespace cudasim

using namespace cudasim;

CUDASIM_C int cudasim_counters(CudasimCounters* out) {
  if (out == nullptr || out->struct_size == 0) return -1;
  return locked(-1, [&](Driver& driver) {
    CudasimCounters totals = current_counters(driver);
    const std::uint32_t size = out->struct_size;
    totals.struct_size = size;
    std::memcpy(out, &totals, std::min<std::size_t>(size, sizeof totals));
    return 0;
  });
}

CUDASIM_C uint64_t cudasim_calls(const char* symbol) {
  if (symbol == nullptr) return 0;
  return locked(std::uint64_t{0}, [&](Driver& driver) {
    const auto found = driver.counters.calls.find(std::string_view(symbol));
    return found == driver.counters.calls.end() ? 0 : found->second;
  });
}

CUDASIM_C void cudasim_reset_peaks() {
  locked(0, [](Driver& driver) {
    driver.counters.reset_peaks();
    return 0;
  });
}

CUDASIM_C void cudasim_next_launch_takes(uint64_t nanoseconds) { set_next_launch_duration(as_duration(nanoseconds)); }

CUDASIM_C int cudasim_next_launch_does(const void* function, const CudasimEffect* effect) {
  if (effect != nullptr &&
      (effect->struct_size != sizeof *effect || (effect->touched == nullptr && effect->touched_count != 0)))
    return -1;
  try {
    set_next_launch_effect(effect != nullptr ? std::make_shared<const LaunchEffect>(function, *effect) : nullptr);
    return 0;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "cudasim: cudasim_next_launch_does: %s\n", problem.what());
    return -1;
  }
}

CUDASIM_C uint64_t cudasim_last_launch_took() { return std::uint64_t(last_launch_duration().count()); }

CUDASIM_C void cudasim_host_works(uint64_t nanoseconds) {
  if (Driver::in_forked_child()) return;
  try {
    Driver& driver = Driver::get();
    const Turn turn(driver, "cudasim_host_works");  // moves virtual time, so it has its place in the serialized order
    driver.engine.charge(as_duration(nanoseconds));
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "cudasim: cudasim_host_works: %s\n", problem.what());
  }
}

CUDASIM_C void cudasim_access(const void* address, size_t size, int write) {
  if (size == 0 || Driver::in_forked_child()) return;
  Driver* const driver = Driver::if_made();
  if (driver == nullptr || !driver->memory.is_tracked(address)) return;
  try {
    if (AccessLog* const log = current_access_log()) {  // inside a kernel: the driver's lock is held by whoever runs it
      const auto begin = reinterpret_cast<std::uintptr_t>(address);
      write != 0 ? log->write(begin, size) : log->read(begin, size);
    } else if (driver->config.check) {
      driver->engine.host_access(address, size, write != 0);
    }
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "cudasim: cudasim_access: %s\n", problem.what());
  }
}

CUDASIM_C const char* cudasim_last_race() {
  // Leaked with the thread: still there when destructors of other thread-local objects ask. On the heap, because the
  // library is opened by dlopen and its thread-local storage has to fit into what the linker keeps in reserve.
  thread_local std::string* text = nullptr;
  return locked(static_cast<const char*>(""), [](Driver& driver) {
    if (text == nullptr) text = new std::string;
    *text = driver.checker.last_race();
    return static_cast<const char*>(text->c_str());
  });
}

CUDASIM_C int cudasim_write_report(const char* path) {
  if (path == nullptr) return EINVAL;
  return locked(EPERM, [&](Driver& driver) { return write_file(path, report_json(driver)); });
}
