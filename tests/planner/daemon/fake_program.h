// The program's end of the channel, said by hand: well-behaved, or not.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include "shm/channel.h"
#include "shm/message_socket.h"
#include "tests/shm/test_ring.h"

namespace memopt::test {

class FakeProgram {
 public:
  explicit FakeProgram(const std::string& instance)
      : socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)),
        control_memory(shm::create_memory("test-control", shm::kControlBytes)) {
    const shm::AbstractAddress address(shm::planner_socket_name(geteuid(), instance));
    if (::connect(socket.get(), address.get(), address.length) != 0) {
      throw std::runtime_error(std::string("no connection: ") + std::strerror(errno));
    }
    fcntl(control_memory.get(), F_ADD_SEALS, shm::kSealsOfMemory);
    mapping = shm::SharedMapping::map(control_memory.get(), shm::kControlBytes, shm::SharedMapping::Access::kReadWrite);
    control = new (mapping.data()) shm::Control{};
    control->magic = shm::kControlMagic;
    control->wire_version = shm::kWireVersion;
    control->recording.store(1);
    hello.wire_version = shm::kWireVersion;
    hello.pid = getpid();
    std::strcpy(hello.version, "test");
    std::strcpy(hello.program, "/bin/fake");
  }

  int say_hello() { return shm::send_message(socket.get(), shm::MessageKind::kHello, hello, control_memory.get()); }
  int send_ring(const TestRing& ring, std::uint32_t lane) {
    const shm::RingBody body{lane, 0, ring.bytes()};
    return shm::send_message(socket.get(), shm::MessageKind::kRing, body, ring.descriptor());
  }
  // The next message, waited for; kNothing after a minute.
  shm::ReceivedMessage::State receive() {
    pollfd entry{socket.get(), POLLIN, 0};
    poll(&entry, 1, 60'000);
    shm::receive_message(socket.get(), received);
    return received.state;
  }
  bool is_welcome() {
    return receive() == shm::ReceivedMessage::State::kMessage && received.kind == shm::MessageKind::kWelcome;
  }
  // What it was refused with; empty if it was not.
  std::string refusal() {
    if (receive() != shm::ReceivedMessage::State::kMessage || received.kind != shm::MessageKind::kRefused) return {};
    return std::string(received.text());
  }
  bool wait_processed(std::uint64_t sequence) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (control->processed.load() < sequence) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  shm::Descriptor socket;
  shm::Descriptor control_memory;
  shm::SharedMapping mapping;
  shm::Control* control = nullptr;
  shm::HelloBody hello{};
  shm::ReceivedMessage received;
};

}  // namespace memopt::test
