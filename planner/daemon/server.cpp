#include "planner/daemon/server.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <atomic>
#include <cstring>
#include <exception>
#include <list>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "planner/daemon/connection.h"
#include "shm/channel.h"
#include "shm/message_socket.h"

namespace memopt::planner {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBacklog = 128;
constexpr std::size_t kMaxPrograms = 1024;

// The thread of a connection, which says when it is done.
struct Worker {
  std::thread thread;
  std::atomic<bool> done{false};
};

}  // namespace

struct Server::Impl {
  ServerOptions options;
  SinkFactory factory;
  shm::Descriptor listener;
  shm::Descriptor stop;         // an eventfd: readable from stop() on
  shm::Descriptor worker_done;  // an eventfd that workers ring
  std::list<Worker> workers;
  std::mutex log_mutex;
  std::mutex factory_mutex;
  std::atomic<std::size_t> programs{0};
  std::atomic<std::size_t> programs_seen{0};

  void log(std::string_view line) {
    if (!options.log) return;
    const std::lock_guard lock(log_mutex);
    options.log(line);
  }
  void accept_all();
  void serve(shm::Descriptor socket, pid_t peer);
  void join(bool all);
  bool wait(std::chrono::milliseconds longest);
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

std::unique_ptr<Server> Server::listen(ServerOptions options, SinkFactory factory, Failure* failure,
                                       std::string* error) {
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  impl->factory = std::move(factory);
  *failure = Failure::kOther;
  const std::string name = shm::planner_socket_name(geteuid(), impl->options.instance);
  const shm::AbstractAddress address(name);
  if (impl->options.instance.size() > shm::kMaxInstanceName || address.length == 0) {
    *error = "instance name of " + std::to_string(impl->options.instance.size()) + " bytes: expected at most " +
             std::to_string(shm::kMaxInstanceName);
    return nullptr;
  }
  impl->listener.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  impl->stop.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  impl->worker_done.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!impl->listener || !impl->stop || !impl->worker_done) {
    *error = std::string("no socket: ") + std::strerror(errno);
    return nullptr;
  }
  if (::bind(impl->listener.get(), address.get(), address.length) != 0 ||
      ::listen(impl->listener.get(), kBacklog) != 0) {
    if (errno == EADDRINUSE) *failure = Failure::kNameTaken;
    *error = "@" + name + ": " + std::strerror(errno);
    return nullptr;
  }
  *failure = Failure::kNone;
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

void Server::Impl::serve(shm::Descriptor socket, pid_t peer) {
  try {
    Connection connection(
        std::move(socket), peer, stop.get(),
        [this](const ProgramInfo& program, std::string* why) {
          const std::lock_guard lock(factory_mutex);
          return factory(program, why);
        },
        [this](std::string_view line) { log(line); });
    connection.run();
  } catch (const std::exception& exception) {
    log("program " + std::to_string(peer) + ": given up: " + exception.what());
  }
}

void Server::Impl::accept_all() {
  for (;;) {
    shm::Descriptor socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      // Out of descriptors or memory: whoever waits stays in the queue, which must not be spun on.
      if (errno != EAGAIN) ::poll(nullptr, 0, 50);
      return;
    }
    ucred peer{};
    if (!shm::read_peer(socket.get(), &peer) || peer.uid != geteuid()) {
      log("a program of user " + std::to_string(peer.uid) + " is sent away");
      continue;
    }
    if (programs.load() >= kMaxPrograms) {
      shm::send_text(socket.get(), shm::MessageKind::kRefused, "too many programs");
      continue;
    }
    try {
      Worker& worker = workers.emplace_back();
      programs.fetch_add(1);
      programs_seen.fetch_add(1);
      worker.thread = std::thread([this, &worker, pid = peer.pid, taken = std::move(socket)]() mutable {
        serve(std::move(taken), pid);
        programs.fetch_sub(1);
        worker.done.store(true);
        const std::uint64_t one = 1;
        [[maybe_unused]] const ssize_t rung = ::write(worker_done.get(), &one, sizeof(one));
      });
    } catch (const std::system_error& error) {
      workers.pop_back();
      programs.fetch_sub(1);
      log(std::string("no thread for a program: ") + error.what());
    }
  }
}

void Server::Impl::join(bool all) {
  for (auto at = workers.begin(); at != workers.end();) {
    if (!all && !at->done.load()) {
      ++at;
      continue;
    }
    at->thread.join();
    at = workers.erase(at);
  }
}

// False once stop() was called.
bool Server::Impl::wait(std::chrono::milliseconds longest) {
  pollfd entries[] = {{listener.get(), POLLIN, 0}, {stop.get(), POLLIN, 0}, {worker_done.get(), POLLIN, 0}};
  if (::poll(entries, 3, static_cast<int>(longest.count())) <= 0) return true;
  if (entries[2].revents != 0) {
    std::uint64_t count;
    [[maybe_unused]] const ssize_t got = ::read(worker_done.get(), &count, sizeof(count));
  }
  return entries[1].revents == 0;
}

void Server::run() {
  Impl& impl = *impl_;
  auto last_busy = Clock::now();
  for (;;) {
    std::chrono::milliseconds longest{-1};
    if (!impl.workers.empty()) {
      last_busy = Clock::now();
    } else if (impl.options.idle_exit.count() > 0) {
      const auto idle = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - last_busy);
      if (idle >= impl.options.idle_exit) {
        impl.log("no programs for " + std::to_string(idle.count()) + " ms: leaving");
        break;
      }
      longest = impl.options.idle_exit - idle + std::chrono::milliseconds(1);
    }
    if (!impl.wait(longest)) break;
    impl.accept_all();
    impl.join(false);
  }
  // Whoever comes from here on finds nobody, and starts another planner.
  impl.listener.reset();
  stop();
  impl.join(true);
}

void Server::stop() noexcept {
  const int kept = errno;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(impl_->stop.get(), &one, sizeof(one));
  errno = kept;
}

std::size_t Server::programs() const noexcept { return impl_->programs.load(); }
std::size_t Server::programs_seen() const noexcept { return impl_->programs_seen.load(); }

}  // namespace memopt::planner
