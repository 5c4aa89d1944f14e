// Graphs as such, and executable ones; what has a stream is in streamed/streamed_graph.cpp.

#include "../api.h"
#include "../call.h"

using namespace cudart;

cudaError_t cudaGraphCreate(cudaGraph_t* pGraph, unsigned int flags) {
  return call_context<&DriverTable::cuGraphCreate>(kDefaultStream, pGraph, flags);
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call_context<&DriverTable::cuGraphDestroy>(kDefaultStream, graph);
}
cudaError_t cudaGraphClone(cudaGraph_t* pGraphClone, cudaGraph_t originalGraph) {
  return call_context<&DriverTable::cuGraphClone>(kDefaultStream, pGraphClone, originalGraph);
}
cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* pNode, cudaGraphNode_t originalNode, cudaGraph_t clonedGraph) {
  return call_context<&DriverTable::cuGraphNodeFindInClone>(kDefaultStream, pNode, originalNode, clonedGraph);
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType* pType) {
  return call_context<&DriverTable::cuGraphNodeGetType>(kDefaultStream, node,
                                                        reinterpret_cast<CUgraphNodeType*>(pType));
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* numNodes) {
  return call_context<&DriverTable::cuGraphGetNodes>(kDefaultStream, graph, nodes, numNodes);
}
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* pRootNodes, size_t* pNumRootNodes) {
  return call_context<&DriverTable::cuGraphGetRootNodes>(kDefaultStream, graph, pRootNodes, pNumRootNodes);
}
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              cudaGraphEdgeData* edgeData, size_t* numEdges) {
  return call_context<&DriverTable::cuGraphGetEdges>(kDefaultStream, graph, from, to,
                                                     reinterpret_cast<CUgraphEdgeData*>(edgeData), numEdges);
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* pDependencies,
                                         cudaGraphEdgeData* edgeData, size_t* pNumDependencies) {
  return call_context<&DriverTable::cuGraphNodeGetDependencies>(
      kDefaultStream, node, pDependencies, reinterpret_cast<CUgraphEdgeData*>(edgeData), pNumDependencies);
}
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* pDependentNodes,
                                           cudaGraphEdgeData* edgeData, size_t* pNumDependentNodes) {
  return call_context<&DriverTable::cuGraphNodeGetDependentNodes>(
      kDefaultStream, node, pDependentNodes, reinterpret_cast<CUgraphEdgeData*>(edgeData), pNumDependentNodes);
}
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     const cudaGraphEdgeData* edgeData, size_t numDependencies) {
  return call_context<&DriverTable::cuGraphAddDependencies>(
      kDefaultStream, graph, from, to, reinterpret_cast<const CUgraphEdgeData*>(edgeData), numDependencies);
}
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                        const cudaGraphEdgeData* edgeData, size_t numDependencies) {
  return call_context<&DriverTable::cuGraphRemoveDependencies>(
      kDefaultStream, graph, from, to, reinterpret_cast<const CUgraphEdgeData*>(edgeData), numDependencies);
}
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  return call_context<&DriverTable::cuGraphDestroyNode>(kDefaultStream, node);
}
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned int flags) {
  return call_context<&DriverTable::cuGraphDebugDotPrint>(kDefaultStream, graph, path, flags);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* pGraphExec, cudaGraph_t graph, unsigned long long flags) {
  return call_context<&DriverTable::cuGraphInstantiateWithFlags>(kDefaultStream, pGraphExec, graph, flags);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* pGraphExec, cudaGraph_t graph, unsigned long long flags) {
  return call_context<&DriverTable::cuGraphInstantiateWithFlags>(kDefaultStream, pGraphExec, graph, flags);
}
cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t graphExec, unsigned long long* flags) {
  return call_context<&DriverTable::cuGraphExecGetFlags>(kDefaultStream, graphExec,
                                                         reinterpret_cast<cuuint64_t*>(flags));
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec) {
  return call_context<&DriverTable::cuGraphExecDestroy>(kDefaultStream, graphExec);
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t hGraphExec, cudaGraph_t hGraph,
                                cudaGraphExecUpdateResultInfo* resultInfo) {
  static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo));
  return call_context<&DriverTable::cuGraphExecUpdate>(kDefaultStream, hGraphExec, hGraph,
                                                       reinterpret_cast<CUgraphExecUpdateResultInfo*>(resultInfo));
}
cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode, unsigned int isEnabled) {
  return call_context<&DriverTable::cuGraphNodeSetEnabled>(kDefaultStream, hGraphExec, hNode, isEnabled);
}
cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode, unsigned int* isEnabled) {
  return call_context<&DriverTable::cuGraphNodeGetEnabled>(kDefaultStream, hGraphExec, hNode, isEnabled);
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t* object_out, void* ptr, cudaHostFn_t destroy,
                                 unsigned int initialRefcount, unsigned int flags) {
  return call_context<&DriverTable::cuUserObjectCreate>(kDefaultStream, object_out, ptr, destroy, initialRefcount,
                                                        flags);
}
cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count) {
  return call_context<&DriverTable::cuUserObjectRetain>(kDefaultStream, object, count);
}
cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count) {
  return call_context<&DriverTable::cuUserObjectRelease>(kDefaultStream, object, count);
}
cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count,
                                      unsigned int flags) {
  return call_context<&DriverTable::cuGraphRetainUserObject>(kDefaultStream, graph, object, count, flags);
}
cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count) {
  return call_context<&DriverTable::cuGraphReleaseUserObject>(kDefaultStream, graph, object, count);
}
