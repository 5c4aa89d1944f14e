#include "graph/graphs.h"

#include <algorithm>
#include <functional>

#include "driver.h"
#include "pools.h"

namespace cudasim {
namespace {

// The graph itself, or one of its nodes' graphs.
std::shared_ptr<Graph> find_below(const std::shared_ptr<Graph>& graph, const std::function<bool(const Graph&)>& is) {
  if (is(*graph)) return graph;
  for (const auto& node : graph->nodes) {
    const auto* child = std::get_if<ChildNode>(&node->work);
    if (child == nullptr) continue;
    if (auto found = find_below(child->graph, is)) return found;
  }
  return nullptr;
}

}  // namespace

CUgraph Graphs::add(std::shared_ptr<Graph> graph) {
  const CUgraph handle = graph->handle;
  for (const auto& [object, count] : graph->objects)
    objects_.at(object).count += graph->original != nullptr ? count : 0;
  graphs_.emplace(handle, std::move(graph));
  return handle;
}

std::shared_ptr<Graph> Graphs::find(CUgraph handle) const {
  if (const auto found = graphs_.find(handle); found != graphs_.end()) return found->second;
  for (const auto& [top, graph] : graphs_) {
    if (auto child = find_below(graph, [&](const Graph& one) { return one.handle == handle; })) return child;
  }
  return nullptr;
}

CUresult Graphs::destroy(CUgraph handle) {
  const auto found = graphs_.find(handle);
  if (found == graphs_.end()) return CUDA_ERROR_INVALID_VALUE;
  const std::shared_ptr<Graph> graph = found->second;
  graphs_.erase(found);
  for (const auto& node : graph->nodes) captures.node_gone(*node);
  release_all(*graph);
  return CUDA_SUCCESS;
}

CUgraph Graphs::known_while_captured(const Capture& capture) {
  if (!find(capture.graph->handle)) add(capture.graph);
  return capture.graph->handle;
}

GraphNode* Graphs::find(CUgraphNode handle) const {
  GraphNode* node = nullptr;
  const auto has = [&](const Graph& graph) {
    for (const auto& one : graph.nodes) {
      if (one->handle == handle) node = one.get();
    }
    return node != nullptr;
  };
  for (const auto& [top, graph] : graphs_) {
    if (find_below(graph, has)) break;
  }
  return node;
}

CUgraphExec Graphs::add(std::unique_ptr<GraphExec> exec) {
  const CUgraphExec handle = exec->handle;
  for (const auto& [object, count] : exec->graph->objects) objects_.at(object).count += count;
  execs_.emplace(handle, std::move(exec));
  return handle;
}

GraphExec* Graphs::find(CUgraphExec handle) const {
  const auto found = execs_.find(handle);
  return found == execs_.end() ? nullptr : found->second.get();
}

bool Graphs::is_instantiated(CUgraph graph) const {
  return std::any_of(execs_.begin(), execs_.end(),
                     [&](const auto& one) { return one.second->graph->original == graph; });
}

CUresult Graphs::destroy(CUgraphExec handle) {
  const auto found = execs_.find(handle);
  if (found == execs_.end()) return CUDA_ERROR_INVALID_VALUE;
  const std::unique_ptr<GraphExec> exec = std::move(found->second);
  execs_.erase(found);
  release_lanes(driver_, *exec);
  release_all(*exec->graph);
  return CUDA_SUCCESS;
}

// --- user objects

CUresult Graphs::create_object(void* pointer, CUhostFn destructor, unsigned count, CUuserObject* out) {
  const CUuserObject handle = next_object_handle();
  objects_.emplace(handle, UserObject{pointer, destructor, count});
  *out = handle;
  return CUDA_SUCCESS;
}

CUresult Graphs::retain(CUuserObject object, unsigned count) {
  const auto found = objects_.find(object);
  if (found == objects_.end() || count == 0) return CUDA_ERROR_INVALID_VALUE;
  found->second.count += count;
  return CUDA_SUCCESS;
}

// The program's function may not call CUDA, and runs without the lock, on the thread of host functions.
CUresult Graphs::release(CUuserObject object, unsigned count) {
  const auto found = objects_.find(object);
  if (found == objects_.end() || count == 0 || count > found->second.count) return CUDA_ERROR_INVALID_VALUE;
  if ((found->second.count -= count) != 0) return CUDA_SUCCESS;
  const UserObject gone = found->second;
  objects_.erase(found);
  driver_.engine.impl().callbacks.post([gone] { gone.destructor(gone.pointer); }, [] {});
  return CUDA_SUCCESS;
}

CUresult Graphs::retain(Graph& graph, CUuserObject object, unsigned count, bool move) {
  const auto found = objects_.find(object);
  if (found == objects_.end() || count == 0) return CUDA_ERROR_INVALID_VALUE;
  if (!move) found->second.count += count;
  graph.objects[object] += count;
  return CUDA_SUCCESS;
}

CUresult Graphs::release(Graph& graph, CUuserObject object, unsigned count) {
  const auto held = graph.objects.find(object);
  if (held == graph.objects.end() || count == 0 || count > held->second) return CUDA_ERROR_INVALID_VALUE;
  if ((held->second -= count) == 0) graph.objects.erase(held);
  return release(object, count);
}

void Graphs::release_all(Graph& graph) {
  for (const auto& [object, count] : graph.objects) release(object, count);
  graph.objects.clear();
}

CUresult Graphs::allocate(ContextId context, const Graph& graph, std::span<GraphNode* const> behind, std::size_t size,
                          GraphMemoryPtr& out) {
  out = graph.freed_before(behind, size);
  if (out != nullptr) return CUDA_SUCCESS;
  CUdeviceptr base = 0;
  const CUresult result = driver_.pools->give_to_graph(context, size, &base);
  if (result != CUDA_SUCCESS) return result;
  out = std::make_shared<GraphMemory>(driver_, base, size);
  memory_[base] = out;
  return CUDA_SUCCESS;
}

GraphMemoryPtr Graphs::find_memory(CUdeviceptr base) const {
  const auto found = memory_.find(base);
  return found == memory_.end() ? nullptr : found->second.lock();
}

}  // namespace cudasim
