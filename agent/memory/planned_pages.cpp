// Pages that a plan has in its slab (page_runs.h): they become runs when the plan goes live, and ordinary pages again
// when another one does. Both happen to pages that are away, so that nothing of what is mapped is in use: at a switch
// they leave once, and come back to their places.
#include <algorithm>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "agent/memory/arena_state.h"
#include "agent/memory/page_runs.h"
#include "agent/order/captures.h"
#include "agent/process/log.h"

namespace memopt::agent {
namespace {

// What comes back at once is not sent away for ever.
constexpr int kRoundsToLeave = 64;

// A program of which so many swaps come back at other times than planned, of all or of few, in so many iterations more
// than it keeps to, but for the first ones behind a switch, does not keep to its plans: threads that meet differently
// each time, as a rule. Where all it uses lies in the slab, what is off the plan finds no place.
constexpr std::uint64_t kFewPart = 3;
constexpr std::uint64_t kFew = 3;
constexpr std::uint32_t kMostOff = 3;
constexpr std::uint32_t kToSettle = 4;

// Pages that are no run, though the plan has them: it is tried again at the first boundary, the second, the fourth,
// ..., as that waits for what uses them.
bool is_time(std::uint32_t boundaries) noexcept { return (boundaries & (boundaries - 1)) == 0; }

std::size_t count_of(const Arena& arena, const FollowedPages& pages) noexcept {
  return static_cast<std::size_t>(pages.bytes / arena.chunks.chunk_bytes());
}

bool lie_in_region(Arena& arena, const FollowedPages& pages) noexcept {
  const Window& region = arena.bootstrap.region().window();
  return region.base != 0 && pages.address >= region.base && pages.address - region.base < region.map.bytes() &&
         pages.bytes <= region.map.bytes() - (pages.address - region.base);
}

// Visits the numbers of pages in the region that are to be runs, and are not yet.
template <typename Visit>
void for_each_missing(Arena& arena, const FollowedPlan& plan, Visit&& visit) {
  const Region& region = arena.bootstrap.region();
  for (const FollowedPages& pages : plan.pages) {
    if (!lie_in_region(arena, pages) || arena_run_of(arena, pages) != nullptr) continue;
    const std::size_t first = region.page_at(pages.address);
    for (std::size_t page = first; page < first + count_of(arena, pages); ++page) visit(page);
  }
}

// Those of the pages that are here leave on demand, as far as they can. Gives the lock back.
void send_away(Arena& arena, ArenaLock& lock, std::vector<std::size_t> pages) noexcept {
  const Region& region = arena.bootstrap.region();
  const std::uint64_t releases = arena.releases;
  const auto is_one = [&](std::size_t page) { return std::binary_search(pages.begin(), pages.end(), page); };
  for (int round = 0; round < kRoundsToLeave && arena.releases == releases; ++round) {
    const auto here = static_cast<std::size_t>(
        std::count_if(pages.begin(), pages.end(), [&](std::size_t page) { return region.is_here(page); }));
    if (here == 0 || arena_send_away(arena, lock, here, is_one) == 0) return;
  }
}

// False: not all of them are away, or host memory is short.
bool make_run(Arena& arena, const FollowedPages& pages) noexcept {
  Region& region = arena.bootstrap.region();
  const std::size_t first = region.page_at(pages.address);
  const std::size_t count = count_of(arena, pages);
  for (std::size_t page = first; page < first + count; ++page) {
    const Region::Page& one = region.page(page);
    if (one.residency != Region::Residency::kAway || one.run != nullptr) return false;
  }
  OwnWindows& windows = arena.slab.own_windows();
  OwnWindow* const window = windows.borrow(pages.address, count, pages.place);
  if (window == nullptr) return false;
  std::unique_ptr<PageRun> run;
  try {
    run = std::make_unique<PageRun>();
    arena.runs.reserve(arena.runs.size() + 1);
  } catch (const std::bad_alloc&) {
    windows.return_borrowed(window);
    return false;
  }
  run->window = window;
  run->first = first;
  run->count = count;
  run->swapped = pages.swapped;
  run->owner.base = pages.address;
  run->owner.bytes = pages.bytes;
  run->owner.number = kRunNumber | ++arena.runs_made;
  run->owner.window = window;
  run->owner.away = static_cast<std::uint32_t>(count);
  region.begin_run(*run, window->pieces.data());
  // Where the slab lacks a chunk, it is mapped when it is to come back.
  windows.map(*window);
  arena.runs.push_back(std::move(run));
  return true;
}

PageRun* find_run(Arena& arena, std::uint64_t number) noexcept {
  const auto at =
      std::find_if(arena.runs.begin(), arena.runs.end(), [&](const auto& run) { return run->owner.number == number; });
  return at != arena.runs.end() ? at->get() : nullptr;
}

}  // namespace

PageRun* arena_run_of(Arena& arena, const FollowedPages& pages) noexcept {
  if (!lie_in_region(arena, pages)) return nullptr;
  PageRun* const run = arena.bootstrap.region().run_at(pages.address);
  const bool same = run != nullptr && run->owner.base == pages.address && run->owner.bytes == pages.bytes &&
                    run->window->place == pages.place;
  return same ? run : nullptr;
}

std::size_t arena_pages_to_leave(Arena& arena, const FollowedPlan& plan) noexcept {
  std::size_t pages = 0;
  const Region& region = arena.bootstrap.region();
  for_each_missing(arena, plan, [&](std::size_t page) { pages += region.page(page).piece == nullptr ? 1 : 0; });
  return pages;
}

CUresult arena_end_run(Arena& arena, ArenaLock& lock, PageRun& run) noexcept {
  Region& region = arena.bootstrap.region();
  OwnWindow* const window = run.window;
  const std::uint64_t releases = arena.releases;
  // Other threads that touch what is in it wait for as long as the copy takes.
  window->moving = true;
  region.move_run(run, Region::Residency::kComing);
  CUresult result = CUDA_SUCCESS;
  if (!arena.streams.is_over(window->last_uses, true)) {
    const Release uses = window->last_uses;
    result = arena.streams.finish(lock, uses);
    if (arena.releases != releases) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  window->moving = false;
  region.move_run(run, Region::Residency::kAway);
  if (window->taken != nullptr) {
    arena.slab.window().map.give_back(std::exchange(window->taken, nullptr), window->taken_after);
  }
  if (result != CUDA_SUCCESS) return result;
  std::vector<HostPiece*> pieces = std::move(window->pieces);
  result = arena.slab.own_windows().return_borrowed(window);
  if (result != CUDA_SUCCESS) {
    window->pieces = std::move(pieces);
    return result;
  }
  region.end_run(run, pieces.data());
  const auto at =
      std::find_if(arena.runs.begin(), arena.runs.end(), [&](const auto& one) { return one.get() == &run; });
  std::swap(*at, arena.runs.back());
  arena.runs.pop_back();
  return CUDA_SUCCESS;
}

void arena_leave_runs(Arena& arena, ArenaLock& lock, const FollowedPlan* plan) noexcept {
  const std::uint64_t releases = arena.releases;
  std::vector<std::uint64_t> numbers;
  try {
    for (const auto& run : arena.runs) {
      const auto is_same = [&](const FollowedPages& pages) { return arena_run_of(arena, pages) == run.get(); };
      if (plan == nullptr || std::none_of(plan->pages.begin(), plan->pages.end(), is_same)) {
        numbers.push_back(run->owner.number);
      }
    }
  } catch (const std::bad_alloc&) {
    return;
  }
  // All copies are queued before the first is waited for.
  for (const std::uint64_t number : numbers) {
    PageRun* const run = find_run(arena, number);
    if (run != nullptr && run->owner.away == 0) arena_send_out(arena, lock, run->owner);
    if (arena.releases != releases) return;
  }
  for (const std::uint64_t number : numbers) {
    PageRun* const run = find_run(arena, number);
    if (run == nullptr) continue;
    if (run->owner.away == 0) {
      log(LogLevel::kInfo, "{} bytes stay where the last plan had them: they can't leave now", run->owner.bytes);
    } else if (!run->window->moving) {
      arena_end_run(arena, lock, *run);
    }
    if (arena.releases != releases) return;
  }
}

void arena_send_everything(Arena& arena, ArenaLock& lock) noexcept {
  const std::uint64_t releases = arena.releases;
  for (int round = 0; round < kRoundsToLeave && arena.releases == releases; ++round) {
    const std::size_t here = arena.bootstrap.region().pages_here();
    if (here == 0 || arena_send_away(arena, lock, here, [](std::size_t) { return true; }) == 0) return;
  }
}

void arena_send_pages(Arena& arena, ArenaLock& lock, const FollowedPlan& plan) noexcept {
  std::vector<std::size_t> pages;
  try {
    for_each_missing(arena, plan, [&](std::size_t page) { pages.push_back(page); });
  } catch (const std::bad_alloc&) {
    return;
  }
  if (!pages.empty()) send_away(arena, lock, std::move(pages));
}

void arena_begin_runs(Arena& arena, ArenaLock& lock) noexcept {
  const std::uint64_t generation = arena.plan->generation;
  const auto follows = [&] { return arena.plan != nullptr && arena.plan->generation == generation; };
  std::size_t missing = 0;
  for (const FollowedPages& pages : arena.plan->pages) {
    PageRun* const run = arena_run_of(arena, pages);
    if (run != nullptr) {
      run->swapped = pages.swapped;
    } else if (!lie_in_region(arena, pages) || !make_run(arena, pages)) {
      ++missing;
    }
  }
  if (missing != 0) {
    log(LogLevel::kInfo, "of {} runs of pages that the plan swaps {} stay beside its slab", arena.plan->pages.size(),
        missing);
  }
  for (std::size_t i = 0; follows() && i < arena.plan->pages.size(); ++i) {
    const FollowedPages& pages = arena.plan->pages[i];
    PageRun* const run = pages.here_first ? arena_run_of(arena, pages) : nullptr;
    if (run != nullptr && run->owner.away != 0) arena_bring_in(arena, lock, run->owner);
  }
}

void arena_watch_runs(Arena& arena) noexcept {
  const PlannedSwaps& swaps = arena.planned_swaps;
  const std::uint64_t returns = swaps.unplanned_returns - swaps.too_early + swaps.late_returns;
  const std::uint64_t off = returns - std::exchange(arena.run_watch.returns, returns);
  const bool settled = ++arena.run_watch.followed > kToSettle;
  const bool is_off = settled && off > std::max(kFew, arena.plan->swaps / kFewPart);
  if (is_off && ++arena.run_watch.off == kMostOff) {
    arena.run_watch.due = true;
    return;
  }
  if (!is_off && arena.run_watch.off != 0) --arena.run_watch.off;
  const auto is_run = [&](const FollowedPages& pages) { return arena_run_of(arena, pages) != nullptr; };
  const std::vector<FollowedPages>& all = arena.plan->pages;
  if (arena.runs.size() == all.size() && std::all_of(all.begin(), all.end(), is_run)) {
    arena.run_watch.incomplete = 0;
    return;
  }
  arena.run_watch.due = is_time(++arena.run_watch.incomplete);
}

void arena_complete_slab(Arena& arena, ArenaLock& lock) noexcept {
  arena.run_watch.due = false;
  arena.refill_due = false;
  if (arena.plan == nullptr) return;
  if (arena.run_watch.off >= kMostOff && !arena.pages_stay) {
    log(LogLevel::kInfo,
        "the program does not keep to plans that have all it uses in their slab: blocks that stay are swapped on "
        "demand");
    arena.pages_stay = true;
    arena.terms_due = true;
    arena_leave_plan(arena);
    // It is not to be taken up again.
    arena.declined = {};
    ++arena.serial;
    return;
  }
  const std::uint64_t generation = arena.plan->generation;
  const std::uint64_t releases = arena.releases;
  if (captures_are_open()) return;
  const auto follows = [&] {
    return arena.releases == releases && arena.plan != nullptr && arena.plan->generation == generation;
  };
  arena_leave_runs(arena, lock, arena.plan.get());
  if (!follows()) return;
  arena_send_pages(arena, lock, *arena.plan);
  if (!follows()) return;
  // What they had is the slab's.
  if (const std::size_t gone = arena.slab.gone_chunks(); gone != 0) {
    arena_free_chunks(arena, lock, gone);
    if (!follows()) return;
    arena.slab.refill(~std::size_t{0});
  }
  arena_begin_runs(arena, lock);
}

}  // namespace memopt::agent
