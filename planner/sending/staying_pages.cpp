#include "planner/sending/staying_pages.h"

#include <algorithm>
#include <map>
#include <utility>

#include "planner/iteration/iteration_plan.h"
#include "planner/swap/model/liveness.h"
#include "shm/plan.h"

namespace memopt::planner {
namespace {

// Of addresses, and of pages in all: what comes from a program may be anything.
constexpr std::uint64_t kMost = std::uint64_t{1} << 60;
constexpr std::uint64_t kMostPages = std::uint64_t{1} << 20;

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

std::uint32_t first_persistent(const swap::Problem& problem) {
  const auto first = std::find_if(problem.blocks.begin(), problem.blocks.end(),
                                  [](const swap::Block& block) { return block.persistent; });
  return static_cast<std::uint32_t>(first - problem.blocks.begin());
}

// The operations of a problem with other blocks in the place of its persistent ones.
class Rewriter {
 public:
  // `becomes`: what each persistent block is from now on, in the problem's order; nothing: it is left out.
  Rewriter(swap::Problem& problem, std::vector<std::uint64_t>& ranks, std::uint32_t first,
           std::span<const std::vector<std::uint32_t>> becomes)
      : problem_(problem), old_ranks_(ranks), first_(first), becomes_(becomes) {
    operations_.reserve(ranks.size());
    ranks_.reserve(ranks.size());
  }

  void run() {
    const std::vector<swap::Operation>& old = problem_.operations;
    for (std::size_t begin = 0, end = 0; begin < old.size(); begin = end) {
      end = begin + 1;
      if (!swap::is_access(old[begin])) {
        add(begin, old[begin]);
        continue;
      }
      while (end < old.size() && old_ranks_[end] == old_ranks_[begin] && swap::is_access(old[end])) ++end;
      add_launch(begin, end);
    }
    problem_.operations = std::move(operations_);
    old_ranks_ = std::move(ranks_);
  }

 private:
  void add(std::size_t from, swap::Operation operation) {
    operations_.push_back(operation);
    ranks_.push_back(old_ranks_[from]);
  }

  // As IterationProblem has them: one access of each block, the last one having all the time, and then the others once
  // more.
  void add_launch(std::size_t begin, std::size_t end) {
    const std::vector<swap::Operation>& old = problem_.operations;
    const double from = old[begin].time;
    const double to = end < old.size() ? old[end].time : problem_.period;
    accesses_.clear();
    ++launches_;
    for (std::size_t i = begin; i < end && old[i].time == from; ++i) {
      swap::Operation one = old[i];
      if (one.block < first_) {
        accesses_.push_back(one);
        continue;
      }
      for (const std::uint32_t block : becomes_[one.block - first_]) {
        one.block = block;
        note_page(one);
      }
    }
    if (accesses_.empty()) {
      add(begin, {.time = from});
      return;
    }
    for (const swap::Operation& one : accesses_) add(begin, one);
    if (to <= from) return;
    accesses_.pop_back();
    for (swap::Operation& one : accesses_) {
      one.time = to;
      add(begin, one);
    }
  }

  // Two blocks may be the same page now.
  void note_page(const swap::Operation& one) {
    const std::size_t number = one.block - first_;
    if (number >= noted_.size()) noted_.resize(number + 1);
    auto& [launch, at] = noted_[number];
    if (launch != launches_) {
      launch = launches_;
      at = accesses_.size();
      accesses_.push_back(one);
    } else if (one.kind == swap::Kind::kWrite) {
      accesses_[at].kind = one.kind;
    }
  }

  swap::Problem& problem_;
  std::vector<std::uint64_t>& old_ranks_;
  std::uint32_t first_;
  std::span<const std::vector<std::uint32_t>> becomes_;
  std::vector<swap::Operation> operations_;
  std::vector<std::uint64_t> ranks_;
  std::vector<swap::Operation> accesses_;  // of a launch
  std::uint64_t launches_ = 0;
  std::vector<std::pair<std::uint64_t, std::size_t>> noted_;  // by page: in which launch, and where, it was noted last
};

struct Page {
  std::vector<std::uint32_t> blocks;  // persistent ones, in the problem's order
  bool large = false;                 // one of at least a chunk is among them
};

using Pages = std::map<std::uint64_t, Page>;  // by address

// Those of which no pages are looked at have no place: `places` is told.
Pages pages_of(std::span<const StayingBlock> persistent, std::uint64_t chunk_bytes, std::vector<bool>* places) {
  Pages pages;
  std::uint64_t left = kMostPages;
  for (std::uint32_t i = 0; i < persistent.size(); ++i) {
    const StayingBlock& block = persistent[i];
    if (block.address == 0 || block.bytes == 0 || block.bytes / chunk_bytes + 2 > left || block.address > kMost)
      continue;
    left -= block.bytes / chunk_bytes + 2;
    (*places)[i] = true;
    // An agent leaves a byte behind a block that is no multiple of a chunk.
    const bool exact = block.bytes % chunk_bytes == 0;
    const std::uint64_t end = block.address + (exact ? block.bytes : round_up(block.bytes + 1, shm::kPlanAlignment));
    for (std::uint64_t at = block.address / chunk_bytes * chunk_bytes; at < end; at += chunk_bytes) {
      Page& page = pages[at];
      page.blocks.push_back(i);
      page.large = page.large || block.bytes >= chunk_bytes;
    }
  }
  return pages;
}

}  // namespace

GatheredPages gather_pages(std::span<const StayingBlock> persistent, std::uint64_t chunk_bytes, swap::Problem& problem,
                           std::vector<std::uint64_t>& ranks) {
  GatheredPages result;
  const std::uint32_t first = first_persistent(problem);
  const std::size_t count = problem.blocks.size() - first;
  std::vector<bool> accessed(count);
  for (const swap::Operation& operation : problem.operations) {
    if (swap::is_access(operation) && operation.block >= first) accessed[operation.block - first] = true;
  }
  std::vector<bool> pinned(count);
  for (std::size_t i = 0; i < count; ++i) pinned[i] = problem.blocks[first + i].pinned;
  std::vector<std::vector<std::uint32_t>> becomes(count);
  problem.blocks.resize(first);
  std::uint64_t end = 0;  // of the last page that is the problem's
  const std::vector<std::uint32_t>* lie_there = nullptr;
  persistent = persistent.first(std::min(count, persistent.size()));
  std::vector<bool> has_pages(persistent.size());
  for (const auto& [address, page] : pages_of(persistent, chunk_bytes, &has_pages)) {
    const bool used =
        std::any_of(page.blocks.begin(), page.blocks.end(), [&](std::uint32_t block) { return accessed[block]; });
    const bool stays =
        std::any_of(page.blocks.begin(), page.blocks.end(), [&](std::uint32_t block) { return pinned[block]; });
    if (!page.large || !used || stays) {
      result.beside += chunk_bytes;
      continue;
    }
    if (address == end && *lie_there == page.blocks) {
      result.pages.back().bytes += chunk_bytes;
      problem.blocks.back().bytes += chunk_bytes;
    } else {
      for (const std::uint32_t block : page.blocks)
        becomes[block].push_back(static_cast<std::uint32_t>(problem.blocks.size()));
      result.pages.push_back({address, chunk_bytes});
      problem.blocks.push_back(
          {.id = problem.blocks.size(), .bytes = chunk_bytes, .persistent = true, .whole_chunks = true});
    }
    end = address + chunk_bytes;
    lie_there = &page.blocks;
  }
  for (std::size_t i = 0; i < persistent.size(); ++i) {
    if (!has_pages[i]) result.beside += round_up(std::min(persistent[i].bytes, kMost), shm::kPlanAlignment);
  }
  Rewriter(problem, ranks, first, becomes).run();
  return result;
}

std::uint64_t leave_out_persistent(std::span<const StayingBlock> persistent, std::uint64_t chunk_bytes,
                                   swap::Problem& problem, std::vector<std::uint64_t>& ranks) {
  const std::uint32_t first = first_persistent(problem);
  const std::size_t count = problem.blocks.size() - first;
  persistent = persistent.first(std::min(count, persistent.size()));
  std::vector<bool> has_pages(persistent.size());
  std::uint64_t bytes = pages_of(persistent, chunk_bytes, &has_pages).size() * chunk_bytes;
  for (std::size_t i = 0; i < count; ++i) {
    if (i >= has_pages.size() || !has_pages[i]) bytes += place_bytes(problem.blocks[first + i].bytes);
  }
  problem.blocks.resize(first);
  Rewriter(problem, ranks, first, std::vector<std::vector<std::uint32_t>>(count)).run();
  return bytes;
}

}  // namespace memopt::planner
