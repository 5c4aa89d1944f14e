// The driver's schedule as this library sees it, and the C library's own functions.
#pragma once
#include <dlfcn.h>
#include <time.h>

#include <atomic>
#include <cstdint>

#include "cudasim/schedule.h"

#define SCHEDULE_EXPORT extern "C" __attribute__((visibility("default")))

namespace cudasim::client {

// Null before a driver with a schedule has been made, and in a forked child.
const CudasimSchedule* attached();

// The same, null also on a thread that isn't scheduled.
inline const CudasimSchedule* scheduled() {
  const CudasimSchedule* const schedule = attached();
  return schedule != nullptr && schedule->is_scheduled() != 0 ? schedule : nullptr;
}

// A function of the C library, found at its first call, which may come before our constructors.
template <typename Function>
class Real {
 public:
  constexpr explicit Real(const char* name, const char* version = nullptr) : name_(name), version_(version) {}

  template <typename... Arguments>
  auto operator()(Arguments... arguments) {
    return get()(arguments...);
  }

 private:
  Function* get() {
    if (Function* const found = found_.load(std::memory_order_relaxed)) return found;
    void* address = version_ != nullptr ? dlvsym(RTLD_NEXT, name_, version_) : nullptr;
    if (address == nullptr) address = dlsym(RTLD_NEXT, name_);
    auto* const function = reinterpret_cast<Function*>(address);
    found_.store(function, std::memory_order_relaxed);
    return function;
  }

  const char* const name_;
  const char* const version_;
  std::atomic<Function*> found_{nullptr};
};

constexpr std::int64_t nanoseconds(const timespec& time) {
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

// A time of `clock` as one of CLOCK_MONOTONIC.
std::int64_t monotonic_deadline(clockid_t clock, const timespec& time);
std::int64_t monotonic_deadline_in(const timespec& time);

}  // namespace cudasim::client
