// Each case is a program of its own: a forked child with the agent's link in it, and a server either in the same child
// or in a real memoptd.
#include "agent/link/link.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>
#include <thread>

#include "planner/daemon/server.h"
#include "tests/agent/plan_builder.h"
#include "tests/shm/test_ring.h"

namespace {
std::atomic<std::size_t> g_largest_memory{SIZE_MAX};
std::atomic<bool> g_refuse_memory{false};
}  // namespace

// The test's own take the place of libc's, for the agent in this binary.
extern "C" int fallocate(int descriptor, int /*mode*/, off_t /*offset*/, off_t bytes) {
  if (static_cast<std::size_t>(bytes) > g_largest_memory.load()) {
    errno = ENOSPC;
    return -1;
  }
  const int failure = posix_fallocate(descriptor, 0, bytes);
  errno = failure;
  return failure == 0 ? 0 : -1;
}
extern "C" int memfd_create(const char* name, unsigned flags) noexcept {
  if (g_refuse_memory.load()) {
    errno = EMFILE;
    return -1;
  }
  return static_cast<int>(syscall(SYS_memfd_create, name, flags));
}

namespace memopt::agent {
namespace {

using namespace std::chrono_literals;
using planner::ProgramInfo;
using planner::Server;
using planner::Sink;
using test::PlanBuilder;

void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "expected: %s\n", what);
  std::fprintf(stderr, "reason: %s\n", link_status().reason.c_str());
  _exit(1);
}
#define CHECK_THAT(condition) check(condition, #condition)

bool wait_until(const std::function<bool()>& condition, std::chrono::seconds limit = 60s) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

// The agent gives up after half a second. Sanitised, on a busy machine, making a ring may take longer.
void take_ring(shm::RingWriter* ring) {
#ifdef MEMOPT_SANITIZED
  CHECK_THAT(wait_until([ring] { return acquire_ring(ring); }));
#else
  CHECK_THAT(acquire_ring(ring));
#endif
}

// Runs `body` as a process of its own.
void run(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(240);
    body();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

std::string unique_name() {
  static int number = 0;
  return "test-" + std::to_string(getpid()) + "-" + std::to_string(++number);
}

// What a server's sink saw and is to do, shared with the test.
struct Script {
  std::atomic<std::uint64_t> records{0};
  std::atomic<std::uint64_t> adopted{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<bool> closed{false};
  std::atomic<std::uint32_t> wait_seconds{0};  // of a synchronous program
  std::function<std::optional<std::vector<std::byte>>(std::uint64_t records)> plan;
};

class ScriptSink final : public Sink {
 public:
  explicit ScriptSink(Script& script) : script_(script) {}
  void record(std::uint32_t, const shm::RecordView&) override { script_.records.fetch_add(1); }
  void gap() override { note_ = "gap"; }
  std::optional<std::vector<std::byte>> check_point() override {
    return script_.plan ? script_.plan(script_.records.load()) : std::nullopt;
  }
  std::string note() override { return note_; }
  void adopted(std::uint64_t generation) override { script_.adopted.store(generation); }
  void refused(std::uint64_t generation, std::uint64_t) override { script_.refused.store(generation); }
  void closed() override { script_.closed.store(true); }

 private:
  Script& script_;
  std::string note_ = "waiting for an iteration";
};

// Listens from the beginning on, and answers from start() on.
struct RunningServer {
  enum class Begin { kNow, kLater };
  explicit RunningServer(const std::string& instance, Script& script, Begin begin = Begin::kNow) {
    Server::Failure failure{};
    std::string error;
    server = Server::listen(
        {instance, 0ms, {}},
        [&script](const ProgramInfo& program, std::string*) {
          script.wait_seconds.store(program.synchronous ? program.wait_seconds : 0);
          return std::make_unique<ScriptSink>(script);
        },
        &failure, &error);
    CHECK_THAT(server != nullptr);
    if (begin == Begin::kNow) start();
  }
  ~RunningServer() {
    server->stop();
    if (thread.joinable()) thread.join();
  }
  void start() {
    thread = std::thread([this] { server->run(); });
  }
  std::unique_ptr<Server> server;
  std::thread thread;
};

constexpr std::uint32_t kWaitSeconds = 20;

LinkOptions options_for(const std::string& instance, bool synchronous) {
  LinkOptions options;
  options.instance = instance;
  options.wait_seconds = synchronous ? kWaitSeconds : 0;
  options.ring_bytes = 1 << 20;
  options.planner = "/nonexistent/memoptd";
  return options;
}

// Numbers records as the recorder does, and waits at the check points.
struct Writer {
  shm::RingWriter ring;
  std::uint64_t sequence = 0;
  std::uint64_t point = shm::kFirstCheckPoint;

  void write(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      test::write_free(ring, ++sequence);
      link_control()->issued.store(sequence);
    }
  }
  // Up to the next check point, and waits there.
  bool to_check_point() {
    write(point - sequence);
    const bool waited = wait_processed(point, 10s);
    point = shm::next_check_point(point);
    return waited;
  }
};

TEST(LinkTest, RecordsArriveAndAPlanComesBackAtTheCheckPoint) {
  run([] {
    Script script;
    script.plan = [](std::uint64_t records) -> std::optional<std::vector<std::byte>> {
      if (records != 32) return std::nullopt;
      return PlanBuilder::small().bytes();
    };
    const std::string name = unique_name();
    RunningServer server(name, script);
    CHECK_THAT(!link_alive());
    // As the recorder does it: before there is a page to say it in.
    tell_recording(true);
    start_link(options_for(name, true));
    Writer writer;
    take_ring(&writer.ring);
    CHECK_THAT(link_control()->recording.load() == 1);
    CHECK_THAT(writer.ring.lane() == 0);
    CHECK_THAT(writer.to_check_point());
    CHECK_THAT(script.wait_seconds.load() == kWaitSeconds);
    CHECK_THAT(take_plan() == nullptr);
    CHECK_THAT(writer.to_check_point());
    const std::unique_ptr<const Plan> plan = take_plan();
    CHECK_THAT(plan != nullptr);
    CHECK_THAT(plan->generation == 1);
    CHECK_THAT(plan->lanes.size() == 2);
    CHECK_THAT(take_plan() == nullptr);
    plan_adopted(plan->generation);
    CHECK_THAT(writer.to_check_point());
    CHECK_THAT(script.adopted.load() == 1);
    CHECK_THAT(script.records.load() == 48);
    tell_recording(false);
    CHECK_THAT(link_control()->recording.load() == 0);
    const LinkStatus status = link_status();
    CHECK_THAT(status.connected && status.planner == getpid() && status.reason.empty());
    CHECK_THAT(status.note == "waiting for an iteration");
    CHECK_THAT(status.dropped == 0 && status.ring_bytes == 1 << 20 && status.lanes >= 1);
  });
}

// The first plan is refused for this reason, and the next one taken.
void expect_refused(const PlanBuilder& first, const char* reason) {
  run([&] {
    Script script;
    script.plan = [&](std::uint64_t records) -> std::optional<std::vector<std::byte>> {
      if (records > 32) return std::nullopt;
      return (records == 16 ? first : PlanBuilder::small()).bytes();
    };
    const std::string name = unique_name();
    RunningServer server(name, script);
    start_link(options_for(name, true));
    Writer writer;
    take_ring(&writer.ring);
    CHECK_THAT(writer.to_check_point());
    CHECK_THAT(script.wait_seconds.load() == kWaitSeconds);
    CHECK_THAT(take_plan() == nullptr);
    CHECK_THAT(link_status().refused_plans == 1);
    CHECK_THAT(link_status().reason.find(reason) != std::string::npos);
    CHECK_THAT(writer.to_check_point());
    CHECK_THAT(script.refused.load() == 1);
    const std::unique_ptr<const Plan> plan = take_plan();
    CHECK_THAT(plan != nullptr && plan->generation == 2);
    CHECK_THAT(link_status().connected);
  });
}

TEST(LinkTest, APlanThatFailsVerificationIsRefusedAndTheNextOneTaken) {
  PlanBuilder plan = PlanBuilder::small();
  plan.places[1].offset = 512;
  expect_refused(plan, "malloc 1 and malloc 0 are both there");
}

TEST(LinkTest, ThreadsGetLanesAndGiveThemBack) {
  run([] {
    Script script;
    const std::string name = unique_name();
    RunningServer server(name, script);
    LinkOptions options = options_for(name, false);
    options.ring_bytes = 128 << 10;
    shm::RingWriter ring;
    CHECK_THAT(!acquire_ring(&ring));
    start_link(options);
    std::vector<shm::RingWriter> rings(kMaxLanes);
    std::vector<std::thread> threads;
    std::atomic<int> missed{0};
    for (auto& own : rings) {
      threads.emplace_back([&own, &missed] {
        while (!acquire_ring(&own)) missed.fetch_add(1);
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::set<std::uint32_t> lanes;
    for (const auto& own : rings) lanes.insert(own.lane());
    CHECK_THAT(lanes.size() == kMaxLanes && *lanes.rbegin() == kMaxLanes - 1);
    CHECK_THAT(!acquire_ring(&ring));
    CHECK_THAT(link_status().reason.find("64 threads") != std::string::npos);
    for (auto& own : rings) {
      if (own.lane() != 17 && own.lane() != 40) continue;
      test::write_free(own, own.lane() == 17 ? 1 : 2);
      release_ring(own);
    }
    CHECK_THAT(acquire_ring(&ring) && ring.lane() == 17);
    test::write_free(ring, 3);  // behind the first, in the same ring
    CHECK_THAT(wait_until([&] { return script.records.load() == 3; }));
  });
}

TEST(LinkTest, WithoutAPlannerTheProgramGoesOnAndTheReasonIsSaid) {
  run([] {
    start_link(options_for(unique_name(), true));
    Writer writer;
    take_ring(&writer.ring);
    CHECK_THAT(wait_until([] { return !link_status().reason.empty(); }));
    CHECK_THAT(link_status().reason.find("planner /nonexistent/memoptd: No such file") != std::string::npos);
    CHECK_THAT(!writer.to_check_point());
    CHECK_THAT(wait_until([] { return !link_alive(); }));
    CHECK_THAT(link_status().given_up && !link_status().connected);
    writer.write(100'000);  // more than fits
    CHECK_THAT(link_status().dropped > 0);
  });
}

TEST(LinkTest, ShortMemoryGivesSmallerRings) {
  run([] {
    Script script;
    const std::string name = unique_name();
    g_largest_memory.store((256 << 10) + shm::kRingDataOffset);
    RunningServer server(name, script);
    start_link(options_for(name, true));
    Writer writer;
    take_ring(&writer.ring);
    CHECK_THAT(wait_until([] { return link_status().ring_bytes == 256 << 10; }));
    CHECK_THAT(writer.to_check_point());
  });
}

TEST(LinkTest, NoMemoryAtAllGivesUp) {
  for (const bool refuse_descriptors : {false, true}) {
    run([refuse_descriptors] {
      // Room for the control page, but for no ring; or no descriptor at all.
      g_largest_memory.store(4096);
      g_refuse_memory.store(refuse_descriptors);
      start_link(options_for(unique_name(), true));
      CHECK_THAT(wait_until([] { return !link_alive(); }));
      shm::RingWriter ring;
      CHECK_THAT(!acquire_ring(&ring));
      CHECK_THAT(link_status().given_up);
      CHECK_THAT(link_status().reason.find("no shared memory") != std::string::npos);
      CHECK_THAT(!wait_processed(16, 10s));
    });
  }
}

TEST(LinkTest, AForkedChildBeginsAnew) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer allows no threads in a child of a program with threads";
#endif
  run([] {
    Script script;
    const std::string name = unique_name();
    RunningServer server(name, script);
    start_link(options_for(name, true));
    Writer writer;
    take_ring(&writer.ring);
    CHECK_THAT(writer.to_check_point());
    const pid_t child = fork();
    if (child == 0) {
      forget_link_after_fork();
      check(link_control() == nullptr, "no control in the child");
      start_link(options_for(name, true));
      Writer own;
      check(acquire_ring(&own.ring), "a ring for the child");
      check(own.ring.lane() == 0, "the child's first lane");
      check(own.to_check_point(), "the child's check point");
      _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK_THAT(status == 0);
    CHECK_THAT(writer.to_check_point());
    CHECK_THAT(script.records.load() == 48);
  });
}

// No test here ends before a limit of that length is over.
constexpr auto kForEver = std::chrono::milliseconds(24h);

LinkOptions recorded_options(const std::string& instance) {
  LinkOptions options = options_for(instance, false);
  options.record_only = true;
  options.planner = MEMOPT_TEST_PLANNER;  // which must not be started
  return options;
}

TEST(LinkTest, ARecordedProgramWaitsAtItsEndUntilItsRecordsCanBeRead) {
  run([] {
    Script script;
    const std::string name = unique_name();
    RunningServer server(name, script, RunningServer::Begin::kLater);
    start_link(recorded_options(name));
    Writer writer;
    take_ring(&writer.ring);
    writer.write(5);
    CHECK_THAT(!link_status().connected);
    CHECK_THAT(!hand_over_recording(30ms));  // nobody answers
    std::thread later([&server] {
      std::this_thread::sleep_for(50ms);
      server.start();
    });
    CHECK_THAT(hand_over_recording(kForEver));
    CHECK_THAT(link_status().connected);
    later.join();
    // A second thread has a ring that is as new.
    Writer second;
    take_ring(&second.ring);
    CHECK_THAT(hand_over_recording(kForEver));
    second.sequence = writer.sequence;
    second.write(5);
    CHECK_THAT(wait_until([&] { return script.records.load() == 10; }));
  });
}

TEST(LinkTest, AProgramThatIsNotRecordedForAFileDoesNotWaitAtItsEnd) {
  run([] {
    CHECK_THAT(!hand_over_recording(kForEver));  // not started
    Script script;
    const std::string name = unique_name();
    RunningServer server(name, script, RunningServer::Begin::kLater);
    start_link(options_for(name, false));
    Writer writer;
    take_ring(&writer.ring);
    CHECK_THAT(!hand_over_recording(kForEver));
  });
}

TEST(LinkTest, NobodyIsWaitedForWhoNeverWas) {
  run([] {
    start_link(recorded_options(unique_name()));
    Writer writer;
    take_ring(&writer.ring);
    writer.write(5);
    CHECK_THAT(!hand_over_recording(kForEver));
    CHECK_THAT(wait_until([] { return !link_status().reason.empty(); }));
    CHECK_THAT(link_status().reason.find("no connection to the planner: Connection refused") != std::string::npos);
    CHECK_THAT(link_status().planner == 0);
  });
}

TEST(LinkTest, NobodyIsWaitedForWhoGoesAway) {
  run([] {
    Script script;
    const std::string name = unique_name();
    auto server = std::make_unique<RunningServer>(name, script, RunningServer::Begin::kLater);
    start_link(recorded_options(name));
    Writer writer;
    take_ring(&writer.ring);
    writer.write(5);
    std::thread later([&server] {
      std::this_thread::sleep_for(50ms);
      server.reset();  // with the connection in its queue
    });
    CHECK_THAT(!hand_over_recording(kForEver));
    later.join();
  });
}

TEST(LinkTest, AForkedChildDoesNotWaitForItsParentsRecorder) {
  run([] {
    Script script;
    const std::string name = unique_name();
    RunningServer server(name, script, RunningServer::Begin::kLater);
    start_link(recorded_options(name));
    Writer writer;
    take_ring(&writer.ring);
    for (const bool handled : {false, true}) {
      const pid_t child = fork();
      if (child == 0) {
        alarm(100);
        // Without its handlers: a child that a system call has made.
        if (handled) forget_link_after_fork();
        _exit(hand_over_recording(kForEver) ? 1 : 0);
      }
      int status = -1;
      waitpid(child, &status, 0);
      CHECK_THAT(status == 0);
    }
  });
}

std::atomic<int> g_child_signals{0};
void count_child(int) { g_child_signals.fetch_add(1); }

TEST(LinkTest, ASpawnedPlannerIsInvisibleAndReplacedWhenKilled) {
  run([] {
    signal(SIGCHLD, count_child);
    LinkOptions options = options_for(unique_name(), true);
    options.planner = MEMOPT_TEST_PLANNER;
    start_link(options);
    Writer writer;
    take_ring(&writer.ring);
    CHECK_THAT(writer.to_check_point());
    CHECK_THAT(writer.to_check_point());
    CHECK_THAT(take_plan() != nullptr);
    const pid_t first = link_status().planner;
    CHECK_THAT(first > 0 && first != getpid());
#ifndef MEMOPT_SANITIZED
    CHECK_THAT(waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD);
    CHECK_THAT(g_child_signals.load() == 0);
#endif
    for (int death = 0; death < 2; ++death) {
      const pid_t planner = link_status().planner;
      CHECK_THAT(kill(planner, SIGKILL) == 0);
      CHECK_THAT(wait_until([planner] { return link_status().connected && link_status().planner != planner; }));
      CHECK_THAT(writer.to_check_point());
      CHECK_THAT(link_status().reason.empty());
    }
    // The new planners have seen a hole, and number their plans behind the first.
    CHECK_THAT(link_status().note == "records are missing");
    const std::unique_ptr<const Plan> plan = take_plan();
    CHECK_THAT(plan != nullptr);
    kill(link_status().planner, SIGTERM);
  });
}

TEST(LinkTest, PlannersThatDieAllTheTimeAreGivenUp) {
  run([] {
    LinkOptions options = options_for(unique_name(), false);
    options.planner = MEMOPT_TEST_PLANNER;
    start_link(options);
    shm::RingWriter ring;
    take_ring(&ring);
    CHECK_THAT(wait_until([] {
      const LinkStatus status = link_status();
      if (status.connected && status.planner > 1) kill(status.planner, SIGKILL);
      return status.given_up;
    }));
    CHECK_THAT(!link_alive());
    CHECK_THAT(test::write_free(ring, 1));
  });
}

std::set<std::string> files_in(const char* folder) {
  std::set<std::string> names;
  if (DIR* const open = opendir(folder)) {
    while (const dirent* const entry = readdir(open)) names.insert(entry->d_name);
    closedir(open);
  }
  return names;
}

TEST(LinkTest, NothingIsLeftInSharedMemoryFolders) {
  const std::set<std::string> before = files_in("/dev/shm");
  run([] {
    LinkOptions options = options_for(unique_name(), true);
    options.planner = MEMOPT_TEST_PLANNER;
    start_link(options);
    Writer writer;
    take_ring(&writer.ring);
    CHECK_THAT(writer.to_check_point());
    kill(link_status().planner, SIGKILL);
  });
  for (const std::string& name : files_in("/dev/shm")) {
    EXPECT_TRUE(before.contains(name) || name.find("memopt") == std::string::npos) << name;
  }
}

}  // namespace
}  // namespace memopt::agent
