// One program at the other end of a socket: greeting, rings, plans. Its own thread runs it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "planner/daemon/intake.h"
#include "planner/daemon/sink.h"
#include "shm/message_socket.h"
#include "shm/sealed_memory.h"

namespace memopt::planner {

class Connection final : public Outbox {
 public:
  using Log = std::function<void(std::string_view line)>;

  // `stop` becomes readable when the server stops. `make_sink` as in SinkFactory, but serialised by the caller.
  Connection(shm::Descriptor socket, pid_t peer, int stop, SinkFactory make_sink, Log log);
  ~Connection() override;

  // Until the program is gone, misbehaves, or the server stops. Throws what the sink throws.
  void run();

  // For the intake.
  void send_plan(std::vector<std::byte> plan) override;
  void send_note(std::string_view note) override;

 private:
  bool greet();
  bool wait(std::chrono::nanoseconds longest, bool* stopped);
  bool receive_all();
  bool accept_ring();
  bool accept_swap_terms();
  bool refuse(std::string_view why);
  bool send(shm::MessageKind kind, std::span<const std::byte> body, int descriptor = -1);
  void serve();

  shm::Descriptor socket_;
  const int stop_;
  SinkFactory make_sink_;
  Log log_;
  ProgramInfo program_;
  shm::SharedMapping control_memory_;
  shm::Control* control_ = nullptr;
  std::unique_ptr<Sink> sink_;
  std::unique_ptr<Intake> intake_;
  shm::ReceivedMessage received_;
  std::uint64_t sent_ = 0;
  std::uint64_t generation_ = 0;
  bool broken_ = false;  // a message could not be sent
};

}  // namespace memopt::planner
