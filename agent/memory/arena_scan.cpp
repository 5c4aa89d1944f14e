// Addresses that kernels store in device memory (scan/address_scan.h): blocks whose address is stored stay on the
// device. Nothing leaves before all that lies on the device has been looked at once; from then on launches are, as far
// as they are recorded, or nothing is planned yet. A block leaves only when the launches that name it are over, and
// what they have stored is known by then.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "agent/order/captures.h"
#include "agent/order/current_context.h"
#include "agent/process/log.h"
#include "agent/recording/recorder.h"

namespace memopt::agent {

constinit ScanMode scan_mode = ScanMode::kOff;
constinit thread_local bool scans_due __attribute__((tls_model("initial-exec"))) = false;

namespace {

// What the calling thread has begun for a launch that it is about to make.
struct LaunchScans {
  static constexpr std::size_t kMost = 16;

  std::uint64_t ticket = 0;
  std::size_t count = 0;
  std::size_t named = 0;
  Scan* scans[kMost];
  NamedBlock blocks[ScanSlot::kMostRanges];
};
constinit thread_local LaunchScans t_launch __attribute__((tls_model("initial-exec"))) = {};

constexpr const char* kDoesNothing = "the kernel that looks for them fails, or does nothing, on this device";

// Queued, and not read yet.
constinit std::uint32_t g_queued = 0;

void set_mode(ScanMode mode) noexcept { __atomic_store_n(&scan_mode, mode, __ATOMIC_RELAXED); }

void give_up(Arena& arena, std::string why) noexcept {
  arena.scans.state = ScanState::Kernel::kNone;
  arena.scans.failed = true;
  arena.scan.stop();
  __atomic_store_n(&g_queued, 0, __ATOMIC_RELAXED);
  set_mode(ScanMode::kOff);
  try {
    log(LogLevel::kInfo, "addresses that kernels store in device memory are not looked for: {}", why);
  } catch (...) {
  }
  arena.scans.why = std::move(why);
}

// What was found by one scan, copied: the lock is given back while blocks are made to stay.
struct Found {
  std::vector<std::uint64_t> words;
  std::vector<NamedBlock> named;
  bool more = false;  // there was no room for all words
};

void add_found(const Scan& scan, Found* found) {
  const ScanSlot& slot = *scan.slot;
  const std::size_t count = std::min<std::size_t>(slot.found, ScanSlot::kMostWords);
  found->words.insert(found->words.end(), slot.words, slot.words + count);
  if (count != 0) found->named.insert(found->named.end(), scan.blocks, scan.blocks + scan.named);
  found->more = found->more || slot.found > ScanSlot::kMostWords;
}

// A block of a plan's that swaps: by that plan the address of the next one in its place will be stored, too.
void note_planned(Arena& arena, std::uint64_t address) noexcept {
  Window* const window = arena.chunks.window_at(address);
  if (window == nullptr || window->kind != Window::Kind::kOwn) return;
  OwnWindow* const own = static_cast<OwnWindow*>(window);
  if (!own->borrowed) own->stays = true;
}

// Did any of it mean a block? Gives the lock back.
bool make_stay(Arena& arena, ArenaLock& lock, Found found) {
  const std::uint64_t releases = arena.releases;
  bool any = false;
  std::sort(found.words.begin(), found.words.end());
  found.words.erase(std::unique(found.words.begin(), found.words.end()), found.words.end());
  for (const std::uint64_t word : found.words) {
    // One that is gone by now, or another that has come to lie there: the launch has named the one that is meant.
    const auto meant = std::find_if(found.named.begin(), found.named.end(),
                                    [&](const NamedBlock& block) { return word - block.base < block.bytes; });
    Block* there[2] = {nullptr, nullptr};
    std::size_t count = find_blocks(word, there);
    // The end of the one before is hardly what is meant where another begins.
    if (count == 2) count = 1;
    if (meant != found.named.end() && (count == 0 || there[0]->number != meant->number)) {
      arena_tell_escape(arena, meant->number);
      any = true;
      note_planned(arena, word);
      if (count == 0 || own_window(*there[0]) == nullptr) continue;
    }
    if (count == 0) continue;
    any = true;
    note_planned(arena, word);
    escaped(lock, *there[0]);
    if (arena.releases != releases) return any;
  }
  if (!found.more) return any;
  std::vector<std::uint64_t> bases;
  arena.blocks.for_each([&](const Block& block) {
    if (block.window != nullptr && !block.escaped && arena.scan.is_marked(block.base, block.bytes)) {
      bases.push_back(block.base);
    }
  });
  for (const std::uint64_t base : bases) {
    Block* const block = arena.blocks.find(base);
    if (block != nullptr) escaped(lock, *block);
    if (arena.releases != releases) break;
  }
  return true;
}

bool has_run(const Scan& scan) noexcept { return scan.slot->serial == scan.serial; }

// All that lies on the device; nothing of the program's goes on. With the lock held: what is looked at stays where it
// is, and the stream is ours, with nothing on it that waits for the program.
bool look_at_everything(Arena& arena, CUstream stream, Found* found) {
  const Driver& driver = arena.driver;
  std::vector<Scan*> begun;
  const auto finish = [&] {
    bool done = driver.stream_synchronize(stream) == CUDA_SUCCESS;
    for (Scan* const scan : begun) {
      done = done && has_run(*scan);
      if (done) add_found(*scan, found);
      AddressScan::end(*scan);
    }
    begun.clear();
    return done;
  };
  bool done = true;
  const auto look_at = [&](const Block& block) {
    if (!done || arena.scans.missed || block.window == nullptr || block.away != 0 ||
        block.bytes < sizeof(std::uint64_t))
      return;
    for (;;) {
      if (!begun.empty() && AddressScan::add(*begun.back(), block.base, block.bytes)) return;
      if (!begun.empty()) done = AddressScan::queue(driver, *begun.back()) == CUDA_SUCCESS;
      Scan* next = done ? arena.scan.begin(0, {stream, false}, {}, arena.chunks.used_end()) : nullptr;
      if (next == nullptr && done && !begun.empty()) {
        done = finish();
        next = done ? arena.scan.begin(0, {stream, false}, {}, arena.chunks.used_end()) : nullptr;
      }
      if (next == nullptr) {
        arena.scans.missed = true;
        return;
      }
      begun.push_back(next);
    }
  };
  begun.reserve(AddressScan::kScans);
  arena.blocks.for_each(look_at);
  if (!begun.empty() && done) done = AddressScan::queue(driver, *begun.back()) == CUDA_SUCCESS;
  return finish() && done;
}

// False: not now.
bool make_kernel(Arena& arena, ArenaLock& lock) noexcept {
  const std::uint64_t releases = arena.releases;
  while (arena.scans.state == ScanState::Kernel::kBeingMade) {
    {
      const Unlocked unlocked(lock);
      sched_yield();
    }
    if (arena.releases != releases) return false;
  }
  if (arena.scans.state == ScanState::Kernel::kReady) return true;
  if (arena.scans.failed) return false;
  arena.scans.state = ScanState::Kernel::kBeingMade;
  const CUcontext context = arena.context;
  const std::uint64_t range_bytes = arena.chunks.range_bytes();
  ScanKernel kernel;
  std::string why;
  bool made = false;
  {
    // Loading may wait for work of the context.
    const Unlocked unlocked(lock);
    const BesideCaptures beside(driver());
    const CurrentContext current(driver(), context);
    made = AddressScan::make(driver(), range_bytes, &kernel, &why);
  }
  if (arena.releases != releases) return false;
  if (!made) {
    give_up(arena, std::move(why));
    return false;
  }
  arena.scan.use(kernel, arena.chunks.range_begin());
  arena.scans.state = ScanState::Kernel::kReady;
  return true;
}

}  // namespace

void scan_block(const Block& block, const Operation& operation, StreamName stream, std::uint32_t function) noexcept {
  Arena& arena = *memopt::agent::arena();
  LaunchScans& launch = t_launch;
  if (operation.use.position == 0 || !arena.scan.is_ready()) return;
  if (launch.ticket != operation.ticket) {
    launch.ticket = operation.ticket;
    launch.named = 0;
  }
  if (launch.named < std::size(launch.blocks)) launch.blocks[launch.named++] = {block.base, block.bytes, block.number};
  if (block.window == nullptr || !arena.scan.is_due(function, block.base, block.bytes)) return;
  if (launch.count != 0 && AddressScan::add(*launch.scans[launch.count - 1], block.base, block.bytes)) return;
  Scan* const scan = launch.count < LaunchScans::kMost
                         ? arena.scan.begin(function, stream, operation.use, arena.chunks.used_end())
                         : nullptr;
  if (scan == nullptr) {
    arena.scans.missed = true;
    return;
  }
  launch.scans[launch.count++] = scan;
  scans_due = true;
  AddressScan::add(*scan, block.base, block.bytes);
}

void scan_missed() noexcept {
  const ArenaLock lock;
  if (Arena* const now = arena()) now->scans.missed = true;
}

void queue_due_scans() noexcept {
  LaunchScans& launch = t_launch;
  for (std::size_t i = 0; i < launch.count; ++i) {
    Scan& one = *launch.scans[i];
    for (std::size_t k = 0; k < launch.named; ++k) AddressScan::name(one, launch.blocks[k]);
    const bool queued = AddressScan::queue(driver(), one) == CUDA_SUCCESS;
    __atomic_fetch_add(&g_queued, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&one.state, queued ? Scan::State::kQueued : Scan::State::kRefused, __ATOMIC_RELEASE);
  }
  launch.count = 0;
  scans_due = false;
}

void forget_due_scans() noexcept {
  for (std::size_t i = 0; i < t_launch.count; ++i) AddressScan::end(*t_launch.scans[i]);
  t_launch.count = 0;
  scans_due = false;
}

bool arena_has_scans() noexcept { return __atomic_load_n(&g_queued, __ATOMIC_RELAXED) != 0; }

bool arena_read_scans(Arena& arena, ArenaLock& lock) noexcept {
  if (!arena.scan.is_ready() || !arena_has_scans()) return false;
  const std::uint64_t releases = arena.releases;
  bool any = false;
  for (std::size_t i = 0; i < AddressScan::kScans; ++i) {
    Scan& scan = arena.scan.scans()[i];
    // Acquire pairs with the release of the thread that has queued it.
    const Scan::State state = __atomic_load_n(&scan.state, __ATOMIC_ACQUIRE);
    if (state == Scan::State::kRefused) {
      arena.scans.missed = true;
      __atomic_fetch_sub(&g_queued, 1, __ATOMIC_RELAXED);
      AddressScan::end(scan);
    }
    if (state != Scan::State::kQueued) continue;
    Release use;
    use.add(scan.use);
    if (!arena.streams.is_over(use, true)) continue;
    if (!has_run(scan)) {
      give_up(arena, kDoesNothing);
      return any;
    }
    __atomic_fetch_sub(&g_queued, 1, __ATOMIC_RELAXED);
    if (scan.slot->found == 0) {
      AddressScan::end(scan);
      continue;
    }
    scan.state = Scan::State::kBeingRead;
    const std::uint32_t function = scan.function;
    try {
      Found found;
      add_found(scan, &found);
      AddressScan::end(scan);
      if (make_stay(arena, lock, std::move(found))) {
        arena.scan.found_behind(function);
        any = true;
      }
    } catch (const std::bad_alloc&) {
      AddressScan::end(scan);
      arena.scans.missed = true;
    }
    if (arena.releases != releases) return true;
  }
  return any;
}

bool arena_scan_before_leaving(Arena& arena, ArenaLock& lock) noexcept {
  if (arena.scans.failed || (arena.scan.is_ready() && !arena.scans.missed) || captures_are_open()) return false;
  const std::uint64_t releases = arena.releases;
  if (!make_kernel(arena, lock)) return true;
  if (!arena.scans.missed) return true;
  // What is launched from now on is looked at behind its launch.
  set_mode(arena.plan == nullptr ? ScanMode::kAll : ScanMode::kSuspects);
  Release everything;
  everything.everything = true;
  // Where work is held up, what it stores is found when something else is to leave.
  const bool finished = arena.streams.finish_or_give_up(lock, everything) == CUDA_SUCCESS;
  if (arena.releases != releases) return true;
  // So that there is room for others.
  arena_read_scans(arena, lock);
  if (arena.releases != releases || !arena.scan.is_ready()) return true;
  arena.scans.missed = false;
  const CUstream stream = arena.streams.own_stream(kOutSlot);
  if (stream == nullptr) return true;
  try {
    Found found;
    bool done = false;
    {
      const BesideCaptures beside(driver());
      const CurrentContext current(driver(), arena.context);
      done = look_at_everything(arena, stream, &found);
    }
    if (!done) {
      give_up(arena, kDoesNothing);
      return true;
    }
    if (!finished) arena.scans.missed = true;
    make_stay(arena, lock, std::move(found));
  } catch (const std::bad_alloc&) {
    arena.scans.missed = true;
  }
  return true;
}

void arena_tell_escape(Arena& arena, std::uint64_t number) noexcept {
  // What is recorded anew begins with all that stay (arena_record_anew).
  if (!recording()) return;
  try {
    arena.escaped.push_back(number);
  } catch (const std::bad_alloc&) {
    // The planner goes on to plan swaps of it, which it stays out of.
  }
}

void arena_end_scans(Arena& arena) noexcept {
  set_mode(ScanMode::kOff);
  arena.scan.end(arena.driver);
  __atomic_store_n(&g_queued, 0, __ATOMIC_RELAXED);
  arena.scans = {};
  arena.escaped.clear();
}

void forget_scans_after_fork() noexcept {
  set_mode(ScanMode::kOff);
  scans_due = false;
  t_launch.count = 0;
  AddressScan::forget_after_fork();
}

void arena_scan_less(Arena& arena) noexcept {
  if (arena.scan.is_ready()) set_mode(ScanMode::kSuspects);
}

}  // namespace memopt::agent
