// Hooks of graphs: what of captures goes where, so that the agent knows how long a graph may use what they name.
#include "agent/memory/arena_graphs.h"
#include "preload/relief.h"
#include "preload/typed_hooks.h"

namespace memopt::preload::hooks {
namespace {

template <Hook hook, typename... Arguments>
CUresult instantiate(CUgraphExec* made, CUgraph graph, Arguments... arguments) noexcept {
  const CUresult result = with_relief([&] { return real<hook>()(made, graph, arguments...); });
  if (result == CUDA_SUCCESS && made != nullptr) agent::note_graph_made(graph, *made);
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
  if (result == CUDA_SUCCESS) agent::note_graph_added(graph, exec);
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
  const CUresult result = real<Hook::cuGraphExecNodeSetParams>()(exec, node, params);
  if (result == CUDA_SUCCESS && params != nullptr && params->type == CU_GRAPH_NODE_TYPE_GRAPH) {
    agent::note_graph_added(params->graph.graph, exec);
  }
  return result;
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) noexcept {
  const CUresult result = real<Hook::cuGraphExecChildGraphNodeSetParams>()(exec, node, child);
  if (result == CUDA_SUCCESS) agent::note_graph_added(child, exec);
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
CUresult cuGraphExecDestroy(CUgraphExec exec) noexcept { return destroy<Hook::cuGraphExecDestroy>(exec); }

}  // namespace memopt::preload::hooks
