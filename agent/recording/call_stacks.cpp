#include "agent/recording/call_stacks.h"

#include <algorithm>
#include <cerrno>
#include <span>

#include "agent/process/open_table.h"
#include "agent/process/spin_lock.h"
#include "agent/process/uncancellable.h"
#include "agent/recording/loaded_modules.h"
#include "agent/recording/recorder.h"
#include "agent/stacks/stack_walker.h"

namespace memopt::agent {
namespace {

// The walk begins in our own frames, which are cut off.
constexpr std::size_t kOwnFrames = 16;
// Walks of a thread after which it looks whether objects were loaded or unloaded. A stack that was not seen before
// always looks.
constexpr std::uint32_t kLookInterval = 256;

// Stacks seen: what the raw addresses hash to, and the number of the stack. Any thread reads and writes without a lock:
// `check` is the raw hash exclusive-or the result, so that halves of two entries do not pass for one.
struct Remembered {
  std::uint64_t check;
  std::uint64_t result;
};
constexpr std::size_t kRememberedStacks = 4096;
constinit Remembered g_remembered[kRememberedStacks] = {};

// Guarded by the lock, which is never held across a walk.
constinit int g_lock = 0;
struct WrittenStack {
  std::uint64_t key = 0;  // the stack's hash

  static std::size_t home(std::uint64_t hash) noexcept { return hash; }
};
constinit OpenTable<WrittenStack> g_written;  // that are in the recording
constinit std::uint32_t g_written_in = 0;     // number of the recording

[[gnu::tls_model("initial-exec")]] constinit thread_local bool t_walking = false;
[[gnu::tls_model("initial-exec")]] constinit thread_local std::uint32_t t_walks = 0;

constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 29);
}

std::uint64_t never_zero(std::uint64_t hash) { return hash != 0 ? hash : 1; }

// With the lock held. True if it was not there; without memory, every stack is new.
bool insert_written(std::uint64_t hash) noexcept {
  if (g_written.find(hash) != nullptr) return false;
  if (g_written.reserve_one()) g_written.insert({hash});
  return true;
}

// With the lock held: another recording has seen nothing yet.
void begin_recording(std::uint32_t number) noexcept {
  if (g_written_in == number) return;
  g_written_in = number;
  g_written.clear();
  modules().write_again();
}

void look_for_changes() noexcept {
  const LockGuard guard(g_lock);
  if (modules().refresh()) stack_walker().forget_code();
}

[[gnu::cold, gnu::noinline]] std::uint64_t learn(std::span<void* const> frames, std::uint32_t recording) noexcept {
  const LockGuard guard(g_lock);
  begin_recording(recording);
  if (modules().refresh()) stack_walker().forget_code();
  modules().write_new();
  std::uint64_t hash = 0;
  std::uint64_t addresses[kMaxStackFrames];
  for (std::size_t i = 0; i < frames.size(); ++i) {
    addresses[i] = reinterpret_cast<std::uint64_t>(frames[i]);
    const ModulePlace place = modules().place_of(addresses[i]);
    hash = mix(mix(hash, place.module), place.offset);
  }
  hash = never_zero(hash);
  if (insert_written(hash)) record_stack(shm::RecordKind::kStack, hash, {addresses, frames.size()});
  return hash;
}

// What the program's part of the stack is: from the frame that is returned to from our hook. If the walk did not come
// by there, only that address is known.
std::span<void* const> programs_part(void* const* frames, std::size_t count, void* const& return_address) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    if (frames[i] != return_address) continue;
    const std::size_t left = count - i;
    return {frames + i, left < kMaxStackFrames ? left : kMaxStackFrames};
  }
  return {&return_address, 1};
}

using Frames = void * [kOwnFrames + kMaxStackFrames];

// Nothing where there is not even the address of the call. A walk reads and writes, to see what memory is there, and
// asks the dynamic linker, which others may have interposed: what they allocate meanwhile is not walked (t_walking).
std::span<void* const> walk(Frames& frames, void* const& from) noexcept {
  const int count = stack_walker().walk(frames, static_cast<int>(std::size(frames)));
  if (count <= 0 && from == nullptr) return {};
  return programs_part(frames, static_cast<std::size_t>(std::max(count, 0)), from);
}

std::uint64_t known_or_learnt(std::span<void* const> frames, std::uint32_t recording) noexcept {
  std::uint64_t raw = mix(recording, modules().generation());
  for (void* const frame : frames) raw = mix(raw, reinterpret_cast<std::uint64_t>(frame));
  Remembered& entry = g_remembered[raw % kRememberedStacks];
  const std::uint64_t result = __atomic_load_n(&entry.result, __ATOMIC_RELAXED);
  if (result != 0 && (__atomic_load_n(&entry.check, __ATOMIC_RELAXED) ^ result) == raw) [[likely]] {
    return result;
  }
  const std::uint64_t learnt = learn(frames, recording);
  __atomic_store_n(&entry.result, learnt, __ATOMIC_RELAXED);
  __atomic_store_n(&entry.check, learnt ^ raw, __ATOMIC_RELAXED);
  return learnt;
}

}  // namespace

std::uint64_t call_stack(const void* return_address) noexcept {
  if (t_walking) return 0;
  const std::uint32_t recording = recording_number();
  // Learning takes the dynamic linker's lock.
  const Uncancellable scope;
  const int kept = errno;
  t_walking = true;
  if (++t_walks % kLookInterval == 0) look_for_changes();
  Frames frames;
  void* const from = const_cast<void*>(return_address);
  const std::span<void* const> walked = walk(frames, from);
  const std::uint64_t hash = walked.empty() ? 0 : known_or_learnt(walked, recording);
  t_walking = false;
  errno = kept;
  return hash;
}

std::size_t program_frames(const void* return_address, std::span<void*, kMaxStackFrames> found) noexcept {
  if (t_walking) return 0;
  const Uncancellable scope;
  const int kept = errno;
  t_walking = true;
  Frames frames;
  void* const from = const_cast<void*>(return_address);
  const std::span<void* const> walked = walk(frames, from);
  std::copy(walked.begin(), walked.end(), found.begin());
  t_walking = false;
  errno = kept;
  return walked.size();
}

void forget_call_stacks_after_fork() noexcept {
  __atomic_store_n(&g_lock, 0, __ATOMIC_RELAXED);
  g_written.forget();
  g_written_in = 0;
  t_walking = false;
  forget_stack_walker_after_fork();
  modules().forget_after_fork();
}

}  // namespace memopt::agent
