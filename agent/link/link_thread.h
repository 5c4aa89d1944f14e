// Between agent/link/link.cpp, which the program's threads call, and the thread that talks to the planner.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "agent/link/lanes.h"
#include "agent/link/own_memory.h"
#include "agent/plan/plan.h"
#include "shm/channel.h"

namespace memopt::agent {

enum class LinkPhase : int {
  kNone,       // not started
  kStarting,   // no planner yet
  kConnected,  // welcomed
  kLost,       // the planner went away, or none could be started; to be tried again
  kGivenUp,    // the thread is at its end
};

// Constant-initialised, never destroyed.
struct LinkState {
  static constexpr std::size_t kTextBytes = 512;

  std::atomic<LinkPhase> phase{LinkPhase::kNone};
  std::atomic<shm::Control*> control{nullptr};
  std::atomic<bool> recording{false};      // as the control page says, or is to say when it is there
  std::atomic<const Plan*> plan{nullptr};  // the newest, not yet taken
  std::atomic<std::uint64_t> handled{0};   // messages of this connection that were looked at
  std::atomic<int> planner{0};             // its process
  std::atomic<std::uint64_t> ring_bytes{0};
  std::atomic<std::uint64_t> refused_plans{0};
  std::atomic<bool> shared_descriptors{false};  // the thread has no table of its own
  Lanes lanes;

  // The link thread's; here for the sake of a forked child.
  OwnMemory control_memory;
  OwnDescriptor socket;

  // The last ones (tell_swap_terms), and how often there were new ones.
  int terms_lock = 0;
  shm::SwapTermsBody terms{};
  std::atomic<std::uint64_t> terms_told{0};

  int text_lock = 0;
  char reason[kTextBytes] = {};
  char note[kTextBytes] = {};

  void set_text(char (&text)[kTextBytes], const char* value) noexcept;
  void copy_text(const char (&text)[kTextBytes], char (&copy)[kTextBytes]) noexcept;
  void set_reason(const char* why) noexcept { set_text(reason, why); }
  void give_up(const char* why) noexcept;
  void forget_after_fork() noexcept;
};

LinkState& link_state() noexcept;

// The thread's body; `options` is a LinkOptions that it may keep.
void* run_link(void* options);

}  // namespace memopt::agent
