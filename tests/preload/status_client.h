// Asks an agent for its status as docs/formats/status.md says, without any code of the agent.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "planner/json/tree.h"

namespace memopt::test {

// The abstract name of that process's listening socket, or empty.
inline std::string find_status_socket(pid_t pid) {
  std::ifstream listing("/proc/net/unix");
  const std::string prefix = "@memopt-" + std::to_string(geteuid()) + "-" + std::to_string(pid) + "-";
  for (std::string line; std::getline(listing, line);) {
    const std::size_t at = line.find(prefix);
    // Column 4 is the flags: 00010000 is a socket that accepts connections.
    if (at != std::string::npos && line.find(" 00010000 ") != std::string::npos) return line.substr(at + 1);
  }
  return {};
}

inline int connect_abstract(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (connect(connection, reinterpret_cast<const sockaddr*>(&address), length) == 0) return connection;
  close(connection);
  return -1;
}

// Whatever the other side says until it closes.
inline std::string read_all(int connection) {
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = read(connection, buffer, sizeof(buffer))) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  return text;
}

inline std::string ask(const std::string& name, const std::string& request) {
  const int connection = connect_abstract(name);
  if (connection < 0) return {};
  if (send(connection, request.data(), request.size(), MSG_NOSIGNAL) < 0) {
    close(connection);
    return {};
  }
  std::string text = read_all(connection);
  close(connection);
  return text;
}

// Waits until the process serves its status, which it does soon after its first call; null if it never does.
inline nlohmann::json status_of(pid_t pid) {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const std::string name = find_status_socket(pid);
    if (!name.empty()) {
      const std::string text = ask(name, "status 1\n");
      if (!text.empty()) return nlohmann::json::parse(text);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return nullptr;
}

}  // namespace memopt::test
