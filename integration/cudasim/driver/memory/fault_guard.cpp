#include "memory/fault_guard.h"

#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace cudasim {
namespace {

struct Frame {
  sigjmp_buf environment;
  Frame* outer;
  volatile std::uintptr_t fault;
};

// Initial-exec: the handler may run on a thread that never came here, where a first access to a dynamic variable would
// allocate.
thread_local Frame* innermost __attribute__((tls_model("initial-exec"))) = nullptr;

// How deep this thread is in handing on, and where on its stack the last level was: a handler that jumped out of itself
// left the depth behind, which shows by a frame that is not below that place.
thread_local int handing_on __attribute__((tls_model("initial-exec"))) = 0;
thread_local std::uintptr_t handing_on_at __attribute__((tls_model("initial-exec"))) = 0;

// Who had the signal before, oldest first. A program that installs a handler after us is put on top of the list when
// run() finds it and takes the signal back; that handler may itself hand on to us, so each level of handing on goes one
// entry down.
constexpr int kMaxPrevious = 8;
struct Previous {
  std::array<struct sigaction, kMaxPrevious> actions;
  std::atomic<int> count{0};
};
Previous previous_segv;
Previous previous_bus;

Previous& previous_of(int signal) { return signal == SIGBUS ? previous_bus : previous_segv; }

void default_action(int signal, const siginfo_t* info) {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  // A fault happens again when the instruction is run again; a signal that was sent is sent again.
  if (info == nullptr || info->si_code <= 0) raise(signal);
}

void hand_on(int signal, siginfo_t* info, void* context) {
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (here >= handing_on_at) handing_on = 0;
  Previous& previous = previous_of(signal);
  const int index = previous.count.load(std::memory_order_acquire) - 1 - handing_on;
  if (index < 0) {
    default_action(signal, info);
    return;
  }
  const struct sigaction action = previous.actions[static_cast<std::size_t>(index)];
  if ((action.sa_flags & SA_SIGINFO) == 0) {
    if (action.sa_handler == SIG_DFL) {
      default_action(signal, info);
      return;
    }
    if (action.sa_handler == SIG_IGN) {
      if (info != nullptr && info->si_code > 0)
        default_action(signal, info);  // the kernel does not let a fault be ignored
      return;
    }
  }
  sigset_t mask = action.sa_mask;
  if ((action.sa_flags & SA_NODEFER) == 0) sigaddset(&mask, signal);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &mask, &before);
  const int depth = handing_on;
  const std::uintptr_t outer_at = handing_on_at;
  if (index > 0) {  // the oldest was there before us and knows nobody it could hand on to
    handing_on = depth + 1;
    handing_on_at = here;
  }
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    action.sa_sigaction(signal, info, context);
  } else {
    action.sa_handler(signal);
  }
  handing_on = depth;
  handing_on_at = outer_at;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  Frame* frame = innermost;
  if (frame != nullptr && info != nullptr && info->si_code > 0) {  // a real fault, not a signal sent by somebody
    frame->fault = reinterpret_cast<std::uintptr_t>(info->si_addr);
    // take() asks for no mask, but a sanitizer between us and the kernel blocks everything while a handler runs.
    pthread_sigmask(SIG_SETMASK, &static_cast<const ucontext_t*>(context)->uc_sigmask, nullptr);
    siglongjmp(frame->environment, 1);
  }
  hand_on(signal, info, context);
  errno = error;
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == &on_fault;
}

void take(int signal) {
  struct sigaction now {};
  if (sigaction(signal, nullptr, &now) != 0 || is_ours(now)) return;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (sigaction(signal, nullptr, &now) != 0 || is_ours(now)) return;
  Previous& previous = previous_of(signal);
  const int count = previous.count.load(std::memory_order_relaxed);
  if (count < kMaxPrevious) {
    previous.actions[static_cast<std::size_t>(count)] = now;
    previous.count.store(count + 1, std::memory_order_release);
  } else {
    previous.actions[kMaxPrevious - 1] = now;  // a program that goes on swapping handlers: the newest counts
  }
  struct sigaction action {};
  action.sa_sigaction = &on_fault;
  // No mask and no deferring: the handler may jump out, and the next fault on this thread must come through again.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  if (sigaction(signal, &action, nullptr) != 0) {
    std::fprintf(stderr, "cudasim: can't take signal %d: %s\n", signal, std::strerror(errno));
    std::abort();
  }
}

class Entered {
 public:
  explicit Entered(Frame& frame) { innermost = &frame; }
  ~Entered() { innermost = innermost->outer; }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;
};

}  // namespace

std::optional<std::uintptr_t> FaultGuard::run(const std::function<void()>& body) {
  Frame frame;
  frame.outer = innermost;
  frame.fault = 0;
  if (frame.outer == nullptr) {
    take(SIGSEGV);
    take(SIGBUS);
  }
  // Nothing of this function changes between here and a jump back but frame.fault. The signal mask needs no saving: the
  // handler puts it back.
  if (sigsetjmp(frame.environment, 0) != 0) {
    innermost = frame.outer;
    return frame.fault;
  }
  const Entered entered(frame);
  body();
  return std::nullopt;
}

}  // namespace cudasim
