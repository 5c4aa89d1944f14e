// Nodes of graphs: making them, asking and changing what they do. All kinds go by way of CUgraphNodeParams
// (graph_work.cpp).
#define __CUDA_API_VERSION_INTERNAL
#include <algorithm>
#include <functional>

#include "api/graph_call.h"

namespace cudasim {
namespace {

struct Behind {
  const CUgraphNode* nodes;
  size_t count;
  const CUgraphEdgeData* data = nullptr;
};

CUresult add_node(CallSite& site, CUgraphNode* out, CUgraph handle, const Behind& behind,
                  const CUgraphNodeParams& parameters, GraphNode** made = nullptr) {
  return call(site, Needs::kInit, [&](Driver& driver, ContextId context) {
    const std::shared_ptr<Graph> graph = driver.graphs->find(handle);
    if (out == nullptr || graph == nullptr || (behind.count != 0 && behind.nodes == nullptr))
      return CUDA_ERROR_INVALID_VALUE;
    std::vector<GraphNode*> before;
    for (std::size_t i = 0; i < behind.count; ++i) {
      GraphNode* const node = driver.graphs->find(behind.nodes[i]);
      if (node == nullptr || node->graph != graph.get() ||
          std::find(before.begin(), before.end(), node) != before.end())
        return CUDA_ERROR_INVALID_VALUE;
      before.push_back(node);
    }
    NodeWork work;
    const CUresult bad = make_work(driver, context, parameters, work, {graph.get(), before});
    if (bad != CUDA_SUCCESS) return bad;
    GraphNode& node = graph->add(std::move(work));
    for (std::size_t i = 0; i < before.size(); ++i)
      graph->connect(*before[i], node, behind.data != nullptr ? behind.data[i] : CUgraphEdgeData{});
    *out = node.handle;
    if (made != nullptr) *made = &node;
    return CUDA_SUCCESS;
  });
}

// A node of a graph: anything may change but its kind.
CUresult set_node(CallSite& site, CUgraphNode handle, const CUgraphNodeParams& parameters) {
  return call(site, Needs::kInit, [&](Driver& driver, ContextId context) {
    GraphNode* const node = driver.graphs->find(handle);
    if (node == nullptr || type_of(node->work) != parameters.type) return CUDA_ERROR_INVALID_VALUE;
    if (parameters.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || parameters.type == CU_GRAPH_NODE_TYPE_MEM_FREE)
      return CUDA_ERROR_NOT_SUPPORTED;
    NodeWork work;
    if (const CUresult bad = make_work(driver, context, parameters, work); bad != CUDA_SUCCESS) return bad;
    node->work = std::move(work);
    return CUDA_SUCCESS;
  });
}

// A node of an executable graph, named by the node that it was made from.
CUresult set_exec_node(CallSite& site, CUgraphExec exec, CUgraphNode handle, const CUgraphNodeParams& parameters) {
  return call(site, Needs::kInit, [&](Driver& driver, ContextId context) {
    GraphExec* const found = driver.graphs->find(exec);
    GraphNode* const node = found == nullptr ? nullptr : found->node_of(handle);
    if (node == nullptr || type_of(node->work) != parameters.type) return CUDA_ERROR_INVALID_VALUE;
    if (parameters.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || parameters.type == CU_GRAPH_NODE_TYPE_MEM_FREE)
      return CUDA_ERROR_NOT_SUPPORTED;
    NodeWork work;
    if (const CUresult bad = make_work(driver, context, parameters, work); bad != CUDA_SUCCESS) return bad;
    return replace_work(*node, std::move(work), nullptr);
  });
}

template <class Work, class Out>
CUresult get(CallSite& site, CUgraphNode handle, Out* out, const std::function<Out(const Work&)>& value) {
  return on_node(site, handle, [&](Driver&, GraphNode& node) {
    const auto* const work = std::get_if<Work>(&node.work);
    if (work == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = value(*work);
    return CUDA_SUCCESS;
  });
}

// --- the structures of each kind

CUgraphNodeParams of_type(CUgraphNodeType type) {
  CUgraphNodeParams parameters{};
  parameters.type = type;
  return parameters;
}

template <class Parameters>
CUgraphNodeParams of_kernel(const Parameters& kernel) {
  CUgraphNodeParams parameters = of_type(CU_GRAPH_NODE_TYPE_KERNEL);
  CUDA_KERNEL_NODE_PARAMS_v3& to = parameters.kernel;
  to.func = kernel.func;
  to.gridDimX = kernel.gridDimX, to.gridDimY = kernel.gridDimY, to.gridDimZ = kernel.gridDimZ;
  to.blockDimX = kernel.blockDimX, to.blockDimY = kernel.blockDimY, to.blockDimZ = kernel.blockDimZ;
  to.sharedMemBytes = kernel.sharedMemBytes;
  to.kernelParams = kernel.kernelParams;
  to.extra = kernel.extra;
  if constexpr (requires { kernel.kern; }) {
    to.kern = kernel.kern;
    to.ctx = kernel.ctx;
  }
  return parameters;
}

template <class Parameters>
Parameters kernel_of(const KernelNode& node) {
  const KernelCall& call = *node.call;
  Parameters out{};
  out.func = call.function;
  out.gridDimX = call.grid[0], out.gridDimY = call.grid[1], out.gridDimZ = call.grid[2];
  out.blockDimX = call.block[0], out.blockDimY = call.block[1], out.blockDimZ = call.block[2];
  out.sharedMemBytes = call.shared_bytes;
  out.kernelParams = const_cast<void**>(call.pointers.data());
  if constexpr (requires { out.kern; }) {
    if (call.is_kernel) {
      out.func = nullptr;
      out.kern = reinterpret_cast<CUkernel>(call.function);
    }
  }
  return out;
}

CUgraphNodeParams of_copy(const CUDA_MEMCPY3D& copy, CUcontext context) {
  CUgraphNodeParams parameters = of_type(CU_GRAPH_NODE_TYPE_MEMCPY);
  parameters.memcpy.copyParams = copy;
  parameters.memcpy.copyCtx = context;
  return parameters;
}

CUgraphNodeParams of_fill(const CUDA_MEMSET_NODE_PARAMS& fill, CUcontext context) {
  CUgraphNodeParams parameters = of_type(CU_GRAPH_NODE_TYPE_MEMSET);
  parameters.memset = {fill.dst, fill.pitch, fill.value, fill.elementSize, fill.width, fill.height, context};
  return parameters;
}

CUgraphNodeParams of_host(const CUDA_HOST_NODE_PARAMS& host) {
  CUgraphNodeParams parameters = of_type(CU_GRAPH_NODE_TYPE_HOST);
  parameters.host.fn = host.fn;
  parameters.host.userData = host.userData;
  return parameters;
}

CUgraphNodeParams of_child(CUgraph graph) {
  CUgraphNodeParams parameters = of_type(CU_GRAPH_NODE_TYPE_GRAPH);
  parameters.graph.graph = graph;
  return parameters;
}

CUgraphNodeParams of_record(CUevent event) {
  CUgraphNodeParams parameters = of_type(CU_GRAPH_NODE_TYPE_EVENT_RECORD);
  parameters.eventRecord.event = event;
  return parameters;
}

CUgraphNodeParams of_wait(CUevent event) {
  CUgraphNodeParams parameters = of_type(CU_GRAPH_NODE_TYPE_WAIT_EVENT);
  parameters.eventWait.event = event;
  return parameters;
}

// What a null pointer makes of it.
CUgraphNodeParams nothing() {
  CUgraphNodeParams parameters = of_type(CU_GRAPH_NODE_TYPE_EMPTY);
  parameters.reserved0[0] = 1;  // which is refused
  return parameters;
}

}  // namespace
}  // namespace cudasim

using namespace cudasim;

#define ADD(name, parameters_type, parameters)                                                  \
  CUDASIM_API name(CUgraphNode* out, CUgraph graph, const CUgraphNode* behind, size_t count,    \
                   const parameters_type* of) {                                                 \
    static CallSite site{#name};                                                                \
    return add_node(site, out, graph, {behind, count}, of == nullptr ? nothing() : parameters); \
  }
ADD(cuGraphAddKernelNode, CUDA_KERNEL_NODE_PARAMS_v1, of_kernel(*of))
ADD(cuGraphAddKernelNode_v2, CUDA_KERNEL_NODE_PARAMS_v2, of_kernel(*of))
ADD(cuGraphAddHostNode, CUDA_HOST_NODE_PARAMS, of_host(*of))
#undef ADD

CUDASIM_API cuGraphAddMemcpyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* behind, size_t count,
                                 const CUDA_MEMCPY3D* copy, CUcontext context) {
  static CallSite site{"cuGraphAddMemcpyNode"};
  return add_node(site, out, graph, {behind, count}, copy == nullptr ? nothing() : of_copy(*copy, context));
}
CUDASIM_API cuGraphAddMemsetNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* behind, size_t count,
                                 const CUDA_MEMSET_NODE_PARAMS* fill, CUcontext context) {
  static CallSite site{"cuGraphAddMemsetNode"};
  return add_node(site, out, graph, {behind, count}, fill == nullptr ? nothing() : of_fill(*fill, context));
}
CUDASIM_API cuGraphAddChildGraphNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* behind, size_t count,
                                     CUgraph child) {
  static CallSite site{"cuGraphAddChildGraphNode"};
  return add_node(site, out, graph, {behind, count}, of_child(child));
}
CUDASIM_API cuGraphAddEmptyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* behind, size_t count) {
  static CallSite site{"cuGraphAddEmptyNode"};
  return add_node(site, out, graph, {behind, count}, of_type(CU_GRAPH_NODE_TYPE_EMPTY));
}
CUDASIM_API cuGraphAddEventRecordNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* behind, size_t count,
                                      CUevent event) {
  static CallSite site{"cuGraphAddEventRecordNode"};
  return add_node(site, out, graph, {behind, count}, of_record(event));
}
CUDASIM_API cuGraphAddEventWaitNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* behind, size_t count,
                                    CUevent event) {
  static CallSite site{"cuGraphAddEventWaitNode"};
  return add_node(site, out, graph, {behind, count}, of_wait(event));
}
CUDASIM_API cuGraphAddMemAllocNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* behind, size_t count,
                                   CUDA_MEM_ALLOC_NODE_PARAMS* of) {
  static CallSite site{"cuGraphAddMemAllocNode"};
  CUgraphNodeParams parameters = of == nullptr ? nothing() : of_type(CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  if (of != nullptr) parameters.alloc = {of->poolProps, of->accessDescs, of->accessDescCount, of->bytesize, 0};
  GraphNode* made = nullptr;
  const CUresult result = add_node(site, out, graph, {behind, count}, parameters, &made);
  if (result == CUDA_SUCCESS) of->dptr = std::get<AllocateNode>(made->work).memory->base;
  return result;
}
CUDASIM_API cuGraphAddMemFreeNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* behind, size_t count,
                                  CUdeviceptr address) {
  static CallSite site{"cuGraphAddMemFreeNode"};
  CUgraphNodeParams parameters = of_type(CU_GRAPH_NODE_TYPE_MEM_FREE);
  parameters.free.dptr = address;
  return add_node(site, out, graph, {behind, count}, parameters);
}
static CUresult add_any(CallSite& site, CUgraphNode* out, CUgraph graph, const CUgraphNode* behind,
                        const CUgraphEdgeData* data, size_t count, CUgraphNodeParams* of) {
  GraphNode* made = nullptr;
  const CUresult result = add_node(site, out, graph, {behind, count, data}, of == nullptr ? nothing() : *of, &made);
  if (result == CUDA_SUCCESS && of->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
    of->alloc.dptr = std::get<AllocateNode>(made->work).memory->base;
  if (result == CUDA_SUCCESS && of->type == CU_GRAPH_NODE_TYPE_GRAPH)
    of->graph.graph = std::get<ChildNode>(made->work).graph->handle;
  return result;
}
CUDASIM_API cuGraphAddNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* behind, size_t count,
                           CUgraphNodeParams* of) {
  static CallSite site{"cuGraphAddNode"};
  return add_any(site, out, graph, behind, nullptr, count, of);
}
CUDASIM_API cuGraphAddNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* behind, const CUgraphEdgeData* data,
                              size_t count, CUgraphNodeParams* of) {
  static CallSite site{"cuGraphAddNode_v2"};
  return add_any(site, out, graph, behind, data, count, of);
}

// --- what they do

CUDASIM_API cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
  static CallSite site{"cuGraphNodeGetType"};
  return on_node(site, handle, [&](Driver&, GraphNode& node) {
    if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *type = type_of(node.work);
    return CUDA_SUCCESS;
  });
}
CUDASIM_API cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* out) {
  static CallSite site{"cuGraphKernelNodeGetParams"};
  return get<KernelNode, CUDA_KERNEL_NODE_PARAMS_v1>(site, node, out, kernel_of<CUDA_KERNEL_NODE_PARAMS_v1>);
}
CUDASIM_API cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2* out) {
  static CallSite site{"cuGraphKernelNodeGetParams_v2"};
  return get<KernelNode, CUDA_KERNEL_NODE_PARAMS_v2>(site, node, out, kernel_of<CUDA_KERNEL_NODE_PARAMS_v2>);
}
CUDASIM_API cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* out) {
  static CallSite site{"cuGraphMemcpyNodeGetParams"};
  return get<CopyNode, CUDA_MEMCPY3D>(site, node, out, [](const CopyNode& work) { return work.copy; });
}
CUDASIM_API cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* out) {
  static CallSite site{"cuGraphMemsetNodeGetParams"};
  return get<FillNode, CUDA_MEMSET_NODE_PARAMS>(site, node, out, [](const FillNode& work) {
    const CUDA_MEMSET_NODE_PARAMS_v2& f = work.fill;
    return CUDA_MEMSET_NODE_PARAMS{f.dst, f.pitch, f.value, f.elementSize, f.width, f.height};
  });
}
CUDASIM_API cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* out) {
  static CallSite site{"cuGraphHostNodeGetParams"};
  return get<HostNode, CUDA_HOST_NODE_PARAMS>(site, node, out, [](const HostNode& work) {
    return CUDA_HOST_NODE_PARAMS{work.function, work.argument};
  });
}
CUDASIM_API cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* out) {
  static CallSite site{"cuGraphChildGraphNodeGetGraph"};
  return get<ChildNode, CUgraph>(site, node, out, [](const ChildNode& work) { return work.graph->handle; });
}
CUDASIM_API cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* out) {
  static CallSite site{"cuGraphEventRecordNodeGetEvent"};
  return get<RecordNode, CUevent>(site, node, out, [](const RecordNode& work) { return work.event->handle; });
}
CUDASIM_API cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* out) {
  static CallSite site{"cuGraphEventWaitNodeGetEvent"};
  return get<WaitNode, CUevent>(site, node, out, [](const WaitNode& work) { return work.event->handle; });
}
CUDASIM_API cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* out) {
  static CallSite site{"cuGraphMemAllocNodeGetParams"};
  return get<AllocateNode, CUDA_MEM_ALLOC_NODE_PARAMS>(site, node, out, [](const AllocateNode& work) {
    return CUDA_MEM_ALLOC_NODE_PARAMS{work.properties, nullptr, 0, work.memory->size, work.memory->base};
  });
}
CUDASIM_API cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* out) {
  static CallSite site{"cuGraphMemFreeNodeGetParams"};
  return get<FreeNode, CUdeviceptr>(site, node, out, [](const FreeNode& work) { return work.address; });
}

#define SET(name, exec_name, parameters_type, parameters)                                \
  CUDASIM_API name(CUgraphNode node, const parameters_type* of) {                        \
    static CallSite site{#name};                                                         \
    return set_node(site, node, of == nullptr ? nothing() : parameters);                 \
  }                                                                                      \
  CUDASIM_API exec_name(CUgraphExec exec, CUgraphNode node, const parameters_type* of) { \
    static CallSite site{#exec_name};                                                    \
    return set_exec_node(site, exec, node, of == nullptr ? nothing() : parameters);      \
  }
SET(cuGraphKernelNodeSetParams, cuGraphExecKernelNodeSetParams, CUDA_KERNEL_NODE_PARAMS_v1, of_kernel(*of))
SET(cuGraphKernelNodeSetParams_v2, cuGraphExecKernelNodeSetParams_v2, CUDA_KERNEL_NODE_PARAMS_v2, of_kernel(*of))
SET(cuGraphHostNodeSetParams, cuGraphExecHostNodeSetParams, CUDA_HOST_NODE_PARAMS, of_host(*of))
#undef SET

CUDASIM_API cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* copy) {
  static CallSite site{"cuGraphMemcpyNodeSetParams"};
  return set_node(site, node, copy == nullptr ? nothing() : of_copy(*copy, nullptr));
}
CUDASIM_API cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* copy,
                                           CUcontext context) {
  static CallSite site{"cuGraphExecMemcpyNodeSetParams"};
  return set_exec_node(site, exec, node, copy == nullptr ? nothing() : of_copy(*copy, context));
}
CUDASIM_API cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* fill) {
  static CallSite site{"cuGraphMemsetNodeSetParams"};
  return set_node(site, node, fill == nullptr ? nothing() : of_fill(*fill, nullptr));
}
CUDASIM_API cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* fill,
                                           CUcontext context) {
  static CallSite site{"cuGraphExecMemsetNodeSetParams"};
  return set_exec_node(site, exec, node, fill == nullptr ? nothing() : of_fill(*fill, context));
}
CUDASIM_API cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  static CallSite site{"cuGraphExecChildGraphNodeSetParams"};
  return set_exec_node(site, exec, node, of_child(child));
}
CUDASIM_API cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  static CallSite site{"cuGraphEventRecordNodeSetEvent"};
  return set_node(site, node, of_record(event));
}
CUDASIM_API cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  static CallSite site{"cuGraphExecEventRecordNodeSetEvent"};
  return set_exec_node(site, exec, node, of_record(event));
}
CUDASIM_API cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  static CallSite site{"cuGraphEventWaitNodeSetEvent"};
  return set_node(site, node, of_wait(event));
}
CUDASIM_API cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  static CallSite site{"cuGraphExecEventWaitNodeSetEvent"};
  return set_exec_node(site, exec, node, of_wait(event));
}
CUDASIM_API cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* of) {
  static CallSite site{"cuGraphNodeSetParams"};
  return set_node(site, node, of == nullptr ? nothing() : *of);
}
CUDASIM_API cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* of) {
  static CallSite site{"cuGraphExecNodeSetParams"};
  return set_exec_node(site, exec, node, of == nullptr ? nothing() : *of);
}

// --- attributes of kernel nodes

CUDASIM_API cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUkernelNodeAttrID attribute,
                                          CUkernelNodeAttrValue* out) {
  static CallSite site{"cuGraphKernelNodeGetAttribute"};
  return get<KernelNode, CUkernelNodeAttrValue>(site, handle, out, [&](const KernelNode& work) {
    const auto found = work.attributes.find(attribute);
    return found == work.attributes.end() ? CUkernelNodeAttrValue{} : found->second;
  });
}
CUDASIM_API cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID attribute,
                                          const CUkernelNodeAttrValue* value) {
  static CallSite site{"cuGraphKernelNodeSetAttribute"};
  return on_node(site, handle, [&](Driver&, GraphNode& node) {
    auto* const work = std::get_if<KernelNode>(&node.work);
    if (work == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    work->attributes[attribute] = *value;
    return CUDA_SUCCESS;
  });
}
CUDASIM_API cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  static CallSite site{"cuGraphKernelNodeCopyAttributes"};
  return on_node(site, to, [&](Driver& driver, GraphNode& node) {
    auto* const work = std::get_if<KernelNode>(&node.work);
    GraphNode* const source = driver.graphs->find(from);
    const auto* const given = source == nullptr ? nullptr : std::get_if<KernelNode>(&source->work);
    if (work == nullptr || given == nullptr) return CUDA_ERROR_INVALID_VALUE;
    work->attributes = given->attributes;
    return CUDA_SUCCESS;
  });
}
