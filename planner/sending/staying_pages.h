// Pages of device memory in which blocks lie that live through all iterations, as blocks of a swap problem: what an
// agent can swap of such blocks, whose addresses are what they are, is whole pages, with all that lies in them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/iteration/kept_chunks.h"
#include "planner/swap/model/model.h"

namespace memopt::planner {

// Side by side; multiples of the chunk in which device memory is mapped.
struct StayingPages {
  std::uint64_t address;
  std::uint64_t bytes;

  bool operator==(const StayingPages&) const = default;
};

// What became of the persistent blocks of a problem.
struct GatheredPages {
  std::vector<StayingPages> pages;  // by address: the problem's persistent blocks from now on, in whole chunks
  std::uint64_t beside = 0;         // bytes, in whole chunks, of those that are none of the problem any more
};

// Pages in which a block of at least a chunk lies, and that something accesses, take the place of the problem's
// persistent blocks, which are its last: those in which the same blocks lie are one. They are accessed when one of
// these is. Not those in which one lies that is pinned. Blocks of less than a chunk by themselves are left out: an
// agent has them elsewhere, where nothing leaves. `persistent`: where the problem's persistent blocks lie, in its
// order; address 0 where that is no place of its own. `ranks`: of the problem's operations (IterationProblem). O(n log
// n) in blocks and operations.
GatheredPages gather_pages(std::span<const StayingBlock> persistent, std::uint64_t chunk_bytes, swap::Problem& problem,
                           std::vector<std::uint64_t>& ranks);

// All of them and what touches them are none of the problem any more. Returns what they hold: the pages in which they
// lie, and the bytes of those without a place of their own, each rounded up as it would be in a plan.
std::uint64_t leave_out_persistent(std::span<const StayingBlock> persistent, std::uint64_t chunk_bytes,
                                   swap::Problem& problem, std::vector<std::uint64_t>& ranks);

}  // namespace memopt::planner
