#include "tools/memoptctl/common/interruption.h"

#include <csignal>

namespace memopt::tools {
namespace {

std::atomic<bool> cancelled{false};
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

const std::atomic<bool>& end_at_interrupt() {
  struct sigaction action {};
  action.sa_handler = [](int) { cancelled.store(true, std::memory_order_relaxed); };
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  return cancelled;
}

bool interrupted() { return cancelled.load(std::memory_order_relaxed); }

}  // namespace memopt::tools
