#include "graph/graph_exec.h"

#include <algorithm>

namespace cudasim {
namespace {

// A node goes on with the lane of a node that it depends on, if no other node has yet; else it begins one.
void place_nodes(const Graph& graph, std::vector<GraphNode*> order, GraphExec& exec) {
  std::vector<const GraphNode*> last_of_lane(exec.lane_count, nullptr);
  for (GraphNode* node : order) {
    const auto continued = std::find_if(node->behind.begin(), node->behind.end(), [&](const GraphEdge& edge) {
      return last_of_lane[exec.lane_of.at(edge.from)] == edge.from;
    });
    const std::size_t lane = continued != node->behind.end() ? exec.lane_of.at(continued->from) : exec.lane_count++;
    last_of_lane.resize(exec.lane_count);
    last_of_lane[lane] = node;
    exec.lane_of[node] = lane;
  }
  for (const auto& node : graph.nodes) {
    const auto* child = std::get_if<ChildNode>(&node->work);
    if (child != nullptr) place_nodes(*child->graph, child->graph->in_order(), exec);
  }
}

bool acyclic(const Graph& graph) { return graph.in_order().size() == graph.nodes.size(); }

// Kinds of memory can't change, nor what is one-dimensional become something else.
bool same_kinds(const CUDA_MEMCPY3D& a, const CUDA_MEMCPY3D& b) {
  const auto flat = [](const CUDA_MEMCPY3D& copy) { return copy.Height <= 1 && copy.Depth <= 1; };
  return a.srcMemoryType == b.srcMemoryType && a.dstMemoryType == b.dstMemoryType && flat(a) == flat(b);
}

bool same_shape(const Graph& a, const Graph& b);

CUgraphExecUpdateResult changed(const NodeWork& from, const NodeWork& to) {
  if (from.index() != to.index()) return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
  if (const auto* copy = std::get_if<CopyNode>(&from)) {
    if (!same_kinds(copy->copy, std::get<CopyNode>(to).copy)) return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  }
  if (const auto* fill = std::get_if<FillNode>(&from)) {
    if ((fill->fill.height > 1) != (std::get<FillNode>(to).fill.height > 1))
      return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  }
  if (const auto* child = std::get_if<ChildNode>(&from)) {
    if (!same_shape(*child->graph, *std::get<ChildNode>(to).graph)) return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  }
  if (const auto* memory = std::get_if<AllocateNode>(&from)) {
    if (memory->memory->base != std::get<AllocateNode>(to).memory->base)
      return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  }
  if (const auto* memory = std::get_if<FreeNode>(&from)) {
    if (memory->address != std::get<FreeNode>(to).address) return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  }
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

// Of two nodes of the same place, by the places of the nodes they depend on.
const GraphNode* place_that_differs(const Graph& a, const Graph& b) {
  std::unordered_map<const GraphNode*, std::size_t> place;
  for (std::size_t i = 0; i < a.nodes.size(); ++i) place[a.nodes[i].get()] = place[b.nodes[i].get()] = i;
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    std::vector<std::size_t> of_a, of_b;
    for (const GraphEdge& edge : a.nodes[i]->behind) of_a.push_back(place.at(edge.from));
    for (const GraphEdge& edge : b.nodes[i]->behind) of_b.push_back(place.at(edge.from));
    std::sort(of_a.begin(), of_a.end());
    std::sort(of_b.begin(), of_b.end());
    if (of_a != of_b) return b.nodes[i].get();
  }
  return nullptr;
}

bool same_shape(const Graph& a, const Graph& b) {
  if (a.nodes.size() != b.nodes.size() || place_that_differs(a, b) != nullptr) return false;
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    if (changed(a.nodes[i]->work, b.nodes[i]->work) != CU_GRAPH_EXEC_UPDATE_SUCCESS) return false;
  }
  return true;
}

// What has no graph of its own is taken over; the clone of a child keeps its nodes, which lanes are known for.
void take_over(Graph& to, const Graph& from) {
  for (std::size_t i = 0; i < to.nodes.size(); ++i) {
    GraphNode& node = *to.nodes[i];
    const GraphNode& source = *from.nodes[i];
    if (const auto* child = std::get_if<ChildNode>(&source.work)) {
      take_over(*std::get<ChildNode>(node.work).graph, *child->graph);
    } else {
      node.work = source.work;
    }
    node.original = source.handle;
  }
}

CUresult failed(CUgraphExecUpdateResultInfo& info, CUgraphExecUpdateResult why, const GraphNode* node) {
  info.result = why;
  info.errorNode = node == nullptr ? nullptr : node->handle;
  return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

}  // namespace

void GraphExec::place() {
  order = graph->in_order();
  lane_of.clear();
  lane_count = 0;
  place_nodes(*graph, order, *this);
}

CUresult instantiate(const Graph& graph, cuuint64_t flags, std::unique_ptr<GraphExec>& out, CUgraphNode* fault) {
  constexpr cuuint64_t kKnown = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  if ((flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!acyclic(graph)) {
    const std::vector<GraphNode*> order = graph.in_order();
    for (const auto& node : graph.nodes) {
      if (std::find(order.begin(), order.end(), node.get()) != order.end()) continue;
      if (fault != nullptr) *fault = node->handle;
      break;
    }
    return CUDA_ERROR_INVALID_VALUE;
  }
  out = std::make_unique<GraphExec>();
  out->graph = graph.clone();
  out->flags = flags;
  out->place();
  return CUDA_SUCCESS;
}

CUresult replace_work(GraphNode& node, NodeWork work, CUgraphExecUpdateResult* why) {
  const CUgraphExecUpdateResult change = changed(node.work, work);
  if (why != nullptr) *why = change;
  if (change != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
  if (const auto* child = std::get_if<ChildNode>(&work)) {
    take_over(*std::get<ChildNode>(node.work).graph, *child->graph);
  } else {
    node.work = std::move(work);
  }
  return CUDA_SUCCESS;
}

CUresult update(GraphExec& exec, const Graph& graph, CUgraphExecUpdateResultInfo& info) {
  info = {CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr, nullptr};
  if (exec.graph->nodes.size() != graph.nodes.size())
    return failed(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const CUgraphExecUpdateResult change = changed(exec.graph->nodes[i]->work, graph.nodes[i]->work);
    if (change != CU_GRAPH_EXEC_UPDATE_SUCCESS) return failed(info, change, graph.nodes[i].get());
  }
  if (const GraphNode* node = place_that_differs(*exec.graph, graph))
    return failed(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node);
  take_over(*exec.graph, graph);
  return CUDA_SUCCESS;
}

}  // namespace cudasim
