// From an iteration to what has to be placed: every malloc of it with its lifetime, as the union over what was
// observed.
//
// Time is the *rank* of an operation among all operations of one iteration, over all lanes. Threads interleave
// differently each time; the order of the last repeat counts, and where the two repeats differ, a block is born at the
// smaller rank and freed at the larger. The boundary of the iteration (rank 0) is where the fewest bytes live across.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/iteration/detection.h"
#include "planner/iteration/kept_chunks.h"
#include "planner/iteration/operation_store.h"

namespace memopt::planner {

struct MallocLife {
  std::uint32_t operation;  // the malloc in the last repeat
  std::uint64_t bytes;      // as the program asks
  std::uint64_t return_address;
  std::uint64_t born;    // rank
  std::uint64_t freed;   // rank, plus `operations` for each boundary it lies behind
  std::uint32_t places;  // used in turn; 0: never placed, as it is unsteady
  bool always;           // its places are needed all the time: there are several, or it stands for several mallocs
};

// Whoever follows a lane sees sizes and return addresses of its mallocs only. Where these are a shorter sequence
// several times over, the same place of each part cannot be told from the others. Joined, they are one malloc, with
// enough places used in turn for all of them.
struct LaneMallocs {
  std::uint32_t lane;                     // as the program's records say
  std::uint32_t match;                    // see match_length
  std::uint32_t parts;                    // how many times over the sequence is a shorter one
  std::vector<MallocLife> mallocs;        // joined: those of one part
  std::vector<std::uint32_t> operations;  // the mallocs one by one: parts * mallocs.size()
  // Where the parts are told from each other by them, and `parts` is 1 for it: of each malloc, how many launches,
  // copies and memsets of the lane lie behind the malloc before it. Else empty.
  std::vector<std::uint64_t> gaps;
};

// Addresses of the slab, in which the places of plans lie (docs/formats/wire.md, state).
struct SlabRange {
  std::uint64_t begin = 0;  // 0: there is none
  std::uint64_t bytes = 0;
  std::uint64_t chunk_bytes = 0;  // in which the agent maps memory; 0: it keeps no chunks for plans
  std::vector<KeptChunk> chunks;  // that plans so far have kept

  bool contains(const Block& block) const { return begin != 0 && block.address - begin < bytes; }
};

// Bytes of the slab that a block has which stays: it was put there when an earlier plan was live, or lies in a chunk
// that is kept. They are in the way of places.
struct BlockInSlab {
  std::uint64_t offset;
  std::uint64_t bytes;
};

struct IterationLifetimes {
  std::uint64_t operations = 0;
  std::uint64_t signature = 0;
  std::vector<LaneMallocs> lanes;            // only those that allocate; first the one that allocates most
  std::vector<std::uint32_t> persistent;     // blocks of the store
  std::vector<StayingBlock> staying;         // where these lie, in their order; address 0: in the slab
  std::vector<BlockInSlab> in_slab;          // what of them lies in the slab, by offset
  std::vector<KeptChunk> kept_chunks;        // in which some of it does
  std::uint64_t persistent_bytes = 0;        // of them that do not
  std::uint64_t peak_load = 0;               // of live bytes, persistent blocks included
  std::vector<std::uint64_t> sizes_at_peak;  // bytes of each that is placed and live then
  std::uint64_t crossing_bytes = 0;          // live across the boundary, without persistent blocks
  std::uint64_t first_iteration = 0;         // sequence of the operation with which the first observed iteration began
  // Operations of one iteration by rank: the last repeat's. The first `unwrapped` stand at and behind the boundary, the
  // others before it.
  std::vector<std::uint32_t> order;
  std::uint64_t unwrapped = 0;
};

// Unsteady are mallocs whose blocks are freed within the iteration, in both repeats, of which one has outlived two
// iterations before: as gradients do that the first of several batches makes and the others add to. At its place, such
// a block is in the way of others for as long. kNotPlaced: of these, and of what cannot be told from them, `places`
// is 0, and an agent serves them as if there was no plan.
enum class Unsteady : std::uint8_t { kPlaced, kNotPlaced };

// `joined`: mallocs that cannot be told from each other become one, see LaneMallocs.
IterationLifetimes lifetimes(const OperationStore& store, const Iteration& iteration, bool joined,
                             const SlabRange& slab = {}, Unsteady unsteady = Unsteady::kPlaced);

// Blocks that stay are left in chunks which are the slab's otherwise (planner/iteration/kept_chunks.h); to be said
// once, for lifetimes in which they are beside it. `sizes`, `left_out`: as there; the latter may be
// among slab.chunks.
void keep_chunks(IterationLifetimes* lifetimes, const SlabRange& slab, std::span<const std::uint64_t> sizes,
                 std::span<const KeptChunk> left_out = {});

// Mallocs one by one that are not placed.
std::size_t not_placed(const IterationLifetimes& lifetimes);

// Blocks that live through all repeats and are not placed; in order of their numbers.
std::vector<std::uint32_t> persistent_blocks(const OperationStore& store, const Iteration& iteration);

// How many places must be used in turn so that a place is free again when its turn comes: the smallest k with
// k * operations > freed - born.
constexpr std::uint64_t places_needed(std::uint64_t born, std::uint64_t freed, std::uint64_t operations) {
  return (freed - born) / operations + 1;
}

// The shortest sequence that this one is a whole number of times; its length if there is none.
std::size_t inner_period(const std::vector<std::uint64_t>& sequence);

// The smallest M such that the last M elements of the cyclic sequence occur nowhere else in it, but for places a
// multiple of the inner period away. At most the length.
std::uint32_t match_length(const std::vector<std::uint64_t>& sequence);

}  // namespace memopt::planner
