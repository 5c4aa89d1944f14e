// Hooks of graphs: what of captures goes where, so that the agent knows how long a graph may use what they name; and
// what the launches of executable graphs use.
#include <utility>

#include "agent/memory/arena_graphs.h"
#include "agent/operations/graph_uses.h"
#include "preload/graph_nodes.h"
#include "preload/relief.h"
#include "preload/typed_hooks.h"

namespace memopt::preload::hooks {
namespace {

// Where nobody listens the graph is not read, and its launches will be of what is not known.
void note_uses(CUgraphExec exec, CUgraph graph) noexcept {
  if (agent::operations_are_watched()) {
    agent::set_graph_uses(exec, uses_of_graph(graph));
  } else {
    agent::forget_graph_uses(exec);
  }
}

cuuint64_t flags_of(cuuint64_t flags) noexcept { return flags; }
cuuint64_t flags_of(const CUDA_GRAPH_INSTANTIATE_PARAMS* params) noexcept { return params->flags; }
cuuint64_t flags_of(CUgraphNode*, char*, size_t) noexcept { return 0; }

template <Hook hook, typename... Arguments>
CUresult instantiate(CUgraphExec* made, CUgraph graph, Arguments... arguments) noexcept {
  const CUresult result = with_relief([&] { return real<hook>()(made, graph, arguments...); });
  if (result == CUDA_SUCCESS && made != nullptr) {
    agent::note_graph_made(graph, *made);
    if ((flags_of(arguments...) & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) agent::lose_all_graph_uses();
    note_uses(*made, graph);
  }
  return result;
}

bool may_copy(const CUDA_MEMCPY3D&) noexcept { return true; }
bool may_copy(const CUgraphNodeParams& params) noexcept {
  return params.type == CU_GRAPH_NODE_TYPE_MEMCPY || params.type == CU_GRAPH_NODE_TYPE_GRAPH;
}
template <typename KernelOrFill>
bool may_copy(const KernelOrFill&) noexcept {
  return false;
}

// A node of an executable graph is given other parameters.
template <Hook hook, typename Parameters, typename... Arguments>
CUresult set_node(CUgraphExec graph, CUgraphNode node, const Parameters* parameters, Arguments... more) noexcept {
  // Before the call: what is launched by another thread meanwhile has the one or the other.
  if (parameters != nullptr && agent::operations_are_watched()) {
    agent::add_graph_uses(graph, may_copy(*parameters) ? node : nullptr, uses_of_node(*parameters));
  }
  const CUresult result =
      with_relief([&] { return real<hook>()(graph, node, const_cast<Parameters*>(parameters), more...); });
  // What it has now is not said.
  if (result != CUDA_SUCCESS) agent::forget_graph_uses(graph);
  return result;
}

template <Hook hook, typename... Arguments>
CUresult add_node(CUgraphNode* node, CUgraph graph, const CUgraphNodeParams* params, Arguments... arguments) noexcept {
  const CUresult result = with_relief([&] { return real<hook>()(node, graph, arguments...); });
  if (result == CUDA_SUCCESS && params != nullptr && params->type == CU_GRAPH_NODE_TYPE_GRAPH) {
    agent::note_graph_added(params->graph.graph, graph);
  }
  return result;
}

template <Hook hook, typename... Arguments>
CUresult update(CUgraphExec exec, CUgraph graph, Arguments... arguments) noexcept {
  const CUresult result = with_relief([&] { return real<hook>()(exec, graph, arguments...); });
  if (result == CUDA_SUCCESS) {
    agent::note_graph_added(graph, exec);
    note_uses(exec, graph);
  } else {
    // What it has now is not said.
    agent::forget_graph_uses(exec);
  }
  return result;
}

template <Hook hook, typename Graph>
CUresult destroy(Graph graph) noexcept {
  // Before the call: once it is destroyed, its address may be that of another thread's.
  const agent::GraphNames::Captures captures = agent::begin_destroying_graph(graph);
  const CUresult result = real<hook>()(graph);
  agent::graph_destroyed(graph, captures, result);
  return result;
}

}  // namespace

CUresult cuGraphInstantiate(CUgraphExec* made, CUgraph graph, CUgraphNode* node, char* text, size_t bytes) noexcept {
  return instantiate<Hook::cuGraphInstantiate>(made, graph, node, text, bytes);
}
CUresult cuGraphInstantiate_v2(CUgraphExec* made, CUgraph graph, CUgraphNode* node, char* text, size_t bytes) noexcept {
  return instantiate<Hook::cuGraphInstantiate_v2>(made, graph, node, text, bytes);
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* made, CUgraph graph, unsigned long long flags) noexcept {
  return instantiate<Hook::cuGraphInstantiateWithFlags>(made, graph, flags);
}
CUresult cuGraphInstantiateWithParams(CUgraphExec* made, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* params) noexcept {
  return instantiate<Hook::cuGraphInstantiateWithParams>(made, graph, params);
}
CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec* made, CUgraph graph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS* params) noexcept {
  return instantiate<Hook::cuGraphInstantiateWithParams_ptsz>(made, graph, params);
}

CUresult cuGraphClone(CUgraph* made, CUgraph graph) noexcept {
  const CUresult result = real<Hook::cuGraphClone>()(made, graph);
  if (result == CUDA_SUCCESS && made != nullptr) agent::note_graph_made(graph, *made);
  return result;
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                  CUgraph child) noexcept {
  const CUresult result = real<Hook::cuGraphAddChildGraphNode>()(node, graph, dependencies, count, child);
  if (result == CUDA_SUCCESS) agent::note_graph_added(child, graph);
  return result;
}

CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                        CUgraphNodeParams* params) noexcept {
  return add_node<Hook::cuGraphAddNode>(node, graph, params, dependencies, count, params);
}
CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData* edges, size_t count, CUgraphNodeParams* params) noexcept {
  return add_node<Hook::cuGraphAddNode_v2>(node, graph, params, dependencies, edges, count, params);
}

// The graph within the node: what is made of it, or added to it, goes by a name that says nothing of the whole.
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph) noexcept {
  const CUresult result = real<Hook::cuGraphChildGraphNodeGetGraph>()(node, graph);
  if (result == CUDA_SUCCESS) agent::note_graph_beyond_sight(nullptr);
  return result;
}

// Of which graph the node is part is not known.
CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* params) noexcept {
  const CUresult result = real<Hook::cuGraphNodeSetParams>()(node, params);
  if (result == CUDA_SUCCESS && params != nullptr && params->type == CU_GRAPH_NODE_TYPE_GRAPH) {
    agent::note_graph_beyond_sight(params->graph.graph);
  }
  return result;
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params) noexcept {
  const CUresult result = set_node<Hook::cuGraphExecNodeSetParams>(exec, node, params);
  if (result == CUDA_SUCCESS && params != nullptr && params->type == CU_GRAPH_NODE_TYPE_GRAPH) {
    agent::note_graph_added(params->graph.graph, exec);
  }
  return result;
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* params) noexcept {
  return set_node<Hook::cuGraphExecKernelNodeSetParams>(exec, node, params);
}
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS_v2* params) noexcept {
  return set_node<Hook::cuGraphExecKernelNodeSetParams_v2>(exec, node, params);
}
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* params,
                                        CUcontext context) noexcept {
  return set_node<Hook::cuGraphExecMemcpyNodeSetParams>(exec, node, params, context);
}
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS_v1* params,
                                        CUcontext context) noexcept {
  return set_node<Hook::cuGraphExecMemsetNodeSetParams>(exec, node, params, context);
}
CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* params) noexcept {
  agent::forget_graph_uses(exec);
  return real<Hook::cuGraphExecBatchMemOpNodeSetParams>()(exec, node, params);
}

// Memory of the host's that a node names which is off may be gone.
CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int is_enabled) noexcept {
  agent::forget_graph_uses(exec);
  return real<Hook::cuGraphNodeSetEnabled>()(exec, node, is_enabled);
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) noexcept {
  if (agent::operations_are_watched()) agent::add_graph_uses(exec, node, uses_of_graph(child));
  const CUresult result = real<Hook::cuGraphExecChildGraphNodeSetParams>()(exec, node, child);
  if (result == CUDA_SUCCESS) {
    agent::note_graph_added(child, exec);
  } else {
    agent::forget_graph_uses(exec);
  }
  return result;
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* node,
                           CUgraphExecUpdateResult* outcome) noexcept {
  return update<Hook::cuGraphExecUpdate>(exec, graph, node, outcome);
}
CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* outcome) noexcept {
  return update<Hook::cuGraphExecUpdate_v2>(exec, graph, outcome);
}

CUresult cuGraphDestroy(CUgraph graph) noexcept { return destroy<Hook::cuGraphDestroy>(graph); }
CUresult cuGraphExecDestroy(CUgraphExec exec) noexcept {
  agent::forget_graph_uses(exec);
  return destroy<Hook::cuGraphExecDestroy>(exec);
}

}  // namespace memopt::preload::hooks
