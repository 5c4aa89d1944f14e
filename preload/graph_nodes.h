// Reads from the driver what the nodes of a graph name, for the agent (agent/operations/graph_uses.h).
//
// Called by hooks in which the program gives up its graph to the driver for the time of the call: no other thread of
// it may change the graph then.
#pragma once

#include "agent/operations/graph_uses.h"
#include "preload/hook_table.h"

namespace memopt::preload {

// All nodes, those of child graphs too. What can't be read: GraphUses::known is false.
agent::GraphUses uses_of_graph(CUgraph graph) noexcept;

// Of one node's parameters.
agent::GraphUses uses_of_node(const CUDA_KERNEL_NODE_PARAMS_v1& node) noexcept;
agent::GraphUses uses_of_node(const CUDA_KERNEL_NODE_PARAMS_v2& node) noexcept;
agent::GraphUses uses_of_node(const CUDA_MEMCPY3D& node) noexcept;
agent::GraphUses uses_of_node(const CUDA_MEMSET_NODE_PARAMS_v1& node) noexcept;
agent::GraphUses uses_of_node(const CUgraphNodeParams& node) noexcept;

}  // namespace memopt::preload
