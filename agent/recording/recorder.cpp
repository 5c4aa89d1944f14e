#include "agent/recording/recorder.h"

#include <pthread.h>
#include <time.h>
#include <x86intrin.h>

#include <cerrno>
#include <chrono>

#include "agent/link/link.h"
#include "agent/process/options.h"
#include "agent/recording/call_stacks.h"
#include "agent/recording/python_stacks.h"
#include "shm/channel.h"
#include "shm/ring.h"

namespace memopt::agent {

constinit std::uint32_t recorder_state = 0;

namespace {

struct ThreadState {
  shm::RingWriter ring;
  std::uint32_t lane = kNoLane;
  // Records to go before a thread without a ring asks for one again.
  std::uint32_t patience = 0;
};
constexpr std::uint32_t kPatience = 4096;

// Initial-exec, so that reading it calls nothing. The ring is given back by the key's destructor.
[[gnu::tls_model("initial-exec")]] constinit thread_local ThreadState t_state;

alignas(64) constinit std::uint64_t g_sequence = 0;
alignas(64) constinit std::uint64_t g_next_check_point = shm::kFirstCheckPoint;
constinit std::uint32_t g_wait_seconds = 0;  // for the planner, at most; 0: it is not waited for
constinit std::uint32_t g_recordings = 0;

constinit pthread_once_t g_key_once = PTHREAD_ONCE_INIT;
constinit pthread_key_t g_key = 0;
constinit bool g_has_key = false;

// At the end of a thread. Should a later destructor make another call, it gets a ring again.
void release_thread(void*) {
  if (!t_state.ring) return;
  const shm::RingWriter ring = t_state.ring;
  t_state = ThreadState();
  release_ring(ring);
}

void make_key() { g_has_key = pthread_key_create(&g_key, release_thread) == 0; }

std::uint64_t monotonic_nanoseconds() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

// Readers of two words of different age are off by the little that happened in between.
void refresh_clock(shm::Control& control) noexcept {
  control.clock_ticks.store(__rdtsc(), std::memory_order_relaxed);
  control.clock_nanoseconds.store(monotonic_nanoseconds(), std::memory_order_relaxed);
}

[[gnu::cold, gnu::noinline]] void pass_check_point(std::uint64_t sequence) noexcept {
  std::uint64_t next = __atomic_load_n(&g_next_check_point, __ATOMIC_RELAXED);
  std::uint64_t later = next;
  do {
    if (sequence < next) return;  // another thread passed it
    for (later = next; later <= sequence; later = shm::next_check_point(later)) {
    }
  } while (!__atomic_compare_exchange_n(&g_next_check_point, &next, later, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  const int kept = errno;
  if (shm::Control* const control = link_control()) {
    std::uint64_t issued = control->issued.load(std::memory_order_relaxed);
    while (issued < sequence && !control->issued.compare_exchange_weak(issued, sequence, std::memory_order_release)) {
    }
    refresh_clock(*control);
  }
  if (g_wait_seconds != 0) wait_processed(sequence, std::chrono::seconds(g_wait_seconds));
  errno = kept;
}

// Header and body in place; `write` fills what follows the header.
template <typename Write>
std::uint64_t emit(shm::RecordKind kind, std::uint8_t flags, std::uint32_t aux, std::size_t body_bytes,
                   Write&& write) noexcept;

[[gnu::cold, gnu::noinline]] bool get_ring(ThreadState& state) noexcept {
  if (state.patience != 0) {
    --state.patience;
    return false;
  }
  const int kept = errno;
  pthread_once(&g_key_once, make_key);
  // Without a key nothing would give the ring back when the thread ends.
  const bool got = g_has_key && pthread_setspecific(g_key, &t_state) == 0 && acquire_ring(&state.ring);
  errno = kept;
  if (!got) {
    state.ring = shm::RingWriter();
    state.patience = kPatience;
    return false;
  }
  state.lane = state.ring.lane();
  emit(shm::RecordKind::kClock, 0, 0, sizeof(shm::ClockBody), [](std::byte* body) {
    const shm::ClockBody clock{monotonic_nanoseconds()};
    std::memcpy(body, &clock, sizeof(clock));
  });
  return true;
}

template <typename Write>
std::uint64_t emit(shm::RecordKind kind, std::uint8_t flags, std::uint32_t aux, std::size_t body_bytes,
                   Write&& write) noexcept {
  if (!recording()) return 0;
  ThreadState& state = t_state;
  const bool has_ring = static_cast<bool>(state.ring) || get_ring(state);
  const std::uint64_t sequence = __atomic_add_fetch(&g_sequence, 1, __ATOMIC_RELAXED);
  const std::size_t bytes = sizeof(shm::RecordHeader) + body_bytes;
  // The number of a record that is lost is used up: the reader sees the hole.
  std::byte* const place = has_ring ? state.ring.reserve(bytes) : nullptr;
  if (place != nullptr) [[likely]] {
    const shm::RecordHeader header{
        static_cast<std::uint8_t>(kind), flags, static_cast<std::uint16_t>(bytes / 8), aux, sequence, __rdtsc()};
    std::memcpy(place, &header, sizeof(header));
    write(place + sizeof(header));
    state.ring.commit(bytes);
  }
  if (sequence >= __atomic_load_n(&g_next_check_point, __ATOMIC_RELAXED)) [[unlikely]] {
    pass_check_point(sequence);
  }
  return place != nullptr ? sequence : 0;
}

template <typename Body>
std::uint64_t emit_body(shm::RecordKind kind, std::uint8_t flags, std::uint32_t aux, const Body& body) noexcept {
  return emit(kind, flags, aux, sizeof(body), [&](std::byte* to) { std::memcpy(to, &body, sizeof(body)); });
}

void set_recording(bool on) noexcept {
  if (shm::Control* const control = link_control()) {
    refresh_clock(*control);
    control->issued.store(__atomic_load_n(&g_sequence, __ATOMIC_RELAXED), std::memory_order_release);
  }
  tell_recording(on);
}

}  // namespace

void start_recording(bool full) noexcept {
  g_wait_seconds = shm::wait_seconds(options().value(shm::OptionId::kSyncPlan));
  set_recording(true);
  const std::uint32_t number = __atomic_add_fetch(&g_recordings, 1, __ATOMIC_RELAXED);
  // Release: a thread that sees it on sees what was prepared.
  __atomic_store_n(&recorder_state, number * kRecorderNext + (full ? kRecorderFull : 0) + 1, __ATOMIC_RELEASE);
}

void stop_recording() noexcept {
  __atomic_store_n(&recorder_state, 0, __ATOMIC_RELEASE);
  set_recording(false);
}

std::uint64_t stream_number(StreamName stream) noexcept {
  const auto handle = reinterpret_cast<std::uint64_t>(stream.handle);
  constexpr std::uint64_t kPerThread = std::uint64_t{1} << 63;
  if (stream.handle == CU_STREAM_PER_THREAD || (stream.per_thread && stream.handle == nullptr)) {
    return kPerThread | current_lane();
  }
  return stream.handle == CU_STREAM_LEGACY ? 0 : handle;
}

std::uint32_t current_lane() noexcept { return t_state.lane; }

void claim_lane() noexcept {
  if (!t_state.ring && link_control() != nullptr) get_ring(t_state);
}

std::uint64_t last_sequence() noexcept { return __atomic_load_n(&g_sequence, __ATOMIC_RELAXED); }

std::uint64_t record_malloc(const shm::MallocBody& body, std::uint8_t flags) noexcept {
  if (!recording()) return 0;
  shm::MallocBody whole = body;
  whole.stack = call_stack(reinterpret_cast<void*>(body.return_address));
  if (recording_fully()) record_python_stack();
  return emit_body(shm::RecordKind::kMalloc, flags, 0, whole);
}

std::uint64_t record_free(const shm::FreeBody& body, std::uint8_t flags) noexcept {
  return emit_body(shm::RecordKind::kFree, flags, 0, body);
}

std::uint64_t record_launch(std::uint32_t function, const shm::LaunchBody& body,
                            std::span<const std::uint64_t> accesses, std::uint8_t flags) noexcept {
  return emit(shm::RecordKind::kLaunch, flags, function, sizeof(body) + accesses.size_bytes(), [&](std::byte* to) {
    std::memcpy(to, &body, sizeof(body));
    if (!accesses.empty()) std::memcpy(to + sizeof(body), accesses.data(), accesses.size_bytes());
  });
}

std::uint64_t record_copy(shm::CopyKind kind, const shm::CopyBody& body) noexcept {
  return emit_body(shm::RecordKind::kCopy, 0, static_cast<std::uint32_t>(kind), body);
}

std::uint64_t record_memset(const shm::MemsetBody& body) noexcept {
  return emit_body(shm::RecordKind::kMemset, 0, 0, body);
}

std::uint64_t record_state(shm::StateChange change, const shm::StateBody& body) noexcept {
  return emit_body(shm::RecordKind::kState, 0, static_cast<std::uint32_t>(change), body);
}

std::uint64_t record_kernel_time(const shm::KernelTimeBody& body, std::uint32_t idle) noexcept {
  return emit_body(shm::RecordKind::kKernelTime, 0, idle, body);
}

std::uint64_t record_plain(shm::RecordKind kind, const void* body, std::size_t bytes) noexcept {
  return emit(kind, 0, 0, bytes, [&](std::byte* to) { std::memcpy(to, body, bytes); });
}

std::uint64_t record_named(shm::RecordKind kind, std::uint64_t id, std::string_view text) noexcept {
  constexpr std::size_t kMaxText = shm::kMaxRecordBytes - sizeof(shm::RecordHeader) - sizeof(shm::NameBody);
  text = text.substr(0, kMaxText);
  const std::size_t padded = (text.size() + 7) / 8 * 8;
  const std::uint32_t aux = 0;
  return emit(kind, 0, aux, sizeof(shm::NameBody) + padded, [&](std::byte* to) {
    const shm::NameBody body{id, text.size()};
    std::memcpy(to, &body, sizeof(body));
    std::memset(to + sizeof(body), 0, padded);
    std::memcpy(to + sizeof(body), text.data(), text.size());
  });
}

std::uint64_t record_stack(shm::RecordKind kind, std::uint64_t hash, std::span<const std::uint64_t> frames) noexcept {
  return emit(kind, 0, 0, sizeof(shm::StackBody) + frames.size_bytes(), [&](std::byte* to) {
    const shm::StackBody body{hash, frames.size()};
    std::memcpy(to, &body, sizeof(body));
    std::memcpy(to + sizeof(body), frames.data(), frames.size_bytes());
  });
}

std::uint64_t record_parameters(std::uint64_t launch, std::size_t bytes, void (*fill)(void* to, const void* context),
                                const void* context) noexcept {
  const std::size_t padded = (bytes + 7) / 8 * 8;
  return emit(shm::RecordKind::kParameters, 0, 0, sizeof(shm::ParametersBody) + padded, [&](std::byte* to) {
    const shm::ParametersBody body{launch, bytes};
    std::memcpy(to, &body, sizeof(body));
    std::memset(to + sizeof(body), 0, padded);
    fill(to + sizeof(body), context);
  });
}

void forget_recorder_after_fork() noexcept {
  recorder_state = 0;
  t_state = ThreadState();  // the ring is the parent's, and its memory is not here
  g_sequence = 0;
  g_next_check_point = shm::kFirstCheckPoint;
  forget_call_stacks_after_fork();
  forget_python_stacks_after_fork();
}

}  // namespace memopt::agent
