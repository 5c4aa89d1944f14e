// memoptd, for a program whose agent carries swaps out: the layout first, then a plan that swaps.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "agent/plan/plan.h"
#include "tests/planner/daemon/fake_program.h"
#include "tests/planner/sending/told.h"
#include "tests/planner/sending/training.h"

namespace memopt::planner {
namespace {

using test::FakeProgram;
using test::TestRing;

class Memoptd {
 public:
  Memoptd() : name("swaps-" + std::to_string(getpid()) + "-" + std::to_string(++number_)) {
    pid_ = fork();
    if (pid_ == 0) {
      execl(MEMOPT_TEST_PLANNER, "memoptd", "--foreground", "--idle-exit", "0", "--name", name.c_str(), nullptr);
      _exit(127);
    }
  }
  ~Memoptd() { EXPECT_EQ(stop(), 0); }
  Memoptd(const Memoptd&) = delete;
  Memoptd& operator=(const Memoptd&) = delete;

  // Its exit code; -1 if it ended in any other way.
  int stop() {
    if (std::exchange(stopped_, true)) return code_;
    int status = 0;
    kill(pid_, SIGTERM);
    waitpid(pid_, &status, 0);
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return code_;
  }

  // When it listens.
  std::unique_ptr<FakeProgram> connect() const {
    for (int i = 0; i < 60'000; ++i) {
      try {
        return std::make_unique<FakeProgram>(name);
      } catch (const std::runtime_error&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    return nullptr;
  }

  const std::string name;

 private:
  static inline int number_ = 0;
  pid_t pid_ = -1;
  bool stopped_ = false;
  int code_ = -1;
};

// Tells memoptd by a ring, as an agent does.
class ToldByRing final : public Told {
 public:
  TestRing ring{0, std::size_t{1} << 20};

 private:
  void add(const shm::RecordView& record) override {
    const std::size_t bytes = sizeof(record.header) + record.body.size();
    std::byte* const at = ring.writer.reserve(bytes);
    if (at == nullptr) throw std::runtime_error("the ring is full");
    std::memcpy(at, &record.header, sizeof(record.header));
    std::memcpy(at + sizeof(record.header), record.body.data(), record.body.size());
    ring.writer.commit(bytes);
  }
};

struct Received {
  std::unique_ptr<const agent::Plan> plan;
  std::string note;  // the last one before it
};

// The next plan, as an agent reads it; null: none came, or it refuses it.
Received next_plan(FakeProgram& program) {
  Received result;
  while (program.receive() == shm::ReceivedMessage::State::kMessage) {
    if (program.received.kind == shm::MessageKind::kNote) result.note = std::string(program.received.text());
    if (program.received.kind != shm::MessageKind::kPlan) continue;
    shm::PlanBody body{};
    std::string why;
    EXPECT_TRUE(program.received.read(&body));
    const shm::SharedMapping memory = shm::SharedMapping::accept(
        program.received.descriptor.get(), body.bytes, shm::kSealsOfPlan, shm::SharedMapping::Access::kReadOnly, &why);
    EXPECT_TRUE(static_cast<bool>(memory)) << why;
    if (memory) result.plan = agent::parse_plan(memory.bytes(), &why);
    EXPECT_NE(result.plan, nullptr) << why;
    return result;
  }
  return result;
}

// A note that comes behind everything else.
std::string next_note(FakeProgram& program) {
  while (program.receive() == shm::ReceivedMessage::State::kMessage) {
    if (program.received.kind == shm::MessageKind::kNote) return std::string(program.received.text());
  }
  return {};
}

class MemoptdSwapsTest : public testing::Test {
 protected:
  void start(const std::optional<shm::SwapTermsBody>& terms) {
    program = memoptd.connect();
    ASSERT_NE(program, nullptr);
    ASSERT_EQ(program->say_hello(), 0);
    ASSERT_TRUE(program->is_welcome());
    if (terms) {
      ASSERT_EQ(shm::send_message(program->socket.get(), shm::MessageKind::kSwapTerms, *terms), 0);
    }
    ASSERT_EQ(program->send_ring(training.told.ring, 0), 0);
    for (int i = 0; i < 12; ++i) training.iterate();
    ASSERT_TRUE(program->wait_processed(training.told.written()));
  }

  Memoptd memoptd;
  Training<ToldByRing> training{1};
  std::unique_ptr<FakeProgram> program;
};

TEST_F(MemoptdSwapsTest, ALayoutThenAPlanThatSwaps) {
  start(shm::SwapTermsBody{25, 25, 8000, 8000, 2 << 20, 0, 0});
  const Received layout = next_plan(*program);
  ASSERT_NE(layout.plan, nullptr);
  EXPECT_TRUE(layout.plan->swaps.empty());
  const Received swapped = next_plan(*program);
  ASSERT_NE(swapped.plan, nullptr);
  EXPECT_FALSE(swapped.plan->swaps.empty());
  EXPECT_EQ(swapped.plan->generation, layout.plan->generation + 1);
  EXPECT_EQ(swapped.plan->signature, layout.plan->signature);
  EXPECT_LT(swapped.plan->slab_bytes, layout.plan->slab_bytes + layout.plan->persistent_bytes);
  EXPECT_LE(swapped.plan->added_ns, swapped.plan->period_ns / 1000);
  EXPECT_NE(next_note(*program).find("planned " + std::to_string(swapped.plan->swaps.size()) + " swaps"),
            std::string::npos);
}

TEST_F(MemoptdSwapsTest, WhoDoesNotAskHasLayoutsOnly) {
  start(std::nullopt);
  const Received layout = next_plan(*program);
  ASSERT_NE(layout.plan, nullptr);
  EXPECT_TRUE(layout.plan->swaps.empty());
  for (int i = 0; i < 40; ++i) training.iterate();
  ASSERT_TRUE(program->wait_processed(training.told.written()));
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // longer than a first search for swaps
  for (;;) {
    shm::receive_message(program->socket.get(), program->received);
    if (program->received.state != shm::ReceivedMessage::State::kMessage) break;
    EXPECT_NE(program->received.kind, shm::MessageKind::kPlan);
  }
}

// As the limit of a program that runs is set and taken away.
TEST_F(MemoptdSwapsTest, TermsChangeWhileTheProgramRuns) {
  start(std::nullopt);
  const Received layout = next_plan(*program);
  ASSERT_NE(layout.plan, nullptr);
  shm::SwapTermsBody terms{25, 25, 8000, 8000, 2 << 20, 0, 0};
  const auto planned_again = [&](bool swaps) {
    EXPECT_EQ(shm::send_message(program->socket.get(), shm::MessageKind::kSwapTerms, terms), 0);
    for (int i = 0; i < 40; ++i) training.iterate();
    EXPECT_TRUE(program->wait_processed(training.told.written()));
    for (int i = 0; i < 4; ++i) {
      const Received next = next_plan(*program);
      if (next.plan == nullptr) return false;
      EXPECT_EQ(next.plan->signature, layout.plan->signature);
      if (next.plan->swaps.empty() != swaps) return true;
      // The layout comes first.
    }
    return false;
  };
  EXPECT_TRUE(planned_again(true));
  terms.flags = shm::kNoSwaps;
  EXPECT_TRUE(planned_again(false));
  terms.flags = 0;
  EXPECT_TRUE(planned_again(true));
}

// While it searches: for a program that is gone, and for one that is there.
TEST_F(MemoptdSwapsTest, ItCanBeStoppedAtAnyTime) {
  start(shm::SwapTermsBody{25, 25, 8000, 8000, 2 << 20, 0, 0});
  ASSERT_NE(next_plan(*program).plan, nullptr);
  program.reset();
  Training<ToldByRing> other{2};
  const std::unique_ptr<FakeProgram> second = memoptd.connect();
  ASSERT_NE(second, nullptr);
  ASSERT_EQ(second->say_hello(), 0);
  ASSERT_TRUE(second->is_welcome());
  const shm::SwapTermsBody terms{25, 25, 8000, 8000, 2 << 20, 0, 0};
  ASSERT_EQ(shm::send_message(second->socket.get(), shm::MessageKind::kSwapTerms, terms), 0);
  ASSERT_EQ(second->send_ring(other.told.ring, 0), 0);
  for (int i = 0; i < 12; ++i) other.iterate();
  ASSERT_NE(next_plan(*second).plan, nullptr);
  EXPECT_EQ(memoptd.stop(), 0);
}

}  // namespace
}  // namespace memopt::planner
