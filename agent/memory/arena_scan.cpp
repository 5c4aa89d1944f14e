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
  arena.scans.kernel = ScanState::Kernel::kFailed;
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

// Blocks that are meant by what was found. Those that are here stay from now on, before anything else is done.
struct Meant {
  bool any = false;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> blocks;  // address and number, of those that did not stay yet
};

void keep(Arena& arena, Block& block, Meant* meant) {
  meant->any = true;
  if (block.escaped) return;
  meant->blocks.emplace_back(block.base, block.number);
  if (block.away == 0) arena_keep_here(arena, block);
}

Meant keep_what_is_meant(Arena& arena, Found& found) {
  Meant result;
  std::sort(found.words.begin(), found.words.end());
  found.words.erase(std::unique(found.words.begin(), found.words.end()), found.words.end());
  for (const std::uint64_t word : found.words) {
    // One that is gone by now, or another that has come to lie there: the launch has named the one that is meant.
    const auto meant = std::find_if(found.named.begin(), found.named.end(),
                                    [&](const NamedBlock& block) { return word - block.base < block.bytes; });
    Block* there[2] = {nullptr, nullptr};
    // Where another begins, the end of the one before is hardly what is meant.
    Block* const block = find_blocks(word, there) != 0 ? there[0] : nullptr;
    if (meant != found.named.end() && (block == nullptr || block->number != meant->number)) {
      arena_tell_escape(arena, meant->number);
      result.any = true;
      note_planned(arena, word);
      if (block == nullptr || own_window(*block) == nullptr) continue;
    }
    if (block == nullptr) continue;
    note_planned(arena, word);
    keep(arena, *block, &result);
  }
  if (found.more) {
    arena.blocks.for_each([&](Block& block) {
      if (block.window != nullptr && arena.scan.is_marked(block.base, block.bytes)) keep(arena, block, &result);
    });
  }
  return result;
}

// Did any of it mean a block? Gives the lock back.
bool make_stay(Arena& arena, ArenaLock& lock, Found found) {
  const std::uint64_t releases = arena.releases;
  const Meant meant = keep_what_is_meant(arena, found);
  for (const auto& [base, number] : meant.blocks) {
    Block* const block = arena.blocks.find(base);
    if (block == nullptr || block->number != number) continue;
    if (block->escaped) {
      arena_open_to_all(arena, lock, *block);
    } else {
      escaped(lock, *block);
    }
    if (arena.releases != releases) break;
  }
  return meant.any;
}

bool has_run(const Scan& scan) noexcept { return scan.slot->serial == scan.serial; }

struct BegunScans : std::vector<Scan*> {
  BegunScans() = default;
  BegunScans(const BegunScans&) = delete;
  BegunScans& operator=(const BegunScans&) = delete;
  ~BegunScans() {
    for (Scan* const scan : *this) AddressScan::end(*scan);
  }
};

// All that lies on the device. False: the kernel does not work, or the context is gone. Gives the lock back while it
// runs: blocks that are freed meanwhile are not unmapped before it is over (ScanState::reading).
bool look_at_everything(Arena& arena, ArenaLock& lock, CUstream stream, Found* found) {
  const std::uint64_t releases = arena.releases;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> all;  // address and number
  arena.blocks.for_each([&](const Block& block) {
    if (block.window != nullptr && block.bytes >= sizeof(std::uint64_t)) all.emplace_back(block.base, block.number);
  });
  for (std::size_t next = 0; next < all.size();) {
    BegunScans begun;
    begun.reserve(AddressScan::kScans);
    for (; next < all.size(); ++next) {
      const Block* const block = arena.blocks.find(all[next].first);
      if (block == nullptr || block->number != all[next].second || block->away != 0) continue;
      if (begun.empty() || !AddressScan::add(*begun.back(), block->base, block->bytes)) {
        Scan* const scan = arena.scan.begin(0, {stream, false}, {}, arena.chunks.used_end());
        if (scan == nullptr) break;
        begun.push_back(scan);
        AddressScan::add(*scan, block->base, block->bytes);
      }
    }
    if (begun.empty()) {
      // Other threads have all of them.
      arena.scans.missed = arena.scans.missed || next < all.size();
      return true;
    }
    bool done = true;
    {
      const BesideCaptures beside(driver());
      const CurrentContext current(driver(), arena.context);
      for (Scan* const scan : begun) done = done && AddressScan::queue(driver(), *scan) == CUDA_SUCCESS;
    }
    arena.scans.reading.add(arena.streams.queued_on_own(kOutSlot));
    const Release reading = arena.scans.reading;
    done = arena.streams.finish(lock, reading) == CUDA_SUCCESS && done;
    if (arena.releases != releases) return false;
    for (Scan* const scan : begun) {
      done = done && has_run(*scan);
      if (done) add_found(*scan, found);
    }
    if (!done) return false;
  }
  return true;
}

// False: not now.
bool make_kernel(Arena& arena, ArenaLock& lock) noexcept {
  const std::uint64_t releases = arena.releases;
  while (arena.scans.kernel == ScanState::Kernel::kBeingMade) {
    {
      const Unlocked unlocked(lock);
      sched_yield();
    }
    if (arena.releases != releases) return false;
  }
  if (arena.scan.is_ready()) return true;
  if (arena.scans.kernel == ScanState::Kernel::kFailed) return false;
  arena.scans.kernel = ScanState::Kernel::kBeingMade;
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
  if (made && !arena.scan.use(kernel, arena.chunks.range_begin())) {
    made = false;
    why = "out of memory";
  }
  arena.scans.kernel = ScanState::Kernel::kNone;
  if (!made) give_up(arena, std::move(why));
  return made;
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
  if (arena.scans.kernel == ScanState::Kernel::kFailed) return false;
  if (arena.scan.is_ready() && !arena.scans.missed && !arena.scans.looking) return false;
  if (captures_are_open()) return false;
  const std::uint64_t releases = arena.releases;
  if (!make_kernel(arena, lock)) return true;
  while (arena.scans.looking) {
    {
      const Unlocked unlocked(lock);
      sched_yield();
    }
    if (arena.releases != releases) return true;
  }
  if (!arena.scans.missed) return true;
  // What is launched from now on is looked at behind its launch.
  set_mode(arena.plan == nullptr ? ScanMode::kAll : ScanMode::kSuspects);
  Release everything;
  everything.add_everything();
  // Where work is held up, what it stores is found when something else is to leave.
  const bool finished = arena.streams.finish_or_give_up(lock, everything) == CUDA_SUCCESS;
  if (arena.releases != releases) return true;
  // So that there is room for others.
  arena_read_scans(arena, lock);
  if (arena.releases != releases || !arena.scan.is_ready() || arena.scans.looking) return true;
  const CUstream stream = arena.streams.own_stream(kOutSlot);
  if (stream == nullptr) return true;
  arena.scans.missed = false;
  arena.scans.looking = true;
  Found found;
  bool done = false;
  try {
    done = look_at_everything(arena, lock, stream, &found);
  } catch (const std::bad_alloc&) {
    arena.scans.missed = done = arena.releases == releases;
  }
  if (arena.releases != releases) return true;
  arena.scans.looking = false;
  arena.scans.reading = {};
  if (!done) {
    give_up(arena, kDoesNothing);
    return true;
  }
  arena.scans.missed = arena.scans.missed || !finished;
  try {
    make_stay(arena, lock, std::move(found));
  } catch (const std::bad_alloc&) {
    if (arena.releases == releases) arena.scans.missed = true;
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
