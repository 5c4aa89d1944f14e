#include "graph/graph.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace cudasim {
namespace {

constexpr std::uintptr_t kHandleStep = 0x100;

template <typename Handle>
Handle next_handle(std::uintptr_t& last) {
  return reinterpret_cast<Handle>(last += kHandleStep);
}

}  // namespace

CUgraph next_graph_handle() {
  static std::uintptr_t last = 0x0710'0000'0000;
  return next_handle<CUgraph>(last);
}
CUgraphNode next_node_handle() {
  static std::uintptr_t last = 0x0720'0000'0000;
  return next_handle<CUgraphNode>(last);
}
CUgraphExec next_exec_handle() {
  static std::uintptr_t last = 0x0730'0000'0000;
  return next_handle<CUgraphExec>(last);
}
CUuserObject next_object_handle() {
  static std::uintptr_t last = 0x0738'0000'0000;
  return next_handle<CUuserObject>(last);
}

GraphNode& Graph::add(NodeWork work) {
  auto node = std::make_unique<GraphNode>();
  node->handle = next_node_handle();
  node->graph = this;
  node->work = std::move(work);
  nodes.push_back(std::move(node));
  return *nodes.back();
}

void Graph::remove(GraphNode& node) {
  for (GraphNode* after : std::vector(node.before)) disconnect(node, *after);
  for (const GraphEdge& edge : std::vector(node.behind)) disconnect(*edge.from, node);
  std::erase_if(nodes, [&](const auto& one) { return one.get() == &node; });
}

bool Graph::has_edge(const GraphNode& from, const GraphNode& to) const {
  return std::find(from.before.begin(), from.before.end(), &to) != from.before.end();
}

void Graph::connect(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data) {
  to.behind.push_back({&from, &to, data});
  from.before.push_back(&to);
}

void Graph::disconnect(GraphNode& from, GraphNode& to) {
  std::erase_if(to.behind, [&](const GraphEdge& edge) { return edge.from == &from; });
  std::erase(from.before, &to);
}

std::vector<GraphNode*> Graph::in_order() const {
  std::unordered_map<const GraphNode*, std::size_t> missing;
  std::vector<GraphNode*> order;
  for (const auto& node : nodes) {
    missing[node.get()] = node->behind.size();
    if (node->behind.empty()) order.push_back(node.get());
  }
  for (std::size_t at = 0; at < order.size(); ++at) {
    for (GraphNode* after : order[at]->before) {
      if (--missing[after] == 0) order.push_back(after);
    }
  }
  return order;
}

std::shared_ptr<Graph> Graph::clone() const {
  auto copy = std::make_shared<Graph>();
  copy->original = handle;
  copy->objects = objects;
  std::unordered_map<const GraphNode*, GraphNode*> clones;
  for (const auto& node : nodes) {
    GraphNode& made = copy->add(node->work);
    made.original = node->handle;
    made.enabled = node->enabled;
    if (auto* child = std::get_if<ChildNode>(&made.work)) {
      child->graph = child->graph->clone();
      child->graph->is_child = true;
    }
    clones[node.get()] = &made;
  }
  for (const auto& node : nodes) {
    for (const GraphEdge& edge : node->behind) copy->connect(*clones.at(edge.from), *clones.at(node.get()), edge.data);
  }
  return copy;
}

GraphNode* Graph::clone_of(CUgraphNode original_handle) const {
  for (const auto& node : nodes) {
    if (node->original == original_handle) return node.get();
  }
  return nullptr;
}

GraphMemoryPtr Graph::freed_before(std::span<GraphNode* const> behind, std::size_t size) const {
  std::unordered_map<const GraphMemory*, int> open;  // allocations of the graph, and frees in front
  for (const auto& node : nodes) {
    const auto* const made = std::get_if<AllocateNode>(&node->work);
    if (made != nullptr && made->memory->size == size) ++open[made->memory.get()];
  }
  if (open.empty()) return nullptr;
  std::unordered_set<const GraphNode*> seen(behind.begin(), behind.end());
  std::vector<const GraphNode*> left(behind.begin(), behind.end());
  while (!left.empty()) {
    const GraphNode* const node = left.back();
    left.pop_back();
    if (const auto* const freed = std::get_if<FreeNode>(&node->work); freed != nullptr && freed->memory != nullptr) {
      const auto found = open.find(freed->memory.get());
      // Of any two allocations of it the free of one is in front of the other: as many frees are all of them.
      if (found != open.end() && --found->second == 0) return freed->memory;
    }
    for (const GraphEdge& edge : node->behind) {
      if (seen.insert(edge.from).second) left.push_back(edge.from);
    }
  }
  return nullptr;
}

bool Graph::has_memory_nodes() const {
  return std::any_of(nodes.begin(), nodes.end(), [](const auto& node) {
    if (const auto* child = std::get_if<ChildNode>(&node->work)) return child->graph->has_memory_nodes();
    return std::holds_alternative<AllocateNode>(node->work) || std::holds_alternative<FreeNode>(node->work);
  });
}

}  // namespace cudasim
