#include "tools/memoptctl/top/sampler.h"

#include <signal.h>

#include <utility>

namespace memopt::tools {
namespace {

constexpr std::chrono::milliseconds kPatience{1000};

// Signals are the screen's: the size of the terminal, and the end.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

Sampler::Sampler(std::chrono::milliseconds interval) : interval_(interval) {
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { run(); });
}

Sampler::~Sampler() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::optional<Sample> Sampler::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(newest_, std::nullopt);
}

void Sampler::set_interval(std::chrono::milliseconds interval) {
  {
    const std::lock_guard lock(mutex_);
    interval_ = interval;
    at_once_ = true;
  }
  changed_.notify_all();
}

void Sampler::run() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    at_once_ = false;
    lock.unlock();
    Sample sample{take_snapshot(std::nullopt, kPatience), std::chrono::steady_clock::now().time_since_epoch()};
    lock.lock();
    newest_ = std::move(sample);
    changed_.wait_for(lock, interval_, [&] { return ends_ || at_once_; });
  }
}

}  // namespace memopt::tools
