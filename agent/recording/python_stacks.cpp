#include "agent/recording/python_stacks.h"

#include <cerrno>
#include <cstdint>
#include <span>
#include <string_view>

#include "agent/process/open_table.h"
#include "agent/process/spin_lock.h"
#include "agent/process/uncancellable.h"
#include "agent/recording/loaded_modules.h"
#include "agent/recording/recorder.h"
#include "agent/stacks/python_interpreter.h"
#include "shm/record.h"

namespace memopt::agent {
namespace {

// The innermost, of more.
constexpr std::size_t kMaxPythonFrames = 64;

constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 29);
}

struct Written {
  std::uint64_t key = 0;  // a frame's or a stack's number

  static std::size_t home(std::uint64_t hash) noexcept { return hash; }
};

// Guarded by the lock.
constinit int g_lock = 0;
constinit PythonInterpreter g_interpreter;
constinit std::uint64_t g_looked_at = ~std::uint64_t{0};  // generation of the modules in which Python was looked for
constinit OpenTable<Written> g_written;
constinit std::uint32_t g_written_in = 0;  // number of the recording
constinit bool g_found = false;            // atomic; release after g_interpreter was set

// Where this thread was last, as written; 0: in no Python. Zero at its beginning: initial-exec, as all of the agent's.
[[gnu::tls_model("initial-exec")]] constinit thread_local std::uint64_t t_at = 0;
[[gnu::tls_model("initial-exec")]] constinit thread_local std::uint32_t t_at_in = 0;
[[gnu::tls_model("initial-exec")]] constinit thread_local bool t_inside = false;

[[gnu::cold, gnu::noinline]] bool look_for_python() noexcept {
  const std::uint64_t generation = modules().generation();
  // Libraries are loaded now and then: a program may begin Python late.
  if (__atomic_load_n(&g_looked_at, __ATOMIC_RELAXED) == generation) return false;
  // Outside the lock, for it takes the dynamic linker's.
  const PythonInterpreter found = PythonInterpreter::find();
  const LockGuard guard(g_lock);
  __atomic_store_n(&g_looked_at, generation, __ATOMIC_RELAXED);
  if (!found.found() || g_found) return g_found;
  g_interpreter = found;
  __atomic_store_n(&g_found, true, __ATOMIC_RELEASE);
  return true;
}

// With the lock held. True if it was not there; without memory, all is new.
bool insert_written(std::uint64_t key) noexcept {
  if (g_written.find(key) != nullptr) return false;
  if (g_written.reserve_one()) g_written.insert({key});
  return true;
}

std::uint64_t number_of(const PythonFrame& frame) noexcept {
  const std::uint64_t number = mixed(mixed(0, reinterpret_cast<std::uint64_t>(frame.code)), frame.instruction);
  return number != 0 ? number : 1;
}

[[gnu::cold, gnu::noinline]] void write(std::span<const PythonFrame> frames, std::uint64_t stack,
                                        std::uint32_t recording) noexcept {
  const LockGuard guard(g_lock);
  if (g_written_in != recording) {
    g_written_in = recording;
    g_written.clear();
  }
  std::uint64_t numbers[kMaxPythonFrames];
  // Said in full once, then by its number.
  const bool is_new = stack != 0 && insert_written(stack);
  for (std::size_t i = 0; is_new && i < frames.size(); ++i) {
    numbers[i] = number_of(frames[i]);
    if (!insert_written(numbers[i])) continue;
    char text[PythonInterpreter::kMaxText];
    record_named(shm::RecordKind::kPythonFrame, numbers[i], {text, g_interpreter.describe(frames[i], text)});
  }
  record_stack(shm::RecordKind::kPythonStack, stack, {numbers, is_new ? frames.size() : 0});
}

}  // namespace

void record_python_stack() noexcept {
  if (!recording_fully() || t_inside) return;
  const Uncancellable scope;
  const int kept = errno;
  t_inside = true;
  if (__atomic_load_n(&g_found, __ATOMIC_ACQUIRE) || look_for_python()) {
    PythonFrame frames[kMaxPythonFrames];
    const std::size_t count = g_interpreter.frames(frames);
    std::uint64_t stack = 0;
    for (std::size_t i = 0; i < count; ++i) stack = mixed(stack, number_of(frames[i]));
    if (count != 0 && stack == 0) stack = 1;
    const std::uint32_t recording = recording_number();
    if (stack != (t_at_in == recording ? t_at : 0)) {
      write({frames, count}, stack, recording);
      t_at = stack;
      t_at_in = recording;
    }
  }
  t_inside = false;
  errno = kept;
}

void forget_python_stacks_after_fork() noexcept {
  __atomic_store_n(&g_lock, 0, __ATOMIC_RELAXED);
  g_written.forget();
  g_written_in = 0;
  t_at = 0;
  t_at_in = 0;
  t_inside = false;
}

}  // namespace memopt::agent
