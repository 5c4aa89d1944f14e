// Processes that fork, end early, or get signals.
#include <dlfcn.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "awkward.h"

namespace awkward {
namespace {

int wait_for(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// A child has no device: what it calls is refused, and its end is not the parent's.
void forked(bool frees, bool exits) {
  const CUdeviceptr a = block(1);
  finish();
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    CUdeviceptr address = 0;
    show("allocated by the child", cuMemAlloc(&address, kBytes));
    if (frees) show("freed by the child", cuMemFree(a));
    show("synchronized by the child", cuCtxSynchronize());
    std::fflush(stdout);
    if (exits) std::exit(0);
    _exit(7);
  }
  say("child", static_cast<unsigned>(wait_for(child)));
  contents("a", a);
  release(a);
}

void forks() { forked(false, false); }
void forks_and_frees() { forked(true, false); }
void forks_and_exits() { forked(true, true); }

void starts_programs() {
  const CUdeviceptr a = block(1);
  finish();
  std::fflush(stdout);
  char path[4096] = {};
  if (readlink("/proc/self/exe", path, sizeof(path) - 1) <= 0) std::abort();
  char name[] = "awkward", which[] = "pitched";
  char* const arguments[] = {name, which, nullptr};
  const pid_t child = fork();
  if (child == 0) {
    execv(path, arguments);
    _exit(127);
  }
  say("forked", static_cast<unsigned>(wait_for(child)));
  std::fflush(stdout);
  const pid_t second = vfork();
  if (second == 0) {
    execv(path, arguments);
    _exit(127);
  }
  say("vforked", static_cast<unsigned>(wait_for(second)));
  std::fflush(stdout);
  pid_t third = 0;
  if (posix_spawn(&third, path, nullptr, nullptr, arguments, environ) != 0) std::abort();
  say("spawned", static_cast<unsigned>(wait_for(third)));
  contents("a", a);
  release(a);
}

// What is left behind is nobody's.
void ends_with_blocks(void (*end)()) {
  const CUdeviceptr a = block(1), b = block(2);
  launch(nullptr, "add", kWords, a, b, kWords);
  contents("a", a);
  launch(nullptr, "add", kWords, a, b, kWords);
  std::fflush(stdout);
  end();
}

CUdeviceptr g_kept = 0;

void exits() {
  ends_with_blocks([] { std::exit(5); });
}
void exits_at_once() {
  ends_with_blocks([] { _exit(6); });
}
void quick_exits() {
  ends_with_blocks([] { std::quick_exit(7); });
}
void aborts() {
  ends_with_blocks([] { std::abort(); });
}
void is_killed() {
  ends_with_blocks([] { kill(getpid(), SIGKILL); });
}

void frees_at_exit() {
  g_kept = block(3);
  std::atexit([] {
    show("freed at exit", cuMemFree(g_kept));
    std::fflush(stdout);
  });
  ends_with_blocks([] { std::exit(8); });
}

void exits_at_exit() {
  g_kept = block(3);
  std::atexit([] {
    show("freed at exit", cuMemFree(g_kept));
    std::fflush(stdout);
    std::_Exit(9);
  });
  ends_with_blocks([] { std::exit(8); });
}

// main() goes while a thread is in the middle of its work.
void leaves_threads() {
  CUcontext context = nullptr;
  check(cuCtxGetCurrent(&context), "cuCtxGetCurrent");
  for (int i = 0; i < 2; ++i) {
    std::thread([context] {
      cuCtxSetCurrent(context);
      for (;;) {
        CUdeviceptr address = 0;
        if (cuMemAlloc(&address, kBytes) != CUDA_SUCCESS) pause();
        cuMemsetD32(address, 5, kWords);
        cuMemFree(address);
      }
    }).detach();
  }
  ends_with_blocks([] { std::exit(4); });
}

// A handler that allocates, on the thread that is signalled between two calls.
volatile sig_atomic_t g_handled = 0;
void handles_signals() {
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) {
    CUdeviceptr address = 0;
    if (cuMemAlloc(&address, kBytes) == CUDA_SUCCESS && cuMemsetD32(address, 1, kWords) == CUDA_SUCCESS &&
        cuMemFree(address) == CUDA_SUCCESS) {
      g_handled = g_handled + 1;
    }
  };
  sigaction(SIGUSR1, &action, &before);
  const CUdeviceptr a = block(1);
  g_handled = 0;
  for (int i = 0; i < 20; ++i) {
    launch(nullptr, "add", kWords / 8, a, a, kWords / 8);
    raise(SIGUSR1);
  }
  say("handled", static_cast<unsigned>(g_handled));
  contents("a", a);
  sigaction(SIGUSR1, &before, nullptr);
  release(a);
}

// The driver is opened and closed beside the program's own link to it.
void opens_the_driver() {
  const CUdeviceptr a = block(1);
  finish();
  for (int round = 0; round < 4; ++round) {
    void* const handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) std::abort();
    const auto allocate_by = reinterpret_cast<CUresult (*)(CUdeviceptr*, std::size_t)>(dlsym(handle, "cuMemAlloc_v2"));
    const auto free_by = reinterpret_cast<CUresult (*)(CUdeviceptr)>(dlsym(handle, "cuMemFree_v2"));
    CUdeviceptr made = 0;
    show("allocated", allocate_by(&made, kBytes));
    refill(made, 4);
    launch(nullptr, "add", kWords, a, made, kWords);
    finish();
    show("freed", round % 2 == 0 ? free_by(made) : cuMemFree(made));
    say("closed", static_cast<unsigned>(dlclose(handle)));
  }
  contents("a", a);
  release(a);
}

}  // namespace

std::span<const Case> process_cases() {
  static constexpr std::array kCases = {Case{"fork", forks},
                                        Case{"fork-and-free", forks_and_frees},
                                        Case{"fork-and-exit", forks_and_exits},
                                        Case{"start-programs", starts_programs, false},
                                        Case{"exit", exits, false},
                                        Case{"exit-at-once", exits_at_once, false},
                                        Case{"exit-quickly", quick_exits, false},
                                        Case{"exit-frees", frees_at_exit, false},
                                        Case{"exit-within-exit", exits_at_exit, false},
                                        Case{"exit-leaves-threads", leaves_threads, false},
                                        Case{"abort", aborts, false},
                                        Case{"killed", is_killed, false},
                                        Case{"signals", handles_signals},
                                        Case{"driver-opened-again", opens_the_driver}};
  return kCases;
}

}  // namespace awkward
