// A program of many small parts for process_test: driver_probe PART… does the parts in order. Errors of CUDA calls end
// it with code 3.
#include <cuda.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "cudasim/cudasim.h"

namespace {

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = "?";
  cuGetErrorName(result, &name);
  std::printf("%s: %s\n", what, name);
  std::exit(3);
}
#define CHECK(call) check(call, #call)

CUcontext g_context = nullptr;

void init() {
  CHECK(cuInit(0));
  CHECK(cuCtxCreate(&g_context, nullptr, 0, 0));
}

void name() {
  char text[100];
  std::size_t bytes = 0;
  CHECK(cuDeviceGetName(text, sizeof text, 0));
  CHECK(cuDeviceTotalMem(&bytes, 0));
  std::printf("%s, %zu bytes\n", text, bytes);
}

// Three blocks asked for; says which came.
void allocate() {
  for (int i = 1; i <= 3; ++i) {
    CUdeviceptr block = 0;
    const CUresult result = cuMemAlloc(&block, 1 << 20);
    std::printf("allocation %d: %d\n", i, int(result));
  }
}

// Two writes that nothing orders.
void race() {
  CUdeviceptr block = 0;
  CUstream first = nullptr, second = nullptr;
  CHECK(cuMemAlloc(&block, 1 << 20));
  CHECK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
  CHECK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  CHECK(cuMemsetD8Async(block, 1, 1 << 20, first));
  CHECK(cuMemsetD8Async(block, 2, 1 << 20, second));
}

// The child asks for its pid's fate and reports by exit code: 0 when every call is refused as promised.
int child_of_initialised() {
  int failures = 0;
  CUdeviceptr block = 0;
  const char* text = nullptr;
  CudasimCounters counters{};
  counters.struct_size = sizeof counters;
  failures += cuInit(0) != CUDA_ERROR_NOT_INITIALIZED;
  failures += cuMemAlloc(&block, 1) != CUDA_ERROR_NOT_INITIALIZED;
  failures += cuCtxSynchronize() != CUDA_ERROR_NOT_INITIALIZED;
  failures += cuGetErrorName(CUDA_ERROR_NOT_INITIALIZED, &text) != CUDA_SUCCESS ||
              std::strcmp(text, "CUDA_ERROR_NOT_INITIALIZED") != 0;
  failures += cudasim_counters(&counters) != -1;
  failures += cudasim_calls("cuInit") != 0;
  cudasim_access(&block, sizeof block, 1);
  cudasim_host_works(1);
  return failures;
}

void wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("child: %s %d\n", WIFEXITED(status) ? "exit" : "signal",
              WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

// While another thread is inside the driver, which may hold its lock at the fork.
void fork_after() {
  bool stop = false;
  std::thread busy([&] {
    CHECK(cuCtxSetCurrent(g_context));
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) CHECK(cuCtxSynchronize());
  });
  const char* const times = std::getenv("DRIVER_PROBE_FORKS");
  for (int i = times != nullptr ? std::atoi(times) : 20; i > 0; --i) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      std::exit(child_of_initialised());  // through exit: the child writes no report
    }
    wait_for(child);
  }
  __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
  busy.join();
}

// Looked at but not initialised: the child may use the device.
void fork_before() {
  int version = 0;
  CHECK(cuDriverGetVersion(&version));
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    init();
    std::printf("child calls: %d\n", int(cudasim_calls("cuDriverGetVersion")));
    CHECK(cuDriverGetVersion(&version));
    std::printf("child calls: %d\n", int(cudasim_calls("cuDriverGetVersion")));
    std::exit(0);
  }
  wait_for(child);
}

struct AtEnd {  // frees after main, as runtimes do
  CUdeviceptr block = 0;
  ~AtEnd() {
    if (block != 0) std::printf("freed at the end: %d\n", int(cuMemFree(block)));
  }
} g_at_end;

void free_at_end() { CHECK(cuMemAlloc(&g_at_end.block, 4 << 20)); }

void peaks() {
  CUdeviceptr block = 0;
  CHECK(cuMemAlloc(&block, 8 << 20));
  CHECK(cuMemFree(block));
  cudasim_reset_peaks();
}

void copy() {
  CUdeviceptr block = 0;
  const std::string bytes(4096, 'x');
  CHECK(cuMemAlloc(&block, bytes.size()));
  CHECK(cuMemcpyHtoD(block, bytes.data(), bytes.size()));
}

void stub() {
  for (int i = 0; i < 2; ++i) {
    std::printf("cuDestroyExternalMemory: %d\n", int(cuDestroyExternalMemory(nullptr)));
  }
  std::printf("calls: %d\n", int(cudasim_calls("cuDestroyExternalMemory")));
}

void exit_five() { std::exit(5); }
void underscore_exit() { _exit(6); }
void die() { std::abort(); }

}  // namespace

int main(int count, char** parts) {
  const std::map<std::string, std::function<void()>> known{{"init", init},
                                                           {"name", name},
                                                           {"allocate", allocate},
                                                           {"copy", copy},
                                                           {"race", race},
                                                           {"fork_after", fork_after},
                                                           {"fork_before", fork_before},
                                                           {"free_at_end", free_at_end},
                                                           {"peaks", peaks},
                                                           {"stub", stub},
                                                           {"exit_five", exit_five},
                                                           {"underscore_exit", underscore_exit},
                                                           {"die", die}};
  for (int i = 1; i < count; ++i) {
    const auto part = known.find(parts[i]);
    if (part == known.end()) {
      std::fprintf(stderr, "driver_probe: no part \"%s\"\n", parts[i]);
      return 2;
    }
    part->second();
  }
  std::printf("done\n");
  return 0;
}
