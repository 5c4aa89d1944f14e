#include "agent/status/status_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "agent/process/log.h"
#include "agent/process/own_descriptors.h"
#include "shm/status.h"

namespace memopt::agent {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kRequestTimeout{500};
constexpr std::chrono::milliseconds kAnswerTimeout{1000};
constexpr std::chrono::nanoseconds kOpenTimeout{100'000'000};
constexpr int kLowestDescriptor = 500;  // out of the way of programs that count on low numbers
constexpr int kBacklog = 16;
constexpr int kMaxRestarts = 8;
constexpr std::size_t kStackBytes = 512 * 1024;

// Where the thread has no descriptors of its own: the listening socket, and its inode. The program may close
// descriptors that it did not open, and then own the number.
constinit std::atomic<int> g_listener{-1};
constinit std::atomic<ino_t> g_listener_inode{0};
// Posted once the thread has its socket, or knows that it gets none.
sem_t g_opened;

bool is_ours(int descriptor) noexcept {
  struct stat info {};
  return descriptor >= 0 && fstat(descriptor, &info) == 0 && S_ISSOCK(info.st_mode) &&
         info.st_ino == g_listener_inode.load();
}

int move_up(int low) noexcept {
  if (low < 0) return low;
  const int high = fcntl(low, F_DUPFD_CLOEXEC, kLowestDescriptor);
  if (high < 0) return low;  // a small RLIMIT_NOFILE
  close(low);
  return high;
}

// Waits until the descriptor is ready or the deadline is past.
bool wait_for(int descriptor, short events, Clock::time_point deadline) noexcept {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd entry{descriptor, events, 0};
    const int ready = poll(&entry, 1, static_cast<int>(left));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

// Reads one line of at most the request's length. Whatever is longer is not a request that we know.
bool read_request(int client, std::string_view& line, char (&buffer)[shm::kRequestLimit]) noexcept {
  const auto deadline = Clock::now() + kRequestTimeout;
  std::size_t length = 0;
  while (length < sizeof(buffer)) {
    if (!wait_for(client, POLLIN, deadline)) return false;
    const ssize_t got = recv(client, buffer + length, sizeof(buffer) - length, MSG_DONTWAIT);
    if (got == 0) return false;
    if (got < 0) {
      if (errno == EAGAIN || errno == EINTR) continue;
      return false;
    }
    length += static_cast<std::size_t>(got);
    line = std::string_view(buffer, length);
    if (const std::size_t end = line.find('\n'); end != std::string_view::npos) {
      line = line.substr(0, end + 1);
      return true;
    }
  }
  return true;
}

void write_answer(int client, std::string_view answer) noexcept {
  const auto deadline = Clock::now() + kAnswerTimeout;
  while (!answer.empty() && wait_for(client, POLLOUT, deadline)) {
    const ssize_t sent = send(client, answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return;
    if (sent > 0) answer.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void serve(int client, Answer answer) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || (peer.uid != geteuid() && peer.uid != 0))
    return;
  char buffer[shm::kRequestLimit];
  std::string_view request;
  if (!read_request(client, request, buffer)) return;
  try {
    write_answer(client, answer(request));
  } catch (...) {
    // Out of memory: the reader sees an empty answer.
  }
}

int open_listener(bool own_descriptors) {
  std::uint64_t nonce = 0;
  if (getrandom(&nonce, sizeof(nonce), 0) != static_cast<ssize_t>(sizeof(nonce))) return -1;
  const std::string name = fmt::format("{}{}-{}-{:016x}", shm::kStatusSocketPrefix, geteuid(), getpid(), nonce);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  static_assert(sizeof(address.sun_path) > 64);
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // a leading NUL byte: abstract
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (!own_descriptors) listener = move_up(listener);
  if (listener < 0) return -1;
  struct stat info {};
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), length) != 0 || listen(listener, kBacklog) != 0 ||
      fstat(listener, &info) != 0) {
    const int kept = errno;
    close(listener);
    errno = kept;
    return -1;
  }
  g_listener_inode.store(info.st_ino);
  if (!own_descriptors) g_listener.store(listener);
  return listener;
}

// Until the listening descriptor is no longer ours.
void serve_clients(int listener, Answer answer) {
  for (;;) {
    pollfd entry{listener, POLLIN, 0};
    const int ready = poll(&entry, 1, -1);
    if (ready < 0 && errno == EINTR) continue;
    if (!is_ours(listener)) return;
    if (ready < 0) return;
    const int client = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client >= 0) {
      serve(client, answer);
      close(client);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      poll(nullptr, 0, 100);  // the client stays in the queue: do not spin until there is room
    } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

void* run(void* argument) {
  const auto answer = reinterpret_cast<Answer>(argument);
  pthread_setname_np(pthread_self(), "memopt-status");
  const bool own_descriptors = take_own_descriptors();
  try {
    for (int restarts = 0; restarts < kMaxRestarts; ++restarts) {
      const int listener = open_listener(own_descriptors);
      if (restarts == 0) sem_post(&g_opened);
      if (listener < 0) {
        log(LogLevel::kWarn, "no status can be served: {}", std::strerror(errno));
        return nullptr;
      }
      serve_clients(listener, answer);
      log(LogLevel::kInfo, "the program closed the status socket; opening another");
    }
  } catch (...) {
    log(LogLevel::kWarn, "no status is served any more: out of memory");
  }
  return nullptr;
}

}  // namespace

void start_status_server(Answer answer) noexcept {
  sem_init(&g_opened, 0, 0);
  // Signals of the program are for its own threads; a thread inherits the mask of its maker.
  sigset_t all;
  sigset_t kept;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &kept);
  pthread_attr_t attributes;
  int failure = pthread_attr_init(&attributes);
  if (failure == 0) {
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    pthread_t thread;
    failure = pthread_create(&thread, &attributes, run, reinterpret_cast<void*>(answer));
    if (failure == EINVAL) {
      // The program's thread-local storage alone is larger than that: the default size then.
      pthread_attr_destroy(&attributes);
      pthread_attr_init(&attributes);
      pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
      failure = pthread_create(&thread, &attributes, run, reinterpret_cast<void*>(answer));
    }
    pthread_attr_destroy(&attributes);
  }
  pthread_sigmask(SIG_SETMASK, &kept, nullptr);
  // Whoever looks after the program's first call finds the socket. A thread that gets no processor for long is not
  // waited for.
  timespec deadline{};
  if (failure == 0 && clock_gettime(CLOCK_REALTIME, &deadline) == 0) {
    deadline.tv_nsec += kOpenTimeout.count();
    deadline.tv_sec += deadline.tv_nsec / 1'000'000'000;
    deadline.tv_nsec %= 1'000'000'000;
    while (sem_timedwait(&g_opened, &deadline) != 0 && errno == EINTR) {
    }
  }
  if (failure != 0) log(LogLevel::kWarn, "no status can be served: no thread: {}", std::strerror(failure));
}

void forget_status_server_after_fork() noexcept {
  const int listener = g_listener.exchange(-1);
  if (is_ours(listener)) close(listener);
  g_listener_inode.store(0);
}

}  // namespace memopt::agent
