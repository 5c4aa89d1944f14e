// What a launch of an executable graph uses. The driver tells a graph's nodes and their parameters; they are read when
// an executable is made of it, updated to it, or given other parameters for a node, and a launch uses what they name.
// The blocks are looked up at each launch, as an address may mean another one by then.
//
// Where something can't be read (parameters of an unknown layout, a node of another kind, one that a kernel may change,
// a graph that kernels may launch) nothing is kept, and the launch counts as using everything.
//
// Any thread; noexcept. A map under a lock of its own.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "agent/operations/operations.h"

namespace memopt::agent {

struct GraphUses {
  // A copy from the host, which is made from what stands there at the launch. `node`: of the executable's graph; when
  // it is given something else, this memory may be gone.
  struct Payload {
    const void* from;
    std::size_t bytes;
    std::uint64_t to;
    CUgraphNode node;
  };

  bool known = true;
  bool shows_host = false;  // the host sees what a node does without a wait
  bool sets_half = false;   // a node fills memory with what may be half of an address
  std::uint32_t nodes = 0;
  std::vector<std::uint64_t> addresses;  // that may be of blocks
  std::vector<std::uint64_t> pinned;     // addresses of host memory that kernels were given
  std::vector<Payload> payloads;

  // Of one node each. What they throw (std::bad_alloc) is for the reader of the graph to catch.
  void add_launch(const LaunchCall& call);
  void add_copy(const CopyCall& call);
  void add_memset(const MemsetCall& call);
  void add_host_work() { shows_host = true; }
  // Of a node that names nothing, and of all others.
  void count_node() { ++nodes; }
};

// The executable graph's launches use this, instead of what is known.
void set_graph_uses(CUgraphExec graph, GraphUses uses) noexcept;
// Beside what is known: a node is given other parameters. `node`: null of one that can't be a copy. Where what it
// copied before can't be told from what others do, nothing is known any more.
void add_graph_uses(CUgraphExec graph, CUgraphNode node, const GraphUses& uses) noexcept;
// Of this one nothing is known any more; before the driver destroys it. Of none: a kernel may launch any of them.
void forget_graph_uses(CUgraphExec graph) noexcept;
void lose_all_graph_uses() noexcept;

// Null: everything.
std::shared_ptr<const GraphUses> uses_of(CUgraphExec graph) noexcept;

void forget_graph_uses_after_fork() noexcept;

}  // namespace memopt::agent
