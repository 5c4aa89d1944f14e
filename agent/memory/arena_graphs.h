// What captures name stays as it is for as long as a graph may use it (graph_names.h). Called by the hooks of captures
// and graphs; any thread, without the arena's lock.
#pragma once

#include <cuda.h>

#include "agent/memory/graph_names.h"

namespace memopt::agent {

// A capture on the stream begins, has made a graph or added to it, is over.
void note_capture_names(CUstream stream) noexcept;
void note_captured(CUstream stream, CUgraph graph) noexcept;
void note_capture_names_ended(CUstream stream) noexcept;

// After the driver's call: an executable or a clone was made; a graph is a part of another one, or an executable was
// updated to it; a graph is a part of one that is not known (null: such a part was handed out).
void note_graph_made(const void* from, const void* to) noexcept;
void note_graph_added(const void* from, const void* into) noexcept;
void note_graph_beyond_sight(const void* from) noexcept;

// Before the driver's call that destroys a graph or an executable, and after it: what no other one names may leave
// again, and is free if the program has freed it. What is queued of an executable goes on, and is waited for like all
// other use.
GraphNames::Captures begin_destroying_graph(const void* graph) noexcept;
void graph_destroyed(const void* graph, GraphNames::Captures captures, CUresult result) noexcept;

}  // namespace memopt::agent
