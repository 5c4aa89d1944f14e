#include "device/host_threads.h"

#include <algorithm>
#include <utility>

namespace cudasim {
namespace {

std::atomic<std::uint64_t> g_next_serial{1};

struct Known {
  std::uint64_t serial = 0;
  HostThread* thread = nullptr;
};
// The last used one in front; a program has one, tests have several.
thread_local Known t_latest;
thread_local std::vector<Known> t_known;
thread_local TimePoint t_clock{};

}  // namespace

TimePoint last_host_clock() { return t_clock; }

HostThreads::HostThreads() : serial_(g_next_serial.fetch_add(1, std::memory_order_relaxed)) {}

HostThread& HostThreads::current() {
  if (t_latest.serial == serial_) [[likely]]
    return *t_latest.thread;
  const auto known =
      std::find_if(t_known.begin(), t_known.end(), [&](const Known& one) { return one.serial == serial_; });
  if (known != t_known.end()) {
    t_latest = *known;
    return *t_latest.thread;
  }
  auto thread = std::make_unique<HostThread>();
  {
    const std::lock_guard lock(registry_);
    thread->number = threads_.size() + 1;
    threads_.push_back(std::move(thread));
    t_latest = {serial_, threads_.back().get()};
  }
  t_known.push_back(t_latest);
  return *t_latest.thread;
}

HostThread& HostThreads::current_started() {
  HostThread& thread = current();
  if (!thread.started) {
    thread.started = true;
    thread.clock = latest_;
    t_clock = latest_;
  }
  return thread;
}

void HostThreads::move_clock(HostThread& thread, TimePoint to) {
  thread.clock = std::max(thread.clock, to);
  latest_ = std::max(latest_, thread.clock);
  t_clock = thread.clock;
}

void HostThreads::log_access(std::uintptr_t address, std::size_t size, bool write) {
  HostThread& thread = current();
  while (thread.log_busy.test_and_set(std::memory_order_acquire)) {  // released below and in collect()
  }
  if (write) {
    thread.log->write(address, size);
  } else {
    thread.log->read(address, size);
  }
  if (!thread.dirty) {
    thread.dirty = true;
    any_dirty_.store(true, std::memory_order_relaxed);
  }
  thread.log_busy.clear(std::memory_order_release);
}

void HostThreads::collect(const std::function<void(const HostThread&, const AccessLog&)>& visit) {
  if (!any_dirty_.load(std::memory_order_relaxed)) [[likely]]
    return;
  any_dirty_.store(false, std::memory_order_relaxed);
  const std::lock_guard lock(registry_);
  for (const auto& thread : threads_) {
    while (thread->log_busy.test_and_set(std::memory_order_acquire)) {
    }
    const bool dirty = std::exchange(thread->dirty, false);
    if (dirty) std::swap(thread->log, spare_);
    thread->log_busy.clear(std::memory_order_release);
    if (!dirty) continue;
    visit(*thread, *spare_);
    spare_->clear();
  }
}

}  // namespace cudasim
