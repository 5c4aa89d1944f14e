// Graphs as such: nodes, edges, clones, user objects. What nodes do is in graph_nodes.cpp, what is launched in
// graph_exec.cpp.
#define __CUDA_API_VERSION_INTERNAL
#include <algorithm>
#include <cstdio>
#include <functional>

#include "api/graph_call.h"
#include "pools.h"

using namespace cudasim;

namespace {

// Arrays as all these calls give them out: without one, how many there are; else as many as fit, the rest is null.
template <class Item, class Value>
CUresult tell(const std::vector<Item>& items, size_t* count, const std::function<Value(const Item&)>& value,
              Value* out) {
  for (std::size_t i = 0; out != nullptr && i < *count; ++i) out[i] = i < items.size() ? value(items[i]) : Value{};
  if (out == nullptr || *count > items.size()) *count = items.size();
  return CUDA_SUCCESS;
}

CUresult tell_nodes(const std::vector<GraphNode*>& nodes, CUgraphNode* out, size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return tell<GraphNode*, CUgraphNode>(
      nodes, count, [](GraphNode* const& node) { return node->handle; }, out);
}

bool plain(const CUgraphEdgeData& edge) { return edge.type == 0 && edge.from_port == 0 && edge.to_port == 0; }

// Without a place for what the edges say, edges that say something are an error.
CUresult tell_edges(const std::vector<GraphEdge>& edges, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                    size_t* count) {
  if (count == nullptr || (from == nullptr && to == nullptr && data != nullptr)) return CUDA_ERROR_INVALID_VALUE;
  const bool said = std::any_of(edges.begin(), edges.end(), [](const GraphEdge& edge) { return !plain(edge.data); });
  if (said && data == nullptr && (from != nullptr || to != nullptr)) return CUDA_ERROR_LOSSY_QUERY;
  const size_t room = *count;
  size_t had = room;
  tell<GraphEdge, CUgraphNode>(
      edges, &had, [](const GraphEdge& edge) { return edge.from->handle; }, from);
  had = room;
  tell<GraphEdge, CUgraphEdgeData>(
      edges, &had, [](const GraphEdge& edge) { return edge.data; }, data);
  had = room;
  tell<GraphEdge, CUgraphNode>(
      edges, &had, [](const GraphEdge& edge) { return edge.to->handle; }, to);
  *count = from == nullptr && to == nullptr ? edges.size() : std::min(room, edges.size());
  return CUDA_SUCCESS;
}

CUresult get_edges(CallSite& site, CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                   size_t* count) {
  return on_graph(site, handle, [&](Driver&, const std::shared_ptr<Graph>& graph) {
    if ((from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    std::vector<GraphEdge> edges;
    for (const auto& node : graph->nodes) edges.insert(edges.end(), node->behind.begin(), node->behind.end());
    return tell_edges(edges, from, to, data, count);
  });
}

CUresult get_dependencies(CallSite& site, CUgraphNode handle, CUgraphNode* out, CUgraphEdgeData* data, size_t* count) {
  return on_node(site, handle,
                 [&](Driver&, GraphNode& node) { return tell_edges(node.behind, out, nullptr, data, count); });
}

CUresult get_dependents(CallSite& site, CUgraphNode handle, CUgraphNode* out, CUgraphEdgeData* data, size_t* count) {
  return on_node(site, handle, [&](Driver&, GraphNode& node) {
    std::vector<GraphEdge> edges;
    for (const GraphNode* after : node.before) {
      for (const GraphEdge& edge : after->behind) {
        if (edge.from == &node) edges.push_back(edge);
      }
    }
    return tell_edges(edges, nullptr, out, data, count);
  });
}

CUresult change_edges(CallSite& site, CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                      const CUgraphEdgeData* data, size_t count, bool add) {
  return on_graph(site, handle, [&](Driver& driver, const std::shared_ptr<Graph>& graph) {
    if (count != 0 && (from == nullptr || to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    if (!add && count != 0 && graph->has_memory_nodes()) return CUDA_ERROR_NOT_SUPPORTED;
    std::vector<GraphEdge> edges;
    for (std::size_t i = 0; i < count; ++i) {
      GraphNode* const a = driver.graphs->find(from[i]);
      GraphNode* const b = driver.graphs->find(to[i]);
      if (a == nullptr || b == nullptr || a == b || a->graph != graph.get() || b->graph != graph.get())
        return CUDA_ERROR_INVALID_VALUE;
      if (graph->has_edge(*a, *b) == add) return CUDA_ERROR_INVALID_VALUE;
      edges.push_back({a, b, data != nullptr ? data[i] : CUgraphEdgeData{}});
    }
    for (const GraphEdge& edge : edges) {
      add ? graph->connect(*edge.from, *edge.to, edge.data) : graph->disconnect(*edge.from, *edge.to);
    }
    return CUDA_SUCCESS;
  });
}

const char* name_of(CUgraphNodeType type) {
  static constexpr const char* kNames[] = {"KERNEL", "MEMCPY", "MEMSET",       "HOST",      "GRAPH",     "EMPTY",
                                           "WAIT",   "RECORD", "EXT_SEM_SIGN", "EXT_SEM_W", "MEM_ALLOC", "MEM_FREE"};
  return std::size_t(type) < std::size(kNames) ? kNames[type] : "OTHER";
}

}  // namespace

CUDASIM_API cuGraphCreate(CUgraph* out, unsigned int flags) {
  static CallSite site{"cuGraphCreate"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *out = driver.graphs->add(std::make_shared<Graph>());
    return CUDA_SUCCESS;
  });
}
CUDASIM_API cuGraphDestroy(CUgraph handle) {
  static CallSite site{"cuGraphDestroy"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) { return driver.graphs->destroy(handle); });
}
// Memory nodes belong to one graph.
CUDASIM_API cuGraphClone(CUgraph* out, CUgraph handle) {
  static CallSite site{"cuGraphClone"};
  return on_graph(site, handle, [&](Driver& driver, const std::shared_ptr<Graph>& graph) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (graph->has_memory_nodes()) return CUDA_ERROR_NOT_SUPPORTED;
    *out = driver.graphs->add(graph->clone());
    return CUDA_SUCCESS;
  });
}
CUDASIM_API cuGraphNodeFindInClone(CUgraphNode* out, CUgraphNode original, CUgraph clone) {
  static CallSite site{"cuGraphNodeFindInClone"};
  return on_graph(site, clone, [&](Driver&, const std::shared_ptr<Graph>& graph) {
    const GraphNode* const node = graph->clone_of(original);
    if (out == nullptr || original == nullptr || node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = node->handle;
    return CUDA_SUCCESS;
  });
}
CUDASIM_API cuGraphDestroyNode(CUgraphNode handle) {
  static CallSite site{"cuGraphDestroyNode"};
  return on_node(site, handle, [](Driver& driver, GraphNode& node) {
    if (node.graph->has_memory_nodes()) return CUDA_ERROR_NOT_SUPPORTED;
    driver.graphs->captures.node_gone(node);
    node.graph->remove(node);
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  static CallSite site{"cuGraphGetNodes"};
  return on_graph(site, handle, [&](Driver&, const std::shared_ptr<Graph>& graph) {
    std::vector<GraphNode*> all;
    for (const auto& node : graph->nodes) all.push_back(node.get());
    return tell_nodes(all, nodes, count);
  });
}
CUDASIM_API cuGraphGetRootNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  static CallSite site{"cuGraphGetRootNodes"};
  return on_graph(site, handle, [&](Driver&, const std::shared_ptr<Graph>& graph) {
    std::vector<GraphNode*> roots;
    for (const auto& node : graph->nodes) {
      if (node->behind.empty()) roots.push_back(node.get());
    }
    return tell_nodes(roots, nodes, count);
  });
}
CUDASIM_API cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  static CallSite site{"cuGraphGetEdges"};
  return get_edges(site, graph, from, to, nullptr, count);
}
CUDASIM_API cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                               size_t* count) {
  static CallSite site{"cuGraphGetEdges_v2"};
  return get_edges(site, graph, from, to, data, count);
}
CUDASIM_API cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* out, size_t* count) {
  static CallSite site{"cuGraphNodeGetDependencies"};
  return get_dependencies(site, node, out, nullptr, count);
}
CUDASIM_API cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* out, CUgraphEdgeData* data, size_t* count) {
  static CallSite site{"cuGraphNodeGetDependencies_v2"};
  return get_dependencies(site, node, out, data, count);
}
CUDASIM_API cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* out, size_t* count) {
  static CallSite site{"cuGraphNodeGetDependentNodes"};
  return get_dependents(site, node, out, nullptr, count);
}
CUDASIM_API cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* out, CUgraphEdgeData* data, size_t* count) {
  static CallSite site{"cuGraphNodeGetDependentNodes_v2"};
  return get_dependents(site, node, out, data, count);
}
CUDASIM_API cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  static CallSite site{"cuGraphAddDependencies"};
  return change_edges(site, graph, from, to, nullptr, count, true);
}
CUDASIM_API cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData* data, size_t count) {
  static CallSite site{"cuGraphAddDependencies_v2"};
  return change_edges(site, graph, from, to, data, count, true);
}
CUDASIM_API cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  static CallSite site{"cuGraphRemoveDependencies"};
  return change_edges(site, graph, from, to, nullptr, count, false);
}
CUDASIM_API cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                         const CUgraphEdgeData* data, size_t count) {
  static CallSite site{"cuGraphRemoveDependencies_v2"};
  return change_edges(site, graph, from, to, data, count, false);
}

CUDASIM_API cuGraphDebugDotPrint(CUgraph handle, const char* path, unsigned int) {
  static CallSite site{"cuGraphDebugDotPrint"};
  return on_graph(site, handle, [&](Driver&, const std::shared_ptr<Graph>& graph) {
    if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::FILE* const file = std::fopen(path, "w");
    if (file == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
    std::fprintf(file, "digraph dot {\n");
    for (const auto& node : graph->nodes) {
      std::fprintf(file, "\"%p\" [label=\"%s\"];\n", static_cast<void*>(node->handle), name_of(type_of(node->work)));
      for (const GraphEdge& edge : node->behind) {
        std::fprintf(file, "\"%p\" -> \"%p\";\n", static_cast<void*>(edge.from->handle),
                     static_cast<void*>(node->handle));
      }
    }
    std::fprintf(file, "}\n");
    return std::fclose(file) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
  });
}

CUDASIM_API cuUserObjectCreate(CUuserObject* out, void* pointer, CUhostFn destroy, unsigned int count,
                               unsigned int flags) {
  static CallSite site{"cuUserObjectCreate"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    if (out == nullptr || destroy == nullptr || count == 0 || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
      return CUDA_ERROR_INVALID_VALUE;
    return driver.graphs->create_object(pointer, destroy, count, out);
  });
}
CUDASIM_API cuUserObjectRetain(CUuserObject object, unsigned int count) {
  static CallSite site{"cuUserObjectRetain"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) { return driver.graphs->retain(object, count); });
}
CUDASIM_API cuUserObjectRelease(CUuserObject object, unsigned int count) {
  static CallSite site{"cuUserObjectRelease"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) { return driver.graphs->release(object, count); });
}
CUDASIM_API cuGraphRetainUserObject(CUgraph handle, CUuserObject object, unsigned int count, unsigned int flags) {
  static CallSite site{"cuGraphRetainUserObject"};
  return on_graph(site, handle, [&](Driver& driver, const std::shared_ptr<Graph>& graph) {
    if ((flags & ~unsigned{CU_GRAPH_USER_OBJECT_MOVE}) != 0) return CUDA_ERROR_INVALID_VALUE;
    return driver.graphs->retain(*graph, object, count, flags != 0);
  });
}
CUDASIM_API cuGraphReleaseUserObject(CUgraph handle, CUuserObject object, unsigned int count) {
  static CallSite site{"cuGraphReleaseUserObject"};
  return on_graph(site, handle, [&](Driver& driver, const std::shared_ptr<Graph>& graph) {
    return driver.graphs->release(*graph, object, count);
  });
}

CUDASIM_API cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void* value) {
  static CallSite site{"cuDeviceGetGraphMemAttribute"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    return device != 0 ? CUDA_ERROR_INVALID_DEVICE : driver.pools->get_graph(attribute, value);
  });
}
CUDASIM_API cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void* value) {
  static CallSite site{"cuDeviceSetGraphMemAttribute"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    return device != 0 ? CUDA_ERROR_INVALID_DEVICE : driver.pools->set_graph(attribute, value);
  });
}
CUDASIM_API cuDeviceGraphMemTrim(CUdevice device) {
  static CallSite site{"cuDeviceGraphMemTrim"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    driver.pools->trim_graphs();
    return CUDA_SUCCESS;
  });
}
