// Listens for programs, and gives the operations of each to a Sink of its own (docs/formats/wire.md). One thread per
// program, so that planning for one does not keep another waiting.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "planner/daemon/sink.h"

namespace memopt::planner {

struct ServerOptions {
  std::string instance;                    // second part of the socket's name; empty: the user's own planner
  std::chrono::milliseconds idle_exit{0};  // run() returns after that long without programs; 0: never
  // One line for people; called from several threads, never at the same time. May be empty.
  std::function<void(std::string_view line)> log;
};

class Server {
 public:
  enum class Failure { kNone, kNameTaken, kOther };

  // Listens from here on; programs are served once run() is called. Null: see `*failure` and `*error`.
  static std::unique_ptr<Server> listen(ServerOptions options, SinkFactory factory, Failure* failure,
                                        std::string* error);
  ~Server();  // run() must have returned
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Serves until stop() or until idle for long. When it returns, everything that programs had written has been
  // delivered, and every sink is closed().
  void run();

  // From any thread, or a signal handler.
  void stop() noexcept;

  // Programs connected now, and since the beginning. From any thread.
  std::size_t programs() const noexcept;
  std::size_t programs_seen() const noexcept;

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace memopt::planner
