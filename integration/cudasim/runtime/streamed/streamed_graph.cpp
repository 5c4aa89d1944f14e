// Captures, and launches of graphs.

#include "api.h"
#include "call.h"

using namespace cudart;

namespace {

const CUgraphEdgeData* edges(const cudaGraphEdgeData* data) { return reinterpret_cast<const CUgraphEdgeData*>(data); }

}  // namespace

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  return call_context<&DriverTable::cuStreamBeginCapture>(kDefaultStream, stream,
                                                          static_cast<CUstreamCaptureMode>(mode));
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                          const cudaGraphEdgeData* dependencyData, size_t numDependencies,
                                          enum cudaStreamCaptureMode mode) {
  return call_context<&DriverTable::cuStreamBeginCaptureToGraph>(kDefaultStream, stream, graph, dependencies,
                                                                 edges(dependencyData), numDependencies,
                                                                 static_cast<CUstreamCaptureMode>(mode));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* pGraph) {
  return call_context<&DriverTable::cuStreamEndCapture>(kDefaultStream, stream, pGraph);
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                const cudaGraphEdgeData* dependencyData, size_t numDependencies,
                                                unsigned int flags) {
  return call_context<&DriverTable::cuStreamUpdateCaptureDependencies>(kDefaultStream, stream, dependencies,
                                                                       edges(dependencyData), numDependencies, flags);
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* pGraphExec, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* instantiateParams) {
  static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS));
  return call_context<&DriverTable::cuGraphInstantiateWithParams>(
      kDefaultStream, pGraphExec, graph, reinterpret_cast<CUDA_GRAPH_INSTANTIATE_PARAMS*>(instantiateParams));
}

cudaError_t cudaGraphUpload(cudaGraphExec_t graphExec, cudaStream_t stream) {
  return call_context<&DriverTable::cuGraphUpload>(kDefaultStream, graphExec, stream);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream) {
  return call_context<&DriverTable::cuGraphLaunch>(kDefaultStream, graphExec, stream);
}
