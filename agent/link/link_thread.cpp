#include "agent/link/link_thread.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "agent/link/link.h"
#include "agent/link/planner_process.h"
#include "agent/process/frameworks.h"
#include "agent/process/log.h"
#include "agent/process/own_descriptors.h"
#include "agent/process/spin_lock.h"
#include "shm/message_socket.h"
#include "shm/sealed_memory.h"

namespace memopt::agent {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Nothing can wake this thread but a message: a thread that takes the spare ring cannot reach our descriptors. So it
// looks now and then whether another is needed.
constexpr milliseconds kLook{20};
constexpr milliseconds kConnectRetry{5};     // while a planner is starting
constexpr milliseconds kStartTimeout{5000};  // from starting a planner until it listens
constexpr milliseconds kGreetingTimeout{5000};
constexpr milliseconds kPauseBetweenTries{2000};
constexpr milliseconds kClockEvery{1000};
// So many planners may be lost or fail to start within a minute.
constexpr std::size_t kMaxLosses = 3;
constexpr milliseconds kLossWindow{60'000};
constexpr int kMaxClosedGreetings = 20;
constexpr int kForeignPeer = -1;  // beside errno's values

class LinkThread {
 public:
  explicit LinkThread(const LinkOptions& options) : options_(options), ring_capacity_(options.ring_bytes) {}
  void run();

 private:
  enum class Step { kGoOn, kLost, kEnd };

  bool make_control();
  void make_lanes();
  Step connect();
  bool try_connect(int* failure);
  Step start();
  Step greet();
  bool send_terms();
  bool send_lanes();
  Step receive_all();
  void receive_plan();
  void refresh_clock();
  bool lost(const std::string& why);
  void sleep(milliseconds time);

  const LinkOptions& options_;
  LinkState& state_ = link_state();
  shm::Control* control_ = nullptr;
  shm::ReceivedMessage received_;
  bool own_descriptors_ = false;
  std::size_t ring_capacity_;
  std::string lane_trouble_;
  std::array<Clock::time_point, kMaxLosses> losses_{};
  std::size_t loss_count_ = 0;
  Clock::time_point clock_due_{};
  int closed_greetings_ = 0;
  std::uint64_t terms_sent_ = 0;  // on this connection: LinkState::terms_told
  std::string refusal_;           // by the planner, in its words
};

bool LinkThread::make_control() {
  if (!state_.control_memory.create("memopt-control", shm::kControlBytes, own_descriptors_)) return false;
  control_ = new (state_.control_memory.data()) shm::Control{};
  control_->magic = shm::kControlMagic;
  control_->wire_version = shm::kWireVersion;
  control_->bytes = sizeof(shm::Control);
  refresh_clock();
  state_.control.store(control_);
  // Who switches recording on or off meanwhile sees the page, or is seen here.
  for (bool on = !state_.recording.load(); on != state_.recording.load();) {
    on = state_.recording.load();
    control_->recording.store(on ? 1 : 0, std::memory_order_release);
  }
  return true;
}

void LinkThread::make_lanes() {
  if (!lane_trouble_.empty()) return;
  const std::size_t wanted = ring_capacity_;
  if (!state_.lanes.make(&ring_capacity_, own_descriptors_, &lane_trouble_)) {
    state_.lanes.close();
    state_.set_reason(lane_trouble_.c_str());
    log(LogLevel::kWarn, "{}", lane_trouble_);
  } else if (ring_capacity_ != wanted) {
    log(LogLevel::kInfo, "shared memory is short: rings of {} bytes instead of {}", ring_capacity_, wanted);
  }
  state_.ring_bytes.store(ring_capacity_, std::memory_order_relaxed);
}

// Two words of one instant; a reader asks twice.
void LinkThread::refresh_clock() {
  const auto now = Clock::now();
  if (now < clock_due_) return;
  clock_due_ = now + kClockEvery;
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  control_->clock_ticks.store(__builtin_ia32_rdtsc(), std::memory_order_release);
  control_->clock_nanoseconds.store(
      static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec),
      std::memory_order_release);
}

// Waits for a message or until the time is over, and does what is due.
void LinkThread::sleep(milliseconds time) {
  pollfd entry{state_.socket.get(), POLLIN, 0};
  poll(&entry, entry.fd < 0 ? 0 : 1, static_cast<int>(time.count()));
  make_lanes();
  refresh_clock();
}

bool LinkThread::try_connect(int* failure) {
  const shm::AbstractAddress address(shm::planner_socket_name(geteuid(), options_.instance));
  shm::Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!own_descriptors_) socket.move_up(kLowestOwnDescriptor);
  if (!socket || ::connect(socket.get(), address.get(), address.length) != 0) {
    *failure = errno;
    return false;
  }
  ucred peer{};
  if (!shm::read_peer(socket.get(), &peer) || peer.uid != geteuid()) {
    *failure = kForeignPeer;
    return false;
  }
  state_.planner.store(peer.pid, std::memory_order_release);
  state_.socket.set(socket.release());
  return true;
}

// Connected, and the planner has heard who we are and what rings there are.
LinkThread::Step LinkThread::connect() {
  int failure = 0;
  // A planner writes no recordings: if whoever records is gone, nobody takes its place.
  if (!try_connect(&failure) && failure == ECONNREFUSED && !options_.record_only) {
    const Step started = start();
    if (started != Step::kGoOn) return started;
    const auto deadline = Clock::now() + kStartTimeout;
    while (!try_connect(&failure) && (failure == ECONNREFUSED || failure == EAGAIN) && Clock::now() < deadline) {
      sleep(kConnectRetry);
    }
  }
  if (state_.socket.get() >= 0) return greet();
  std::string why = fmt::format("no connection to the planner: {}", std::strerror(failure));
  if (failure == kForeignPeer) {
    why = fmt::format("the socket @{} belongs to another user", shm::planner_socket_name(geteuid(), options_.instance));
  }
  return lost(why) ? Step::kLost : Step::kEnd;
}

LinkThread::Step LinkThread::start() {
  std::string why;
  const std::string path = find_planner(options_.planner, &why);
  if (!path.empty()) {
    const int failure = start_planner(path, options_.instance);
    if (failure == 0) {
      log(LogLevel::kDebug, "started {}", path);
      return Step::kGoOn;
    }
    why = fmt::format("planner {}: {}", path, std::strerror(failure));
  }
  return lost(why) ? Step::kLost : Step::kEnd;
}

LinkThread::Step LinkThread::greet() {
  // Before anything is sent: messages of this connection are counted from here on.
  control_->sent.store(0, std::memory_order_release);
  state_.handled.store(0, std::memory_order_release);
  state_.lanes.send_all_again();
  shm::HelloBody hello{};
  hello.wire_version = shm::kWireVersion;
  hello.flags = (options_.wait_seconds != 0 ? shm::kSynchronous | options_.wait_seconds << shm::kWaitShift : 0) |
                (options_.record_only ? shm::kRecordOnly : 0);
  for (const shm::FrameworkStatus& framework : loaded_frameworks()) {
    if (is_pytorch_without_caching(framework)) hello.flags |= shm::kCachingIsOff;
  }
  hello.pid = getpid();
  hello.chunk_bytes = options_.chunk_bytes;
  std::strncpy(hello.version, MEMOPT_VERSION, sizeof(hello.version) - 1);
  char path[sizeof(hello.program)] = {};
  if (readlink("/proc/self/exe", path, sizeof(path) - 1) > 0) std::memcpy(hello.program, path, sizeof(path));
  refusal_.clear();
  int failure = state_.control_memory.intact() ? shm::send_message(state_.socket.get(), shm::MessageKind::kHello, hello,
                                                                   state_.control_memory.get())
                                               : EBADF;
  terms_sent_ = 0;
  const auto deadline = Clock::now() + kGreetingTimeout;
  while (failure == 0 && Clock::now() < deadline) {
    if (!send_terms() || !send_lanes()) break;
    const Step step = receive_all();
    if (step == Step::kLost) break;
    if (state_.phase.load(std::memory_order_relaxed) == LinkPhase::kConnected) {
      closed_greetings_ = 0;
      return Step::kGoOn;
    }
    sleep(kLook);
  }
  // A planner that is just leaving, or was killed, may still be connected to for a moment: not one lost more.
  if (refusal_.empty() && ++closed_greetings_ < kMaxClosedGreetings) {
    state_.socket.close();
    sleep(kConnectRetry);
    return connect();
  }
  std::string why = failure != 0        ? fmt::format("no greeting to the planner: {}", std::strerror(failure))
                    : !refusal_.empty() ? "the planner refused: " + refusal_
                                        : std::string("the planner closed the connection without an answer");
  return lost(why) ? Step::kLost : Step::kEnd;
}

// Before the rings, as far as they are known then: the first records are planned for them.
bool LinkThread::send_terms() {
  if (state_.terms_told.load(std::memory_order_acquire) == terms_sent_) return true;
  if (!state_.socket.intact()) return false;
  shm::SwapTermsBody terms{};
  std::uint64_t told = 0;
  {
    const LockGuard guard(state_.terms_lock);
    terms = state_.terms;
    told = state_.terms_told.load(std::memory_order_relaxed);
  }
  const int failure = shm::send_message(state_.socket.get(), shm::MessageKind::kSwapTerms, terms);
  if (failure == EAGAIN) return true;  // at the next look
  if (failure == 0) terms_sent_ = told;
  return failure == 0;
}

bool LinkThread::send_lanes() {
  return state_.lanes.send_new([this](std::uint32_t lane, std::size_t bytes, int descriptor) {
    if (!state_.socket.intact()) return false;
    const shm::RingBody body{lane, 0, bytes};
    const auto deadline = Clock::now() + kGreetingTimeout;
    int failure;
    while ((failure = shm::send_message(state_.socket.get(), shm::MessageKind::kRing, body, descriptor)) == EAGAIN &&
           Clock::now() < deadline) {
      poll(nullptr, 0, 1);
    }
    // ETOOMANYREFS: more descriptors are on their way than this user may have open. They arrive, and then there is
    // room.
    if (failure != 0) log(LogLevel::kInfo, "ring {} could not be sent: {}", lane, std::strerror(failure));
    return failure == 0;
  });
}

// A bad plan costs nothing but its own use: the last one stays valid.
void LinkThread::receive_plan() {
  shm::PlanBody body{};
  std::string why;
  if (!received_.read(&body) || !received_.descriptor) {
    why = "a malformed message";
  } else if (body.bytes > shm::kMaxPlanBytes) {
    why = fmt::format("{} bytes: expected at most {}", body.bytes, shm::kMaxPlanBytes);
  } else {
    const shm::SharedMapping memory = shm::SharedMapping::accept(
        received_.descriptor.get(), body.bytes, shm::kSealsOfPlan, shm::SharedMapping::Access::kReadOnly, &why);
    received_.descriptor.reset();
    std::unique_ptr<const Plan> plan;
    if (memory) plan = parse_plan(memory.bytes(), &why);
    if (plan != nullptr && plan->generation == body.generation) {
      log(LogLevel::kDebug, "plan {} received: {} lanes, {} mallocs, {} bytes", plan->generation, plan->lanes.size(),
          plan->mallocs.size(), plan->slab_bytes);
      // Release pairs with the acquire in take_plan.
      delete state_.plan.exchange(plan.release(), std::memory_order_acq_rel);
      return;
    }
    if (plan != nullptr) why = fmt::format("generation {}: expected {}", plan->generation, body.generation);
  }
  state_.refused_plans.fetch_add(1, std::memory_order_relaxed);
  plan_refused(body.generation);
  state_.set_reason(fmt::format("plan {} was refused: {}", body.generation, why).c_str());
  log(LogLevel::kInfo, "plan {} was refused: {}", body.generation, why);
}

LinkThread::Step LinkThread::receive_all() {
  for (;;) {
    if (!state_.socket.intact()) return Step::kLost;
    shm::receive_message(state_.socket.get(), received_);
    if (received_.state == shm::ReceivedMessage::State::kNothing) return Step::kGoOn;
    if (received_.state != shm::ReceivedMessage::State::kMessage) return Step::kLost;
    switch (received_.kind) {
      case shm::MessageKind::kWelcome:
        state_.set_reason(lane_trouble_.c_str());
        state_.phase.store(LinkPhase::kConnected, std::memory_order_release);
        log(LogLevel::kDebug, "connected to planner {}", state_.planner.load());
        break;
      case shm::MessageKind::kRefused:
        refusal_ = std::string(received_.text());
        return Step::kLost;
      case shm::MessageKind::kNote:
        state_.set_text(state_.note, std::string(received_.text()).c_str());
        log(LogLevel::kDebug, "the planner: {}", received_.text());
        break;
      case shm::MessageKind::kPlan:
        receive_plan();
        break;
      default:
        return Step::kLost;
    }
    received_.descriptor.reset();
    // Release: whoever sees the count finds what the message brought.
    state_.handled.fetch_add(1, std::memory_order_release);
  }
}

// Notes the loss of a planner. False: that was one too many.
bool LinkThread::lost(const std::string& why) {
  state_.socket.close();
  const auto now = Clock::now();
  Clock::time_point& oldest = losses_[loss_count_++ % kMaxLosses];
  const bool too_many = loss_count_ > kMaxLosses && now - oldest < kLossWindow;
  oldest = now;
  if (too_many) {
    state_.give_up(why.c_str());
  } else {
    state_.set_reason(why.c_str());
    log(LogLevel::kInfo, "{}", why);
    state_.phase.store(LinkPhase::kLost, std::memory_order_release);
  }
  // Behind the phase: link_status() says of no connection that it has no planner.
  state_.planner.store(0);
  return !too_many;
}

void LinkThread::run() {
  own_descriptors_ = take_own_descriptors();
  state_.shared_descriptors.store(!own_descriptors_);
  if (!make_control()) {
    state_.give_up(fmt::format("no shared memory for the channel to the planner: {}", std::strerror(errno)).c_str());
    return;
  }
  make_lanes();
  // Without any ring nothing can be recorded.
  if (state_.lanes.count() == 0) {
    state_.give_up(lane_trouble_.c_str());
    return;
  }
  for (;;) {
    const Step connected = connect();
    if (connected == Step::kEnd) return;
    if (connected == Step::kGoOn) {
      while (send_terms() && send_lanes() && receive_all() == Step::kGoOn) sleep(kLook);
      if (!lost(refusal_.empty() ? "the planner went away" : "the planner closed the connection: " + refusal_)) return;
      continue;  // another at once: the program is not to lose more than it must
    }
    const auto deadline = Clock::now() + kPauseBetweenTries;
    while (Clock::now() < deadline) sleep(kLook);
  }
}

}  // namespace

void* run_link(void* options) {
  pthread_setname_np(pthread_self(), "memopt-link");
  const auto* const own = static_cast<const LinkOptions*>(options);
  try {
    LinkThread(*own).run();
  } catch (const std::exception&) {
    link_state().socket.close();
    link_state().give_up("out of memory in the link to the planner");
  }
  return nullptr;
}

}  // namespace memopt::agent
