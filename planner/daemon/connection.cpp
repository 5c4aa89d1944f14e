#include "planner/daemon/connection.h"

#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "planner/program.h"
#include "shm/plan.h"

namespace memopt::planner {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr milliseconds kGreetingTimeout{5000};
constexpr milliseconds kSendTimeout{1000};
// Between looks into the rings: short while records come, longer each time that there are none. A ring of the default
// size takes 50 ms to fill at 5 million records per second, so that nothing is lost at the beginning of a burst.
constexpr microseconds kShortSleep{1000};
constexpr microseconds kLongSleep{20'000};
constexpr microseconds kFollowingSleep{50'000};  // the program says that it records nothing
// A program that waits for every answer.
constexpr microseconds kShortSynchronousSleep{50};
constexpr microseconds kLongSynchronousSleep{2000};

// Added to that of the thread of a program that does not wait: it has the processors first.
constexpr int kNiceness = 10;

// Text of at most `size` bytes that ends at its NUL, if it has one.
template <std::size_t size>
std::string text_of(const char (&text)[size]) {
  return std::string(text, strnlen(text, size));
}

}  // namespace

Connection::Connection(shm::Descriptor socket, pid_t peer, int stop, SinkFactory make_sink, Log log)
    : socket_(std::move(socket)), stop_(stop), make_sink_(std::move(make_sink)), log_(std::move(log)) {
  program_.pid = peer;
}

Connection::~Connection() = default;

bool Connection::refuse(std::string_view why) {
  log_("program " + std::to_string(program_.pid) + ": refused: " + std::string(why));
  shm::send_text(socket_.get(), shm::MessageKind::kRefused, why);
  return false;
}

bool Connection::send(shm::MessageKind kind, std::span<const std::byte> body, int descriptor) {
  if (broken_) return false;
  control_->sent.store(++sent_, std::memory_order_release);
  const auto deadline = Clock::now() + kSendTimeout;
  for (;;) {
    const int failure = shm::send_message(socket_.get(), kind, body, descriptor);
    if (failure == 0) return true;
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now()).count();
    if (failure != EAGAIN || left <= 0) {
      // A program that has ended meanwhile is noticed, and told, where it is read from.
      if (failure != EPIPE && failure != ECONNRESET)
        log_("program " + std::to_string(program_.pid) + ": a message could not be sent: " + std::strerror(failure));
      broken_ = true;
      return false;
    }
    pollfd entry{socket_.get(), POLLOUT, 0};
    poll(&entry, 1, static_cast<int>(left));
  }
}

void Connection::send_plan(std::vector<std::byte> plan) {
  if (plan.size() < sizeof(shm::PlanHeader) || plan.size() > shm::kMaxPlanBytes) {
    log_("program " + std::to_string(program_.pid) + ": a plan of " + std::to_string(plan.size()) +
         " bytes is not sent");
    return;
  }
  // The only place that numbers plans. The agent may have plans of an earlier planner: each gets a number of its own.
  generation_ = std::max({generation_, control_->adopted_generation.load(std::memory_order_relaxed),
                          control_->refused_generation.load(std::memory_order_relaxed)}) +
                1;
  set_generation(plan, generation_);
  const shm::Descriptor memory = shm::create_sealed_copy("memopt-plan", plan);
  if (!memory) {
    log_("program " + std::to_string(program_.pid) + ": no memory for a plan of " + std::to_string(plan.size()) +
         " bytes: " + std::strerror(errno));
    return;
  }
  const shm::PlanBody body{generation_, plan.size()};
  if (send(shm::MessageKind::kPlan, std::as_bytes(std::span(&body, 1)), memory.get())) {
    log_("program " + std::to_string(program_.pid) + ": plan " + std::to_string(generation_) + " sent, " +
         std::to_string(plan.size()) + " bytes, at record " + std::to_string(intake_->next() - 1));
    sink_->sent(generation_);
  }
}

void Connection::send_note(std::string_view note) {
  note = note.substr(0, shm::kMaxMessageBytes - sizeof(shm::MessageHeader));
  send(shm::MessageKind::kNote, std::as_bytes(std::span(note)));
}

// Sleeps until a message or the end of the time. False if interrupted by nothing of ours: the poll failed.
bool Connection::wait(std::chrono::nanoseconds longest, bool* stopped) {
  pollfd entries[] = {{socket_.get(), POLLIN, 0}, {stop_, POLLIN, 0}};
  const timespec time{static_cast<time_t>(longest.count() / 1'000'000'000), longest.count() % 1'000'000'000};
  const int ready = ppoll(entries, 2, &time, nullptr);
  *stopped = ready > 0 && entries[1].revents != 0;
  return ready >= 0 || errno == EINTR;
}

// The first message: who is there, and the control page.
bool Connection::greet() {
  const auto deadline = Clock::now() + kGreetingTimeout;
  while (received_.state != shm::ReceivedMessage::State::kMessage) {
    bool stopped = false;
    const auto left = deadline - Clock::now();
    if (left.count() <= 0 || !wait(left, &stopped) || stopped) return false;
    shm::receive_message(socket_.get(), received_);
    if (received_.state == shm::ReceivedMessage::State::kClosed) return false;
    if (received_.state == shm::ReceivedMessage::State::kMalformed) return refuse("a malformed message");
  }
  shm::HelloBody hello{};
  // The version comes first in the body and stays there, so that any other version can be told.
  if (received_.kind == shm::MessageKind::kHello && received_.body_bytes >= sizeof(hello.wire_version)) {
    std::memcpy(&hello.wire_version, received_.body().data(), sizeof(hello.wire_version));
    if (hello.wire_version != shm::kWireVersion) {
      return refuse("wire version " + std::to_string(hello.wire_version) + "; this planner speaks " +
                    std::to_string(shm::kWireVersion));
    }
  }
  if (received_.kind != shm::MessageKind::kHello || !received_.read(&hello)) return refuse("expected a hello first");
  std::string why;
  control_memory_ = shm::SharedMapping::accept(received_.descriptor.get(), shm::kControlBytes, shm::kSealsOfMemory,
                                               shm::SharedMapping::Access::kReadWrite, &why);
  received_.descriptor.reset();
  if (!control_memory_) return refuse("control page: " + why);
  control_ = static_cast<shm::Control*>(control_memory_.data());
  if (control_->magic != shm::kControlMagic || control_->wire_version != shm::kWireVersion) {
    return refuse("control page: not one of wire version " + std::to_string(shm::kWireVersion));
  }
  program_.pid_inside = hello.pid;
  program_.synchronous = (hello.flags & shm::kSynchronous) != 0;
  program_.wait_seconds = shm::wait_of(hello.flags);
  program_.record_only = (hello.flags & shm::kRecordOnly) != 0;
  program_.chunk_bytes = shm::is_chunk_size(hello.chunk_bytes) ? hello.chunk_bytes : 0;
  program_.caching_is_off = (hello.flags & shm::kCachingIsOff) != 0;
  program_.version = text_of(hello.version);
  program_.path = text_of(hello.program);
  // Of this thread and those that it starts, on Linux. Where it is not permitted (a seccomp profile) it works as it is.
  if (!program_.synchronous) setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + kNiceness);
  why = "no reason given";
  sink_ = make_sink_(program_, &why);
  if (sink_ == nullptr) return refuse(why);
  intake_ = std::make_unique<Intake>(*control_, program_.synchronous, *sink_, static_cast<Outbox&>(*this));
  // A program that is gone already has perhaps left rings to be read.
  send(shm::MessageKind::kWelcome, {});
  return true;
}

bool Connection::accept_ring() {
  shm::RingBody ring{};
  if (!received_.read(&ring) || !received_.descriptor) return refuse("a malformed ring message");
  if (ring.bytes < shm::kRingDataOffset + shm::kMinRingCapacity ||
      ring.bytes > shm::kRingDataOffset + shm::kMaxRingCapacity) {
    return refuse("a ring of " + std::to_string(ring.bytes) + " bytes");
  }
  std::string why;
  shm::SharedMapping memory = shm::SharedMapping::accept(received_.descriptor.get(), ring.bytes, shm::kSealsOfMemory,
                                                         shm::SharedMapping::Access::kReadWrite, &why);
  received_.descriptor.reset();
  if (!memory || !intake_->add_ring(std::move(memory), ring.lane, &why)) return refuse("ring: " + why);
  return true;
}

bool Connection::accept_swap_terms() {
  shm::SwapTermsBody terms{};
  if (!received_.read(&terms)) return refuse("a malformed message of swap terms");
  if (!shm::is_valid(terms)) {
    return refuse(
        "swap terms: expected rates of 1e-6 to 2^20 bytes a nanosecond, latencies of at most a second, and a chunk "
        "that "
        "is a power of two from 512 bytes to 1 GiB");
  }
  sink_->swap_on(terms);
  return true;
}

// False: the connection is at its end.
bool Connection::receive_all() {
  for (;;) {
    shm::receive_message(socket_.get(), received_);
    switch (received_.state) {
      case shm::ReceivedMessage::State::kNothing:
        return true;
      case shm::ReceivedMessage::State::kClosed:
        return false;
      case shm::ReceivedMessage::State::kMalformed:
        return refuse("a malformed message");
      case shm::ReceivedMessage::State::kMessage:
        if (received_.kind == shm::MessageKind::kRing) {
          if (!accept_ring()) return false;
        } else if (received_.kind == shm::MessageKind::kSwapTerms) {
          if (!accept_swap_terms()) return false;
        } else {
          return refuse("a message of an unknown kind");
        }
    }
  }
}

void Connection::serve() {
  const microseconds shortest = program_.synchronous ? kShortSynchronousSleep : kShortSleep;
  microseconds sleep = shortest;
  bool idle = false;
  for (;;) {
    bool stopped = false;
    if (!wait(sleep, &stopped) || !receive_all() || stopped) return;
    control_->heartbeat.fetch_add(1, std::memory_order_relaxed);
    const Intake::Progress progress = intake_->step(Clock::now());
    if (broken_) {
      receive_all();
      return;
    }
    if (!program_.synchronous) {
      if (std::optional<std::vector<std::byte>> plan = sink_->improved()) send_plan(*std::move(plan));
    }
    switch (progress) {
      case Intake::Progress::kCorrupt:
        refuse(intake_->corruption());
        return;
      case Intake::Progress::kMore:
        sleep = microseconds(0);
        idle = false;
        break;
      case Intake::Progress::kSome:
        sleep = shortest;
        idle = false;
        break;
      case Intake::Progress::kNothing: {
        if (!program_.synchronous) intake_->pass_note();
        const bool following = control_->recording.load(std::memory_order_relaxed) == 0;
        const microseconds longest = program_.synchronous ? kLongSynchronousSleep
                                     : following          ? kFollowingSleep
                                                          : kLongSleep;
        if (sleep >= longest && !std::exchange(idle, true)) sink_->idle();
        sleep = std::min(std::max(sleep * 2, shortest), longest);
        break;
      }
    }
  }
}

void Connection::run() {
  if (!greet()) return;
  log_("program " + std::to_string(program_.pid) + ": connected: " + program_.path);
  serve();
  if (intake_->corruption().empty()) intake_->finish();
  // Finishing reads on, and may find it too.
  if (intake_->corruption().empty()) {
    sink_->closed();
  } else {
    sink_->broken(intake_->corruption());
  }
  log_("program " + std::to_string(program_.pid) + ": gone after " + std::to_string(intake_->next() - 1) + " records" +
       (intake_->late() == 0 ? "" : ", " + std::to_string(intake_->late()) + " came late"));
}

}  // namespace memopt::planner
