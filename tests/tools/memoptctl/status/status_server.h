// A process's status socket, as an agent has one, but with an answer of the test's choosing.
#pragma once
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "shm/status.h"

namespace memopt::tools {

class StatusServer {
 public:
  // `serve` gets each connection after its request line was read; the connection is closed when it returns.
  StatusServer(std::string name, std::function<void(int connection)> serve)
      : name_(std::move(name)), serve_(std::move(serve)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name_.data(), name_.size());
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name_.size());
    if (listener_ < 0 || ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
        ::listen(listener_, 8) != 0 || ::pipe(stop_) != 0) {
      throw std::runtime_error("the test's status server could not be set up: " + std::string(std::strerror(errno)));
    }
    thread_ = std::thread([this] { loop(); });
  }
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;
  ~StatusServer() {
    ::close(stop_[1]);
    thread_.join();
    ::close(stop_[0]);
    ::close(listener_);
  }

  const std::string& name() const { return name_; }
  // All of them; to be read once they have been answered.
  const std::string& requests() const { return requests_; }

  static void say(int connection, const std::string& text) {
    std::size_t sent = 0;
    while (sent < text.size()) {
      const ssize_t part = ::send(connection, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (part <= 0) return;
      sent += static_cast<std::size_t>(part);
    }
  }

 private:
  void loop() {
    for (;;) {
      pollfd waiting[] = {{listener_, POLLIN, 0}, {stop_[0], POLLIN, 0}};
      if (::poll(waiting, 2, -1) < 0 || waiting[1].revents != 0) return;
      const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) continue;
      char request[64];
      const ssize_t got = ::recv(connection, request, sizeof request, 0);
      const std::string_view line(request, got > 0 ? static_cast<std::size_t>(got) : 0);
      if (line == shm::kStatusRequest || line.starts_with(shm::kLimitRequest)) {
        requests_ += line;
        serve_(connection);
      }
      ::close(connection);
    }
  }

  std::string name_;
  std::function<void(int)> serve_;
  std::string requests_;
  int listener_ = -1;
  int stop_[2] = {-1, -1};
  std::thread thread_;
};

}  // namespace memopt::tools
