// Programs that do what interposers get wrong. One argument says which; what is printed must be the same with and
// without the shim.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using Init = int (*)(unsigned);
using Synchronize = int (*)(void*);

void* open_driver(int flags = RTLD_NOW | RTLD_LOCAL) {
  void* const handle = dlopen("libcuda.so.1", flags);
  if (handle == nullptr) {
    std::printf("no driver: %s\n", dlerror());
    std::exit(3);
  }
  return handle;
}

int call(void* handle) {
  const auto init = reinterpret_cast<Init>(dlsym(handle, "cuInit"));
  if (init == nullptr) return -1;
  return init(0);
}

int wait_for(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int absent() {
  // Nothing has loaded a driver: there is no such symbol, by any way of asking.
  dlerror();
  const bool by_default = dlsym(RTLD_DEFAULT, "cuInit") == nullptr;
  const bool message = dlerror() != nullptr;
  const bool by_next = dlsym(RTLD_NEXT, "cuInit") == nullptr;
  const bool by_program = dlsym(dlopen(nullptr, RTLD_NOW), "cuMemAlloc_v2") == nullptr;
  const bool opened = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) != nullptr;
  std::printf("%d %d %d %d %d\n", by_default, message, by_next, by_program, opened);
  return 0;
}

int global_scope() {
  void* const handle = open_driver(RTLD_NOW | RTLD_GLOBAL);
  const auto init = reinterpret_cast<Init>(dlsym(RTLD_DEFAULT, "cuInit"));
  std::printf("%d %d\n", init != nullptr, init != nullptr ? init(0) : -1);
  std::printf("%d\n", dlsym(RTLD_DEFAULT, "cuNoSuchFunction") == nullptr);
  return call(handle);
}

int forked() {
  void* const handle = open_driver();
  call(handle);
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) _exit(call(handle) == 0 ? 5 : 6);
  std::printf("child %d\n", wait_for(child));
  return call(handle);
}

int vforked() {
  void* const handle = open_driver();
  call(handle);
  std::fflush(stdout);
  const pid_t child = vfork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", "echo from the child; exit 9", static_cast<char*>(nullptr));
    _exit(127);
  }
  std::printf("child %d\n", wait_for(child));
  return 0;
}

int reopened() {
  for (int round = 0; round < 3; ++round) {
    void* const handle = open_driver();
    std::printf("%d\n", call(handle));
    std::printf("closed %d\n", dlclose(handle));
  }
  return 0;
}

int other_namespace() {
  void* const handle = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    std::printf("dlmopen: %s\n", dlerror());
    return 0;
  }
  std::printf("%d\n", call(handle));
  return call(open_driver());
}

int ended_by_exit_() {
  call(open_driver());
  std::printf("bye\n");
  std::fflush(stdout);
  _exit(11);
}

volatile sig_atomic_t g_signals = 0;
Synchronize g_in_handler = nullptr;

int signals() {
  void* const handle = open_driver();
  g_in_handler = reinterpret_cast<Synchronize>(dlsym(handle, "cuStreamSynchronize"));
  call(handle);
  struct sigaction action {};
  action.sa_handler = [](int) {
    g_signals = g_signals + 1;
    g_in_handler(nullptr);
  };
  sigaction(SIGUSR1, &action, nullptr);
  for (int i = 0; i < 1000; ++i) {
    // To the process, not to a thread: no thread of the shim's may take it.
    kill(getpid(), SIGUSR1);
    g_in_handler(nullptr);
  }
  std::printf("%d signals\n", static_cast<int>(g_signals));
  std::fflush(stdout);
  kill(getpid(), SIGTERM);
  pause();
  return 0;
}

int threads() {
  void* const handle = open_driver();
  const auto function = reinterpret_cast<Synchronize>(dlsym(handle, "cuStreamSynchronize"));
  for (int round = 0; round < 50; ++round) {
    std::vector<std::thread> all;
    for (int i = 0; i < 8; ++i) {
      all.emplace_back([&] {
        // A call out of a thread's last destructors, when its block of counters is given back already.
        struct Late {
          Synchronize function;
          ~Late() { function(nullptr); }
        };
        thread_local Late late{function};
        for (int k = 0; k < 100; ++k) late.function(nullptr);
      });
    }
    for (std::thread& thread : all) thread.join();
  }
  std::printf("done\n");
  return 0;
}

int detached_at_exit() {
  void* const handle = open_driver();
  const auto function = reinterpret_cast<Synchronize>(dlsym(handle, "cuStreamSynchronize"));
  for (int i = 0; i < 4; ++i) {
    std::thread([function] {
      for (;;) function(nullptr);
    }).detach();
  }
  std::atexit([] { call(open_driver()); });
  function(nullptr);
  std::printf("leaving\n");
  return 4;
}

int descriptors() {
  // Descriptors are numbered as without us, and closing all of them does no harm.
  void* const handle = open_driver();
  call(handle);
  const int first = dup(STDIN_FILENO);
  std::printf("%d\n", first);
  for (int i = 3; i < 1024; ++i) close(i);
  const int memory = memfd_create("program", 0);
  std::printf("%d %d\n", memory, call(handle));
  const char text[] = "untouched";
  std::printf("%d\n", write(memory, text, sizeof(text)) == static_cast<ssize_t>(sizeof(text)));
  return 0;
}

int few_descriptors() {
  const rlimit few{64, 64};
  setrlimit(RLIMIT_NOFILE, &few);
  std::printf("%d\n", call(open_driver()));
  return 0;
}

int own_file() {
  // Started without standard error, the program's first file has its number. OWN_FILE says which file.
  const char* const path = std::getenv("OWN_FILE");
  const int own = path != nullptr ? open(path, O_WRONLY | O_CREAT, 0600) : -1;
  void* const handle = open_driver();
  const int first = call(handle);
  const bool written = own >= 0 && write(own, "own", 3) == 3;
  std::printf("%d %d %d\n", own, first, own >= 0 && !written);
  return 0;
}

int many_arguments() {
  using Launch =
      int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
  void* const handle = open_driver();
  const auto launch = reinterpret_cast<Launch>(dlsym(handle, "cuLaunchKernel"));
  std::printf("%d\n",
              launch(reinterpret_cast<void*>(1), 2, 3, 4, 5, 6, 7, 8, reinterpret_cast<void*>(9), nullptr, nullptr));
  return 0;
}

int exceptions() {
  call(open_driver());
  for (int i = 0; i < 10; ++i) {
    try {
      throw std::runtime_error("thrown");
    } catch (const std::runtime_error& error) {
      if (i == 9) std::printf("%s\n", error.what());
    }
  }
  return 0;
}

struct Case {
  const char* name;
  int (*run)();
};
constexpr Case kCases[] = {{"absent", absent},
                           {"global-scope", global_scope},
                           {"fork", forked},
                           {"vfork", vforked},
                           {"reopen", reopened},
                           {"dlmopen", other_namespace},
                           {"_exit", ended_by_exit_},
                           {"signals", signals},
                           {"threads", threads},
                           {"detached", detached_at_exit},
                           {"descriptors", descriptors},
                           {"few-descriptors", few_descriptors},
                           {"own-file", own_file},
                           {"many-arguments", many_arguments},
                           {"exceptions", exceptions}};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    for (const Case& known : kCases) std::puts(known.name);
    return 0;
  }
  for (const Case& known : kCases) {
    if (argc == 2 && std::strcmp(argv[1], known.name) == 0) return known.run();
  }
  std::fprintf(stderr, "usage: awkward CASE | --list\n");
  return 2;
}
