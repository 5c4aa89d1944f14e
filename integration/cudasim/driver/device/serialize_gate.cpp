#include "device/serialize_gate.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "device/host_threads.h"

namespace cudasim {
namespace {

constexpr std::chrono::microseconds kBetweenLooks{40};
constexpr std::chrono::milliseconds kRecheck{1};  // a follower looks again at least this often

struct Registration {
  pid_t tid = 0;
  std::uint64_t index = 0;
};
thread_local Registration t_registration;
std::atomic<std::uint64_t> g_next_index{1};

struct Excluded {
  std::mutex mutex;
  std::set<pid_t> tids;
};
Excluded& excluded() {
  static Excluded& it = *new Excluded;  // leaked: threads outlive destructors
  return it;
}

pid_t own_tid() { return pid_t(syscall(SYS_gettid)); }

// What one thread does, in the kernel's words. Two equal ones: it has not run in between.
struct Look {
  pid_t tid;
  char state;
  std::uint64_t switches;  // voluntary and not
  friend bool operator==(const Look&, const Look&) = default;
};

std::optional<Look> look_at(pid_t tid) {
  char path[64], text[4096];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/status", int(tid));
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;  // has ended
  const ssize_t size = ::read(file, text, sizeof text - 1);
  close(file);
  if (size <= 0) return std::nullopt;
  text[size] = '\0';
  const char* const state = std::strstr(text, "State:\t");
  if (state == nullptr) return std::nullopt;
  Look look{tid, state[7], 0};
  for (const char* const key : {"\nvoluntary_ctxt_switches:", "\nnonvoluntary_ctxt_switches:"}) {
    if (const char* const at = std::strstr(text, key))
      look.switches += std::strtoull(at + std::strlen(key), nullptr, 10);
  }
  return look;
}

// 0 when it can't be told.
std::size_t thread_count() {
  struct stat status {};
  return stat("/proc/self/task", &status) == 0 && status.st_nlink >= 2 ? std::size_t(status.st_nlink) - 2 : 0;
}

// All threads but those in `skip`; nothing when one of them is on its way.
std::optional<std::vector<Look>> look_around(const std::set<pid_t>& skip) {
  std::vector<Look> looks;
  DIR* const folder = opendir("/proc/self/task");
  if (folder == nullptr) return looks;  // without /proc nothing can be known: the order is by virtual time alone
  bool quiescent = true;
  while (const dirent* const entry = readdir(folder)) {
    const pid_t tid = pid_t(std::atoi(entry->d_name));
    if (tid == 0 || skip.contains(tid)) continue;
    const std::optional<Look> look = look_at(tid);
    if (!look) continue;
    if (std::strchr("SZXTt", look->state) == nullptr) {
      quiescent = false;
      break;
    }
    looks.push_back(*look);
  }
  closedir(folder);
  if (!quiescent) return std::nullopt;
  std::sort(looks.begin(), looks.end(), [](const Look& a, const Look& b) { return a.tid < b.tid; });
  return looks;
}

}  // namespace

struct SerializeGate::Impl {
  struct Waiter {
    TimePoint clock;
    Registration who;
    bool operator<(const Waiter& other) const {
      return clock != other.clock ? clock < other.clock : who.index < other.who.index;
    }
  };

  explicit Impl(std::chrono::milliseconds the_patience) : patience(the_patience) {}

  const std::chrono::milliseconds patience;
  std::mutex mutex;
  std::condition_variable changed;
  std::set<Waiter> waiting;
  std::uint64_t changes = 0;  // of `waiting`
  std::atomic<std::uint64_t> timeouts{0};

  std::set<pid_t> not_looked_at() {  // with the mutex
    std::set<pid_t> tids;
    for (const Waiter& waiter : waiting) tids.insert(waiter.who.tid);
    const std::lock_guard lock(excluded().mutex);
    tids.insert(excluded().tids.begin(), excluded().tids.end());
    return tids;
  }

  void warn_once() {
    if (timeouts.fetch_add(1, std::memory_order_relaxed) != 0) return;
    std::fprintf(stderr,
                 "cudasim: serialize: a thread of the program was still running after %lld ms; another one passes, the "
                 "order of calls "
                 "may not be repeatable\n",
                 static_cast<long long>(patience.count()));
  }
};

SerializeGate::SerializeGate(bool enabled, std::chrono::milliseconds patience) {
  if (enabled) impl_ = std::make_unique<Impl>(patience);
}
SerializeGate::~SerializeGate() = default;

void SerializeGate::enter() {
  if (!impl_) return;
  if (t_registration.tid == 0) t_registration = {own_tid(), g_next_index.fetch_add(1, std::memory_order_relaxed)};
  if (thread_count() == 1) return;

  const auto give_up = std::chrono::steady_clock::now() + impl_->patience;
  const Impl::Waiter self{last_host_clock(), t_registration};
  std::unique_lock lock(impl_->mutex);
  impl_->waiting.insert(self);
  ++impl_->changes;
  impl_->changed.notify_all();
  while (true) {
    const bool first = impl_->waiting.begin()->who.tid == self.who.tid;
    if (!first) {
      impl_->changed.wait_for(lock, kRecheck);
    } else {
      const std::uint64_t changes = impl_->changes;
      const std::set<pid_t> skip = impl_->not_looked_at();
      lock.unlock();
      const auto before = look_around(skip);
      bool quiescent = false;
      if (before) {
        usleep(useconds_t(kBetweenLooks.count()));
        quiescent = look_around(skip) == before;
      } else {
        usleep(useconds_t(kBetweenLooks.count()));
      }
      lock.lock();
      if (quiescent && changes == impl_->changes) break;
    }
    if (std::chrono::steady_clock::now() >= give_up) {
      impl_->warn_once();
      break;
    }
  }
  impl_->waiting.erase(self);
  ++impl_->changes;
  impl_->changed.notify_all();
}

void SerializeGate::leave() {}

void SerializeGate::exclude_this_thread(bool excluded_now) {
  const std::lock_guard lock(excluded().mutex);
  if (excluded_now) {
    excluded().tids.insert(own_tid());
  } else {
    excluded().tids.erase(own_tid());
  }
}

std::uint64_t SerializeGate::timeouts() const { return impl_ ? impl_->timeouts.load(std::memory_order_relaxed) : 0; }

}  // namespace cudasim
