// What the entry points of graphs have in common.
#pragma once
#include <functional>
#include <memory>

#include "api/call.h"
#include "graph/graphs.h"

namespace cudasim {

// An unknown graph or node: CUDA_ERROR_INVALID_VALUE, as documented for all of them.
inline CUresult on_graph(CallSite& site, CUgraph handle,
                         const std::function<CUresult(Driver&, const std::shared_ptr<Graph>&)>& body) {
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    const std::shared_ptr<Graph> graph = driver.graphs->find(handle);
    return graph == nullptr ? CUDA_ERROR_INVALID_VALUE : body(driver, graph);
  });
}

inline CUresult on_node(CallSite& site, CUgraphNode handle, const std::function<CUresult(Driver&, GraphNode&)>& body) {
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    GraphNode* const node = driver.graphs->find(handle);
    return node == nullptr ? CUDA_ERROR_INVALID_VALUE : body(driver, *node);
  });
}

// A new node: of which graph, and behind which of its nodes.
struct NodePlace {
  const Graph* graph = nullptr;
  std::span<GraphNode* const> behind;
};
// The work of a node, from what the program said of it.
CUresult make_work(Driver& driver, ContextId context, const CUgraphNodeParams& parameters, NodeWork& out,
                   const NodePlace& place = {});

}  // namespace cudasim
