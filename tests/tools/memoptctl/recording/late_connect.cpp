// Preloaded behind libmemopt.so: with LATE_CONNECT=1 the agent's link reaches its planner only 200 ms after the program
// has begun to end, as it may on a machine whose processors are busy with other things.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<bool> g_ending{false};

void sleep_for(long milliseconds) {
  const timespec time{0, milliseconds * 1'000'000};
  nanosleep(&time, nullptr);
}

bool is_planner(const sockaddr* address, socklen_t length) {
  constexpr char kName[] = "memoptd-";
  const auto* const local = reinterpret_cast<const sockaddr_un*>(address);
  return address->sa_family == AF_UNIX && length > offsetof(sockaddr_un, sun_path) + sizeof(kName) &&
         std::memcmp(local->sun_path + 1, kName, sizeof(kName) - 1) == 0;
}

}  // namespace

extern "C" {

// The first is made by the program's first CUDA call. An exit handler of that time runs before any library's
// destructors, unlike one that a library's constructor leaves.
__attribute__((visibility("default"))) int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                                          void* (*body)(void*), void* argument) noexcept {
  static const auto real = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  static const int handled = std::atexit([] { g_ending.store(true); });
  return handled == 0 ? real(thread, attributes, body, argument) : handled;
}

__attribute__((visibility("default"))) int connect(int socket, const sockaddr* address, socklen_t length) {
  static const auto real = reinterpret_cast<int (*)(int, const sockaddr*, socklen_t)>(dlsym(RTLD_NEXT, "connect"));
  if (std::getenv("LATE_CONNECT") != nullptr && is_planner(address, length)) {
    while (!g_ending.load()) sleep_for(1);
    sleep_for(200);
  }
  return real(socket, address, length);
}

}  // extern "C"
