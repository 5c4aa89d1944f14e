// An executable graph: a clone of its own, whose nodes lie on lanes.
#pragma once
#include <unordered_map>

#include "graph/graph.h"

namespace cudasim {

struct GraphExec {
  CUgraphExec handle = next_exec_handle();
  std::shared_ptr<Graph> graph;
  cuuint64_t flags = 0;
  std::vector<GraphNode*> order;
  std::unordered_map<const GraphNode*, std::size_t> lane_of;  // of this graph and of the graphs of its nodes
  std::size_t lane_count = 0;

  // Made at the first launch, in the context of its stream.
  ContextId context = ContextId::kNone;
  std::vector<StreamPtr> lanes;
  OperationPtr last;  // the end of the last launch

  GraphNode* node_of(CUgraphNode original) const { return graph->clone_of(original); }
  void place();  // order and lanes; anew when a child graph was replaced
};

// CUDA_SUCCESS, or why not, with the node that is at fault. Edges that form a cycle: CUDA_ERROR_INVALID_VALUE.
CUresult instantiate(const Graph& graph, cuuint64_t flags, std::unique_ptr<GraphExec>& out, CUgraphNode* fault);

// A node's new work in place of its old one. CUDA_ERROR_INVALID_VALUE where an executable graph can't change so much.
CUresult replace_work(GraphNode& node, NodeWork work, CUgraphExecUpdateResult* why);

// The whole of `graph` in place of what `exec` has. Nothing is changed where it fails.
CUresult update(GraphExec& exec, const Graph& graph, CUgraphExecUpdateResultInfo& info);

// Queues all of it on `stream`, as one piece.
CUresult launch_graph(Driver& driver, GraphExec& exec, Stream& stream);
void release_lanes(Driver& driver, GraphExec& exec);

}  // namespace cudasim
