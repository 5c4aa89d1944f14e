// Nodes of graphs: making them, asking and changing what they do.

#include "../api.h"
#include "../call.h"
#include "../registry.h"
#include "api/graph_work.h"

using namespace cudart;

namespace {

cudaError_t add(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* behind, size_t count,
                cudaError_t described, CUgraphNodeParams* work, const cudaGraphEdgeData* edges = nullptr) {
  if (described != cudaSuccess) return record(described);
  return call_context<&DriverTable::cuGraphAddNode>(kDefaultStream, node, graph, behind,
                                                    reinterpret_cast<const CUgraphEdgeData*>(edges), count, work);
}

cudaError_t set(cudaGraphNode_t node, cudaError_t described, CUgraphNodeParams* work) {
  if (described != cudaSuccess) return record(described);
  return call_context<&DriverTable::cuGraphNodeSetParams>(kDefaultStream, node, work);
}

cudaError_t set(cudaGraphExec_t exec, cudaGraphNode_t node, cudaError_t described, CUgraphNodeParams* work) {
  if (described != cudaSuccess) return record(described);
  return call_context<&DriverTable::cuGraphExecNodeSetParams>(kDefaultStream, exec, node, work);
}

CUlaunchAttributeID attribute_of(cudaLaunchAttributeID attribute) {
  return static_cast<CUlaunchAttributeID>(attribute);
}

}  // namespace

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                                   size_t numDependencies, const struct cudaKernelNodeParams* pNodeParams) {
  CUgraphNodeParams work;
  return add(pGraphNode, graph, pDependencies, numDependencies, work_of(pNodeParams, &work), &work);
}
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                                   size_t numDependencies, const struct cudaMemcpy3DParms* pCopyParams) {
  CUgraphNodeParams work;
  return add(pGraphNode, graph, pDependencies, numDependencies, work_of(pCopyParams, &work), &work);
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                     const cudaGraphNode_t* pDependencies, size_t numDependencies, void* dst,
                                     const void* src, size_t count, enum cudaMemcpyKind kind) {
  CUgraphNodeParams work;
  return add(pGraphNode, graph, pDependencies, numDependencies, copy_work(dst, src, count, kind, &work), &work);
}
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                                   size_t numDependencies, const struct cudaMemsetParams* pMemsetParams) {
  CUgraphNodeParams work;
  return add(pGraphNode, graph, pDependencies, numDependencies, work_of(pMemsetParams, &work), &work);
}
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                                 size_t numDependencies, const struct cudaHostNodeParams* pNodeParams) {
  CUgraphNodeParams work;
  return add(pGraphNode, graph, pDependencies, numDependencies, work_of(pNodeParams, &work), &work);
}
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                       const cudaGraphNode_t* pDependencies, size_t numDependencies,
                                       cudaGraph_t childGraph) {
  CUgraphNodeParams work = child_work(childGraph);
  return add(pGraphNode, graph, pDependencies, numDependencies, cudaSuccess, &work);
}
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                                  size_t numDependencies) {
  CUgraphNodeParams work{};
  work.type = CU_GRAPH_NODE_TYPE_EMPTY;
  return add(pGraphNode, graph, pDependencies, numDependencies, cudaSuccess, &work);
}
cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                        const cudaGraphNode_t* pDependencies, size_t numDependencies,
                                        cudaEvent_t event) {
  CUgraphNodeParams work = event_work(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
  return add(pGraphNode, graph, pDependencies, numDependencies, cudaSuccess, &work);
}
cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                      const cudaGraphNode_t* pDependencies, size_t numDependencies, cudaEvent_t event) {
  CUgraphNodeParams work = event_work(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
  return add(pGraphNode, graph, pDependencies, numDependencies, cudaSuccess, &work);
}
cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                     const cudaGraphNode_t* pDependencies, size_t numDependencies,
                                     struct cudaMemAllocNodeParams* nodeParams) {
  static_assert(sizeof(cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v2));
  if (nodeParams == nullptr) return record(cudaErrorInvalidValue);
  CUgraphNodeParams work{};
  work.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  work.alloc = *reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS_v2*>(nodeParams);
  const cudaError_t error = add(pGraphNode, graph, pDependencies, numDependencies, cudaSuccess, &work);
  if (error == cudaSuccess) nodeParams->dptr = reinterpret_cast<void*>(work.alloc.dptr);
  return error;
}
cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                    const cudaGraphNode_t* pDependencies, size_t numDependencies, void* dptr) {
  CUgraphNodeParams work{};
  work.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
  work.free.dptr = device_pointer(dptr);
  return add(pGraphNode, graph, pDependencies, numDependencies, cudaSuccess, &work);
}
cudaError_t cudaGraphAddNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                             const cudaGraphEdgeData* dependencyData, size_t numDependencies,
                             struct cudaGraphNodeParams* nodeParams) {
  CUgraphNodeParams work;
  const cudaError_t error =
      add(pGraphNode, graph, pDependencies, numDependencies, work_of(nodeParams, &work), &work, dependencyData);
  if (error != cudaSuccess) return error;
  if (work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) nodeParams->alloc.dptr = reinterpret_cast<void*>(work.alloc.dptr);
  if (work.type == CU_GRAPH_NODE_TYPE_GRAPH) nodeParams->graph.graph = work.graph.graph;
  return cudaSuccess;
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, struct cudaKernelNodeParams* pNodeParams) {
  if (pNodeParams == nullptr) return record(cudaErrorInvalidValue);
  CUDA_KERNEL_NODE_PARAMS_v2 kernel{};
  const cudaError_t error = call_context<&DriverTable::cuGraphKernelNodeGetParams>(kDefaultStream, node, &kernel);
  if (error != cudaSuccess) return error;
  if (kernel.kern != nullptr) note_kernel(kernel.kern);
  *pNodeParams = {kernel.kern != nullptr ? static_cast<void*>(kernel.kern) : static_cast<void*>(kernel.func),
                  {kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ},
                  {kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ},
                  kernel.sharedMemBytes,
                  kernel.kernelParams,
                  kernel.extra};
  return cudaSuccess;
}
cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, struct cudaMemcpy3DParms* pNodeParams) {
  if (pNodeParams == nullptr) return record(cudaErrorInvalidValue);
  CUDA_MEMCPY3D copy{};
  const cudaError_t error = call_context<&DriverTable::cuGraphMemcpyNodeGetParams>(kDefaultStream, node, &copy);
  if (error != cudaSuccess) return error;
  const bool from_host = copy.srcMemoryType == CU_MEMORYTYPE_HOST, to_host = copy.dstMemoryType == CU_MEMORYTYPE_HOST;
  *pNodeParams = {};
  pNodeParams->srcPos = {copy.srcXInBytes, copy.srcY, copy.srcZ};
  pNodeParams->dstPos = {copy.dstXInBytes, copy.dstY, copy.dstZ};
  pNodeParams->srcPtr = {from_host ? const_cast<void*>(copy.srcHost) : reinterpret_cast<void*>(copy.srcDevice),
                         copy.srcPitch, copy.WidthInBytes, copy.srcHeight};
  pNodeParams->dstPtr = {to_host ? copy.dstHost : reinterpret_cast<void*>(copy.dstDevice), copy.dstPitch,
                         copy.WidthInBytes, copy.dstHeight};
  pNodeParams->extent = {copy.WidthInBytes, copy.Height, copy.Depth};
  pNodeParams->kind = copy.srcMemoryType == CU_MEMORYTYPE_UNIFIED || copy.dstMemoryType == CU_MEMORYTYPE_UNIFIED
                          ? cudaMemcpyDefault
                      : from_host ? (to_host ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice)
                                  : (to_host ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice);
  return cudaSuccess;
}
cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, struct cudaMemsetParams* pNodeParams) {
  if (pNodeParams == nullptr) return record(cudaErrorInvalidValue);
  CUDA_MEMSET_NODE_PARAMS fill{};
  const cudaError_t error = call_context<&DriverTable::cuGraphMemsetNodeGetParams>(kDefaultStream, node, &fill);
  if (error != cudaSuccess) return error;
  pNodeParams->dst = reinterpret_cast<void*>(fill.dst);
  pNodeParams->pitch = fill.pitch;
  pNodeParams->value = fill.value;
  pNodeParams->elementSize = fill.elementSize;
  pNodeParams->width = fill.width;
  pNodeParams->height = fill.height;
  return cudaSuccess;
}
cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, struct cudaHostNodeParams* pNodeParams) {
  static_assert(sizeof(cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS));
  return call_context<&DriverTable::cuGraphHostNodeGetParams>(kDefaultStream, node,
                                                              reinterpret_cast<CUDA_HOST_NODE_PARAMS*>(pNodeParams));
}
cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* pGraph) {
  return call_context<&DriverTable::cuGraphChildGraphNodeGetGraph>(kDefaultStream, node, pGraph);
}
cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event_out) {
  return call_context<&DriverTable::cuGraphEventRecordNodeGetEvent>(kDefaultStream, node, event_out);
}
cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event_out) {
  return call_context<&DriverTable::cuGraphEventWaitNodeGetEvent>(kDefaultStream, node, event_out);
}
cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, struct cudaMemAllocNodeParams* params_out) {
  return call_context<&DriverTable::cuGraphMemAllocNodeGetParams>(
      kDefaultStream, node, reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS_v1*>(params_out));
}
cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void* dptr_out) {
  return call_context<&DriverTable::cuGraphMemFreeNodeGetParams>(kDefaultStream, node,
                                                                 static_cast<CUdeviceptr*>(dptr_out));
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const struct cudaKernelNodeParams* pNodeParams) {
  CUgraphNodeParams work;
  return set(node, work_of(pNodeParams, &work), &work);
}
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const struct cudaMemcpy3DParms* pNodeParams) {
  CUgraphNodeParams work;
  return set(node, work_of(pNodeParams, &work), &work);
}
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* dst, const void* src, size_t count,
                                           enum cudaMemcpyKind kind) {
  CUgraphNodeParams work;
  return set(node, copy_work(dst, src, count, kind, &work), &work);
}
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const struct cudaMemsetParams* pNodeParams) {
  CUgraphNodeParams work;
  return set(node, work_of(pNodeParams, &work), &work);
}
cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const struct cudaHostNodeParams* pNodeParams) {
  CUgraphNodeParams work;
  return set(node, work_of(pNodeParams, &work), &work);
}
cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  CUgraphNodeParams work = event_work(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
  return set(node, cudaSuccess, &work);
}
cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  CUgraphNodeParams work = event_work(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
  return set(node, cudaSuccess, &work);
}
cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams* nodeParams) {
  CUgraphNodeParams work;
  return set(node, work_of(nodeParams, &work), &work);
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams* pNodeParams) {
  CUgraphNodeParams work;
  return set(hGraphExec, node, work_of(pNodeParams, &work), &work);
}
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                             const struct cudaMemcpy3DParms* pNodeParams) {
  CUgraphNodeParams work;
  return set(hGraphExec, node, work_of(pNodeParams, &work), &work);
}
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t hGraphExec, cudaGraphNode_t node, void* dst,
                                               const void* src, size_t count, enum cudaMemcpyKind kind) {
  CUgraphNodeParams work;
  return set(hGraphExec, node, copy_work(dst, src, count, kind, &work), &work);
}
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                             const struct cudaMemsetParams* pNodeParams) {
  CUgraphNodeParams work;
  return set(hGraphExec, node, work_of(pNodeParams, &work), &work);
}
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                           const struct cudaHostNodeParams* pNodeParams) {
  CUgraphNodeParams work;
  return set(hGraphExec, node, work_of(pNodeParams, &work), &work);
}
cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                                 cudaGraph_t childGraph) {
  CUgraphNodeParams work = child_work(childGraph);
  return set(hGraphExec, node, cudaSuccess, &work);
}
cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode, cudaEvent_t event) {
  CUgraphNodeParams work = event_work(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
  return set(hGraphExec, hNode, cudaSuccess, &work);
}
cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode, cudaEvent_t event) {
  CUgraphNodeParams work = event_work(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
  return set(hGraphExec, hNode, cudaSuccess, &work);
}
cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t graphExec, cudaGraphNode_t node,
                                       struct cudaGraphNodeParams* nodeParams) {
  CUgraphNodeParams work;
  return set(graphExec, node, work_of(nodeParams, &work), &work);
}

cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t hDst, cudaGraphNode_t hSrc) {
  return call_context<&DriverTable::cuGraphKernelNodeCopyAttributes>(kDefaultStream, hDst, hSrc);
}
cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t hNode, cudaLaunchAttributeID attr,
                                            cudaLaunchAttributeValue* value_out) {
  return call_context<&DriverTable::cuGraphKernelNodeGetAttribute>(
      kDefaultStream, hNode, attribute_of(attr), reinterpret_cast<CUlaunchAttributeValue*>(value_out));
}
cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t hNode, cudaLaunchAttributeID attr,
                                            const cudaLaunchAttributeValue* value) {
  return call_context<&DriverTable::cuGraphKernelNodeSetAttribute>(
      kDefaultStream, hNode, attribute_of(attr), reinterpret_cast<const CUlaunchAttributeValue*>(value));
}
