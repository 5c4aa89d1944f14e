#include "planner/daemon/server.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "tests/planner/daemon/fake_program.h"

namespace memopt::planner {
namespace {

using namespace std::chrono_literals;
using test::FakeProgram;
using test::TestRing;
using test::write_free;
using State = shm::ReceivedMessage::State;

// What all sinks of a server saw.
struct Seen {
  std::mutex mutex;
  std::vector<ProgramInfo> programs;
  std::vector<int> priorities;  // of the threads that serve them
  std::uint64_t records = 0;
  std::uint64_t gaps = 0;
  std::uint64_t out_of_order = 0;
  std::size_t closed = 0;
  std::vector<shm::SwapTermsBody> swap_terms;
  std::vector<std::string> log;
};

class SeenSink final : public Sink {
 public:
  explicit SeenSink(Seen& seen) : seen_(seen) {}
  void swap_on(const shm::SwapTermsBody& terms) override {
    const std::lock_guard lock(seen_.mutex);
    seen_.swap_terms.push_back(terms);
  }
  void record(std::uint32_t, const shm::RecordView& record) override {
    const std::lock_guard lock(seen_.mutex);
    if (throw_at == record.header.sequence) throw std::runtime_error("a sink in trouble");
    ++seen_.records;
    if (!after_gap_ && record.header.sequence != last_ + 1) ++seen_.out_of_order;
    after_gap_ = false;
    last_ = record.header.sequence;
  }
  void gap() override {
    const std::lock_guard lock(seen_.mutex);
    ++seen_.gaps;
    after_gap_ = true;
  }
  void closed() override {
    const std::lock_guard lock(seen_.mutex);
    ++seen_.closed;
  }
  static inline std::uint64_t throw_at = 0;

 private:
  Seen& seen_;
  std::uint64_t last_ = 0;
  bool after_gap_ = false;
};

class ServerTest : public testing::Test {
 protected:
  void start(std::chrono::milliseconds idle_exit = 0ms) {
    static int number = 0;
    name = "server-" + std::to_string(getpid()) + "-" + std::to_string(++number);
    ServerOptions options;
    options.instance = name;
    options.idle_exit = idle_exit;
    options.log = [this](std::string_view line) {
      const std::lock_guard lock(seen.mutex);
      seen.log.emplace_back(line);
    };
    Server::Failure failure{};
    std::string error;
    server = Server::listen(
        std::move(options),
        [this](const ProgramInfo& program, std::string* why) -> std::unique_ptr<Sink> {
          const std::lock_guard lock(seen.mutex);
          seen.programs.push_back(program);
          seen.priorities.push_back(getpriority(PRIO_PROCESS, 0));
          if (program.version == "unwanted") {
            *why = "not this one";
            return nullptr;
          }
          return std::make_unique<SeenSink>(seen);
        },
        &failure, &error);
    ASSERT_NE(server, nullptr) << error;
    thread = std::thread([this] { server->run(); });
  }
  void TearDown() override {
    if (server != nullptr) server->stop();
    if (thread.joinable()) thread.join();
    SeenSink::throw_at = 0;
  }
  template <typename Condition>
  bool wait_until(Condition&& condition) {
    for (int i = 0; i < 60'000; ++i) {
      {
        const std::lock_guard lock(seen.mutex);
        if (condition()) return true;
      }
      std::this_thread::sleep_for(1ms);
    }
    return false;
  }
  // A whole conversation: the server is well.
  void expect_serving() {
    FakeProgram program(name);
    ASSERT_EQ(program.say_hello(), 0);
    ASSERT_TRUE(program.is_welcome());
    TestRing ring(0);
    ASSERT_EQ(program.send_ring(ring, 0), 0);
    for (std::uint64_t i = 1; i <= 100; ++i) write_free(ring.writer, i);
    EXPECT_TRUE(program.wait_processed(100));
  }

  std::string name;
  Seen seen;
  std::unique_ptr<Server> server;
  std::thread thread;
};

// A program that waits for its plans waits no longer than it must; others have the processors first.
TEST_F(ServerTest, OnlyProgramsThatWaitAreServedAtFullPriority) {
  start();
  for (const std::uint32_t flags : {0u, shm::kSynchronous}) {
    FakeProgram program(name);
    program.hello.flags = flags;
    ASSERT_EQ(program.say_hello(), 0);
    ASSERT_TRUE(program.is_welcome());
  }
  const int own = getpriority(PRIO_PROCESS, 0);
  const std::lock_guard lock(seen.mutex);
  EXPECT_EQ(seen.priorities, (std::vector<int>{std::min(19, own + 10), own}));
}

TEST_F(ServerTest, AProgramSaysHowLongItWaits) {
  start();
  for (const std::uint32_t seconds : {0u, 30u}) {
    FakeProgram program(name);
    program.hello.flags = shm::kSynchronous | seconds << shm::kWaitShift;
    ASSERT_EQ(program.say_hello(), 0);
    ASSERT_TRUE(program.is_welcome());
    const std::lock_guard lock(seen.mutex);
    EXPECT_TRUE(seen.programs.back().synchronous);
    EXPECT_EQ(seen.programs.back().wait_seconds, seconds == 0 ? 10 : seconds);
  }
}

TEST_F(ServerTest, WhatAProgramWroteBeforeItLeftIsDelivered) {
  start();
  {
    FakeProgram program(name);
    TestRing a(0);
    TestRing b(1);
    program.say_hello();
    program.send_ring(a, 0);
    program.send_ring(b, 1);
    for (std::uint64_t i = 1; i <= 1000; ++i) write_free(i % 3 == 0 ? a.writer : b.writer, i);
  }
  ASSERT_TRUE(wait_until([&] { return seen.closed == 1; }));
  EXPECT_EQ(seen.records, 1000u);
  EXPECT_EQ(seen.gaps + seen.out_of_order, 0u);
  EXPECT_EQ(seen.programs.at(0).pid, getpid());
  EXPECT_EQ(seen.programs.at(0).path, "/bin/fake");
  EXPECT_EQ(server->programs_seen(), 1u);
}

TEST_F(ServerTest, StopDeliversEverythingFirst) {
  start();
  FakeProgram program(name);
  TestRing ring(0);
  program.say_hello();
  ASSERT_TRUE(program.is_welcome());
  program.send_ring(ring, 0);
  for (std::uint64_t i = 1; i <= 1000; ++i) write_free(ring.writer, i);
  server->stop();
  thread.join();
  EXPECT_EQ(seen.records, 1000u);
  EXPECT_EQ(seen.closed, 1u);
}

TEST_F(ServerTest, OtherWireVersionsAreToldSo) {
  start();
  FakeProgram program(name);
  program.hello.wire_version = shm::kWireVersion + 1;
  program.say_hello();
  EXPECT_EQ(program.refusal(), "wire version " + std::to_string(shm::kWireVersion + 1) + "; this planner speaks " +
                                   std::to_string(shm::kWireVersion));
  EXPECT_EQ(program.receive(), State::kClosed);
  expect_serving();
}

TEST_F(ServerTest, AProgramThatTheSinkDoesNotWantIsToldWhy) {
  start();
  FakeProgram program(name);
  std::strcpy(program.hello.version, "unwanted");
  program.say_hello();
  EXPECT_EQ(program.refusal(), "not this one");
}

TEST_F(ServerTest, MemoryWithoutSealsOrWithHolesIsRefused) {
  start();
  {
    FakeProgram program(name);
    program.control_memory = shm::create_memory("unsealed", shm::kControlBytes);
    program.say_hello();
    EXPECT_NE(program.refusal().find("seals"), std::string::npos);
  }
  {
    FakeProgram program(name);
    program.control_memory = shm::create_memory("large", 2 * shm::kControlBytes);
    fcntl(program.control_memory.get(), F_ADD_SEALS, shm::kSealsOfMemory);
    program.say_hello();
    EXPECT_NE(program.refusal().find("expected 4096"), std::string::npos);
  }
  {
    FakeProgram program(name);
    shm::Descriptor sparse(memfd_create("sparse", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(ftruncate(sparse.get(), shm::kControlBytes), 0);
    fcntl(sparse.get(), F_ADD_SEALS, shm::kSealsOfMemory);
    program.control_memory = std::move(sparse);
    program.say_hello();
    EXPECT_NE(program.refusal().find("holes"), std::string::npos);
  }
  {
    FakeProgram program(name);
    program.say_hello();
    ASSERT_TRUE(program.is_welcome());
    TestRing unsealed(0, shm::kMinRingCapacity, false);
    program.send_ring(unsealed, 0);
    EXPECT_NE(program.refusal().find("seals"), std::string::npos);
  }
  {
    FakeProgram program(name);  // an ordinary file
    program.control_memory.reset(open("/dev/null", O_RDWR | O_CLOEXEC));
    program.say_hello();
    EXPECT_NE(program.refusal().find("seals"), std::string::npos);
  }
  expect_serving();
}

TEST_F(ServerTest, HostileMessagesEndTheirOwnConnectionOnly) {
  start();
  FakeProgram good(name);
  TestRing ring(0);
  good.say_hello();
  ASSERT_TRUE(good.is_welcome());
  good.send_ring(ring, 0);
  std::mt19937_64 random(1);
  std::uint64_t number = 0;
  for (int round = 0; round < 2000; ++round) {
    FakeProgram program(name);
    if (random() % 3 != 0) program.say_hello();
    std::vector<std::byte> garbage(random() % 600);
    for (std::byte& byte : garbage) byte = static_cast<std::byte>(random() % 4 == 0 ? random() : 0);
    if (garbage.size() >= 8 && random() % 2 == 0) {
      const shm::MessageHeader header{static_cast<std::uint32_t>(random() % 8),
                                      static_cast<std::uint32_t>(garbage.size() - 8)};
      std::memcpy(garbage.data(), &header, sizeof(header));
    }
    for (std::uint64_t i = random() % 3; i > 0; --i) {
      if (random() % 2 == 0) {
        ::send(program.socket.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      } else {
        shm::send_message(program.socket.get(), static_cast<shm::MessageKind>(random() % 8),
                          std::span(garbage).first(std::min<std::size_t>(garbage.size(), random() % 32)),
                          random() % 2 == 0 ? program.control_memory.get() : ring.descriptor());
      }
    }
    write_free(ring.writer, ++number);
    if (number % 500 == 0) {
      ASSERT_TRUE(good.wait_processed(number));
    }
  }
  ASSERT_TRUE(good.wait_processed(number));
  expect_serving();
  // No descriptor that was sent stays open: one listener, two eventfds, this test's own, and those of live programs.
  ASSERT_TRUE(wait_until([&] { return server->programs() <= 1; }));
}

TEST_F(ServerTest, SwapTermsComeBeforeTheRecordsAndBetweenThem) {
  start();
  FakeProgram program(name);
  ASSERT_EQ(program.say_hello(), 0);
  ASSERT_TRUE(program.is_welcome());
  const shm::SwapTermsBody terms{13.2, 12.2, 47200, 9700, 2 << 20, 5 << 20, shm::kPersistentStays};
  ASSERT_EQ(shm::send_message(program.socket.get(), shm::MessageKind::kSwapTerms, terms), 0);
  TestRing ring(0);
  ASSERT_EQ(program.send_ring(ring, 0), 0);
  for (std::uint64_t i = 1; i <= 20; ++i) write_free(ring.writer, i);
  ASSERT_TRUE(program.wait_processed(20));
  shm::SwapTermsBody none = terms;
  none.flags |= shm::kNoSwaps;
  ASSERT_EQ(shm::send_message(program.socket.get(), shm::MessageKind::kSwapTerms, none), 0);
  ASSERT_TRUE(wait_until([&] { return seen.swap_terms.size() == 2; }));
  const std::lock_guard lock(seen.mutex);
  EXPECT_EQ(std::memcmp(&seen.swap_terms[0], &terms, sizeof(terms)), 0);
  EXPECT_EQ(std::memcmp(&seen.swap_terms[1], &none, sizeof(none)), 0);
}

TEST_F(ServerTest, SwapTermsThatCannotBeAreRefused) {
  start();
  const shm::SwapTermsBody good{13.2, 12.2, 47200, 9700, 2 << 20, 0, 0};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<shm::SwapTermsBody> bad(10, good);
  bad[0].out_bytes_per_ns = 0;
  bad[1].in_bytes_per_ns = -1;
  bad[2].in_bytes_per_ns = nan;
  bad[3].out_latency_ns = nan;
  bad[4].in_latency_ns = std::numeric_limits<double>::infinity();
  bad[5].chunk_bytes = 0;
  bad[6].chunk_bytes = 3 << 20;
  bad[7].chunk_bytes = 256;
  bad[8].out_bytes_per_ns = 1e300;
  bad[9].flags = 4;
  const auto refusal = [&](const auto& say) {
    FakeProgram program(name);
    EXPECT_EQ(program.say_hello(), 0);
    EXPECT_TRUE(program.is_welcome());
    say(program);
    return program.refusal();
  };
  const auto send = [](FakeProgram& program, const shm::SwapTermsBody& terms) {
    EXPECT_EQ(shm::send_message(program.socket.get(), shm::MessageKind::kSwapTerms, terms), 0);
  };
  for (const shm::SwapTermsBody& terms : bad) {
    EXPECT_NE(refusal([&](FakeProgram& program) { send(program, terms); }).find("expected rates"), std::string::npos);
  }
  EXPECT_NE(refusal([](FakeProgram& program) {
              const std::uint64_t half = 0;
              EXPECT_EQ(shm::send_message(program.socket.get(), shm::MessageKind::kSwapTerms, half), 0);
            }).find("malformed"),
            std::string::npos);
  expect_serving();
  const std::lock_guard lock(seen.mutex);
  EXPECT_EQ(seen.swap_terms.size(), 0u);
}

TEST_F(ServerTest, ACorruptRingEndsItsOwnConnectionOnly) {
  start();
  FakeProgram program(name);
  TestRing ring(0);
  program.say_hello();
  ASSERT_TRUE(program.is_welcome());
  program.send_ring(ring, 0);
  ring.header().head.store(12345);
  EXPECT_NE(program.refusal().find("ring of lane 0"), std::string::npos);
  EXPECT_EQ(program.receive(), State::kClosed);
  expect_serving();
  const std::lock_guard lock(seen.mutex);
  bool logged = false;
  for (const std::string& line : seen.log) logged = logged || line.find("ring of lane 0") != std::string::npos;
  EXPECT_TRUE(logged);
}

TEST_F(ServerTest, ASinkThatThrowsEndsItsOwnConnectionOnly) {
  start();
  SeenSink::throw_at = 150;
  FakeProgram program(name);
  TestRing ring(0);
  program.say_hello();
  ASSERT_TRUE(program.is_welcome());
  program.send_ring(ring, 0);
  for (std::uint64_t i = 1; i <= 200; ++i) write_free(ring.writer, i);
  EXPECT_EQ(program.receive(), State::kClosed);
  expect_serving();
}

TEST_F(ServerTest, OtherUsersAreSentAway) {
  if (geteuid() != 0) GTEST_SKIP() << "not root: cannot become another user";
  start();
  const std::string socket_name = shm::planner_socket_name(geteuid(), name);
  const pid_t child = fork();
  if (child == 0) {
    const shm::AbstractAddress address(socket_name);
    const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (setuid(65534) != 0 || ::connect(socket, address.get(), address.length) != 0) _exit(2);
    char byte;
    _exit(::recv(socket, &byte, 1, 0) <= 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(wait_until([&] { return seen.log.size() == 1; }));
  EXPECT_EQ(server->programs_seen(), 0u);
  expect_serving();
}

TEST_F(ServerTest, ATakenNameIsSaidSo) {
  start();
  Server::Failure failure{};
  std::string error;
  EXPECT_EQ(Server::listen({name, 0ms, {}}, {}, &failure, &error), nullptr);
  EXPECT_EQ(failure, Server::Failure::kNameTaken);
  EXPECT_EQ(Server::listen({std::string(41, 'x'), 0ms, {}}, {}, &failure, &error), nullptr);
  EXPECT_EQ(failure, Server::Failure::kOther);
}

TEST_F(ServerTest, ItLeavesWhenIdleAndNotBefore) {
  start(300ms);
  {
    FakeProgram program(name);
    program.say_hello();
    ASSERT_TRUE(program.is_welcome());
    std::this_thread::sleep_for(600ms);
    EXPECT_EQ(server->programs(), 1u);
    expect_serving();
  }
  thread.join();
  EXPECT_THROW(FakeProgram program(name), std::runtime_error);
}

TEST_F(ServerTest, FiftyProgramsAtOnce) {
  start();
  std::vector<std::thread> programs;
  for (int i = 0; i < 50; ++i) {
    programs.emplace_back([this] { expect_serving(); });
  }
  for (std::thread& program : programs) program.join();
  ASSERT_TRUE(wait_until([&] { return seen.closed == 50; }));
  EXPECT_EQ(seen.records, 5000u);
  EXPECT_EQ(seen.gaps + seen.out_of_order, 0u);
}

// A program that is killed while it writes: everything that was whole arrives, in order, and nothing after it.
TEST_F(ServerTest, ProgramsMayBeKilledAtAnyInstant) {
  std::mt19937_64 random(7);
  start();
  for (std::size_t round = 1; round <= 50; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      FakeProgram program(name);
      TestRing a(0, 1 << 20);
      TestRing b(1);
      program.say_hello();
      program.send_ring(a, 0);
      program.send_ring(b, 1);
      for (std::uint64_t i = 1;; ++i) {
        while (!test::write_name(i % 7 == 0 ? b.writer : a.writer, i, 5 + i % 50)) {
        }
      }
    }
    ASSERT_GT(child, 0);
    // Somewhere between the first message and the middle of writing.
    ASSERT_TRUE(wait_until([&] { return seen.programs.size() == round; }));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 5000));
    ASSERT_EQ(kill(child, SIGKILL), 0);
    waitpid(child, nullptr, 0);
    ASSERT_TRUE(wait_until([&] { return seen.closed == round; })) << round;
    // A full ring refuses and counts: the program above tries again, so that no number is missing.
    ASSERT_EQ(seen.out_of_order, 0u) << round;
  }
  EXPECT_GT(seen.records, 1000u);
  expect_serving();
}

}  // namespace
}  // namespace memopt::planner
