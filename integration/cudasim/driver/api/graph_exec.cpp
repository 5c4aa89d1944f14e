// Executable graphs: instantiation, launch, updates.
#define __CUDA_API_VERSION_INTERNAL
#include "api/graph_call.h"

using namespace cudasim;

namespace {

CUresult instantiate_graph(CallSite& site, CUgraphExec* out, CUgraph handle, cuuint64_t flags, CUgraphNode* fault,
                           CUgraphInstantiateResult* why = nullptr) {
  return on_graph(site, handle, [&](Driver& driver, const std::shared_ptr<Graph>& graph) {
    if (fault != nullptr) *fault = nullptr;
    if (why != nullptr) *why = CUDA_GRAPH_INSTANTIATE_ERROR;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    // Its memory has one place.
    if (graph->has_memory_nodes() && driver.graphs->is_instantiated(graph->handle)) return CUDA_ERROR_NOT_SUPPORTED;
    std::unique_ptr<GraphExec> exec;
    const CUresult result = instantiate(*graph, flags, exec, fault);
    if (result == CUDA_SUCCESS) *out = driver.graphs->add(std::move(exec));
    if (why != nullptr && result == CUDA_SUCCESS) *why = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    if (why != nullptr && result == CUDA_ERROR_INVALID_VALUE && fault != nullptr && *fault != nullptr)
      *why = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
    return result;
  });
}

CUresult with_log(CallSite& site, CUgraphExec* out, CUgraph graph, CUgraphNode* fault, char* log, size_t log_size) {
  if (log != nullptr && log_size != 0) log[0] = '\0';
  return instantiate_graph(site, out, graph, 0, fault);
}

CUresult with_parameters(CallSite& site, CUgraphExec* out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return instantiate_graph(site, out, graph, parameters->flags, &parameters->hErrNode_out, &parameters->result_out);
}

CUresult on_exec(CallSite& site, CUgraphExec handle, const std::function<CUresult(Driver&, GraphExec&)>& body) {
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    GraphExec* const exec = driver.graphs->find(handle);
    return exec == nullptr ? CUDA_ERROR_INVALID_VALUE : body(driver, *exec);
  });
}

CUresult launch(CallSite& site, CUgraphExec handle, CUstream stream, StreamMode mode) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    GraphExec* const exec = driver.graphs->find(handle);
    Stream* const found = driver.engine.find_stream(context, stream, mode);
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    Captures& captures = driver.graphs->captures;
    if (const CUresult bad = captures.use(*found); bad != CUDA_SUCCESS) return bad;
    if (found->capture == nullptr) return launch_graph(driver, *exec, *found);
    // In a capture it becomes a node of its own, with what is in it now.
    if (exec->graph->has_memory_nodes()) return CUDA_ERROR_NOT_SUPPORTED;
    std::shared_ptr<Graph> child = exec->graph->clone();
    child->is_child = true;
    captures.add(*found, ChildNode{std::move(child)});
    return CUDA_SUCCESS;
  });
}

// What an upload would do early, a launch does here at no cost.
CUresult upload(CallSite& site, CUgraphExec handle, CUstream stream, StreamMode mode) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    if (driver.graphs->find(handle) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Stream* const found = driver.engine.find_stream(context, stream, mode);
    return found == nullptr ? CUDA_ERROR_INVALID_HANDLE : driver.graphs->captures.wait_for(*found);
  });
}

CUresult update_exec(CallSite& site, CUgraphExec handle, CUgraph graph, CUgraphExecUpdateResultInfo& info) {
  return on_exec(site, handle, [&](Driver& driver, GraphExec& exec) {
    info = {CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
    const std::shared_ptr<Graph> found = driver.graphs->find(graph);
    return found == nullptr ? CUDA_ERROR_INVALID_VALUE : update(exec, *found, info);
  });
}

}  // namespace

CUDASIM_API cuGraphInstantiate(CUgraphExec* out, CUgraph graph, CUgraphNode* fault, char* log, size_t log_size) {
  static CallSite site{"cuGraphInstantiate"};
  return with_log(site, out, graph, fault, log, log_size);
}
CUDASIM_API cuGraphInstantiate_v2(CUgraphExec* out, CUgraph graph, CUgraphNode* fault, char* log, size_t log_size) {
  static CallSite site{"cuGraphInstantiate_v2"};
  return with_log(site, out, graph, fault, log, log_size);
}
CUDASIM_API cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long flags) {
  static CallSite site{"cuGraphInstantiateWithFlags"};
  return instantiate_graph(site, out, graph, flags & ~cuuint64_t{CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD}, nullptr);
}
CUDASIM_API cuGraphInstantiateWithParams(CUgraphExec* out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  static CallSite site{"cuGraphInstantiateWithParams"};
  return with_parameters(site, out, graph, parameters);
}
CUDASIM_API cuGraphInstantiateWithParams_ptsz(CUgraphExec* out, CUgraph graph,
                                              CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  static CallSite site{"cuGraphInstantiateWithParams_ptsz"};
  return with_parameters(site, out, graph, parameters);
}
CUDASIM_API cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t* flags) {
  static CallSite site{"cuGraphExecGetFlags"};
  return on_exec(site, exec, [&](Driver&, GraphExec& found) {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = found.flags & ~cuuint64_t{CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD};
    return CUDA_SUCCESS;
  });
}
CUDASIM_API cuGraphUpload(CUgraphExec exec, CUstream stream) {
  static CallSite site{"cuGraphUpload"};
  return upload(site, exec, stream, StreamMode::kLegacy);
}
CUDASIM_API cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream) {
  static CallSite site{"cuGraphUpload_ptsz"};
  return upload(site, exec, stream, StreamMode::kPerThread);
}
CUDASIM_API cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  static CallSite site{"cuGraphLaunch"};
  return launch(site, exec, stream, StreamMode::kLegacy);
}
CUDASIM_API cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) {
  static CallSite site{"cuGraphLaunch_ptsz"};
  return launch(site, exec, stream, StreamMode::kPerThread);
}
// Launches that run still do so to their end.
CUDASIM_API cuGraphExecDestroy(CUgraphExec exec) {
  static CallSite site{"cuGraphExecDestroy"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) { return driver.graphs->destroy(exec); });
}

// CUDA 10.2 told the node and the reason apart.
CUDASIM_API cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* fault, CUgraphExecUpdateResult* why) {
  static CallSite site{"cuGraphExecUpdate"};
  CUgraphExecUpdateResultInfo info{};
  const CUresult result = update_exec(site, exec, graph, info);
  if (fault != nullptr) *fault = info.errorNode;
  if (why != nullptr) *why = info.result;
  return result;
}
CUDASIM_API cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* out) {
  static CallSite site{"cuGraphExecUpdate_v2"};
  CUgraphExecUpdateResultInfo info{};
  const CUresult result = update_exec(site, exec, graph, info);
  if (out != nullptr) *out = info;
  return result;
}

CUDASIM_API cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode handle, unsigned int enabled) {
  static CallSite site{"cuGraphNodeSetEnabled"};
  return on_exec(site, exec, [&](Driver&, GraphExec& found) {
    GraphNode* const node = found.node_of(handle);
    if (node == nullptr || !can_be_disabled(node->work)) return CUDA_ERROR_INVALID_VALUE;
    node->enabled = enabled != 0;
    return CUDA_SUCCESS;
  });
}
CUDASIM_API cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode handle, unsigned int* enabled) {
  static CallSite site{"cuGraphNodeGetEnabled"};
  return on_exec(site, exec, [&](Driver&, GraphExec& found) {
    const GraphNode* const node = found.node_of(handle);
    if (enabled == nullptr || node == nullptr || !can_be_disabled(node->work)) return CUDA_ERROR_INVALID_VALUE;
    *enabled = node->enabled ? 1 : 0;
    return CUDA_SUCCESS;
  });
}
