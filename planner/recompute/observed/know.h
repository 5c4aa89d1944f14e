// What launches read and write, from what was seen of them: of a recording, which blocks each names; of a text trace,
// lines that read and lines that write.
//
// Both are cautious: what is not known is taken such that a launch is not replayed, or its block not dropped, where it
// could be. ADR 0042 has the reasons, docs/formats/kernel-list.md what a person may add.
//
// The problems must be iterations (find_liveness); so are the results, of the same blocks, allocations and frees.
// Thread-safe.
#pragma once

#include "planner/recompute/observed/kernel_list.h"
#include "planner/recompute/observed/known.h"
#include "planner/recompute/observed/observation.h"

namespace memopt::recompute {

// The first launch, copy or memset that names a block behind its allocation makes it, as there is nothing in it to be
// read. Of the other blocks that a launch names, it may have changed each, so it counts as reading and writing it,
// unless the list says otherwise, or with `assume_reads`, where it makes a block and the list does not name it. Copies
// and memsets say what they read and write; of a part of a block they change it. Never replayed: copies from the host,
// launches whose parameters could not be read, that name a block which may not leave the device, memory that is no
// block of the iteration, or a kernel that the list says so of. All that lives while a launch runs whose parameters
// could not be read stays for as long as it lives.
//
// `problem`: with launches joined (planner/sending/swap_plan.h). O(n log n), and of each kernel what the list takes.
Known know_recording(const swap::Problem& problem, const Observation& seen, const KernelList& list, bool assume_reads);

// Reads and writes without any other line between are one launch: where one call ends is not in a trace, and what is
// taken together too much only has to be replayed together. A write may read, too, unless it is the first of its block,
// or it persists and nothing in the iteration reads it: a workspace; or, with `assume_writes`, unless the launch has a
// line that reads it. A launch that writes and reads nothing is not replayed. A write of a block right before its free,
// and of which the launch has no other line, is the pointer that is asked for to free it, and left out. A launch takes
// all the time until the next one that writes: in a trace of the host's calls most of it is that of whatever waits for
// the device.
//
// `problem`: an access an operation. O(n log n).
Known know_trace(const swap::Problem& problem, bool assume_writes = false);

}  // namespace memopt::recompute
