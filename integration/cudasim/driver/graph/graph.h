// A graph: nodes in the order in which they were made, and edges. Not thread-safe: under the driver's lock, as all
// here.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "graph/node.h"

namespace cudasim {

struct GraphNode;

struct GraphEdge {
  GraphNode* from;
  GraphNode* to;
  CUgraphEdgeData data{};
};

struct GraphNode {
  CUgraphNode handle{};
  Graph* graph = nullptr;
  NodeWork work;
  std::vector<GraphEdge> behind;   // edges to this node, in the order in which they were made
  std::vector<GraphNode*> before;  // nodes with an edge from this one, the same way
  CUgraphNode original{};          // of a clone
  bool enabled = true;             // of an executable graph's
};

// Handles are numbers in a part of the address space where nothing lives, never used twice.
CUgraph next_graph_handle();
CUgraphNode next_node_handle();
CUgraphExec next_exec_handle();
CUuserObject next_object_handle();

struct Graph {
  CUgraph handle = next_graph_handle();
  std::vector<std::unique_ptr<GraphNode>> nodes;
  std::map<CUuserObject, unsigned> objects;  // held references
  CUgraph original{};                        // of a clone
  bool is_child = false;                     // owned by a node

  GraphNode& add(NodeWork work);
  void remove(GraphNode& node);
  bool has_edge(const GraphNode& from, const GraphNode& to) const;
  void connect(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data);
  void disconnect(GraphNode& from, GraphNode& to);
  // Every node behind those that it depends on, else in the order in which they were made. Fewer than there are: a
  // cycle.
  std::vector<GraphNode*> in_order() const;
  // In an order of their own: with children and all; handles are new, `original` says whose clone each is.
  std::shared_ptr<Graph> clone() const;
  GraphNode* clone_of(CUgraphNode original_handle) const;
  bool has_memory_nodes() const;
  // So many bytes that nodes of the graph have allocated before and freed again, all in front of a node behind these:
  // an address may serve several allocations of a graph whose lifetimes do not overlap (CUDA Programming Guide, "Graph
  // Memory Nodes", "Address Reuse within a Graph"). Only as many exactly: what else CUDA makes of it is not said. Null:
  // there are none. O(nodes and edges).
  GraphMemoryPtr freed_before(std::span<GraphNode* const> behind, std::size_t size) const;
};

}  // namespace cudasim
