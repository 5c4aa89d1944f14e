// Graphs, captured and made by hand, with blocks of the program's and with memory of their own.
#include <array>

#include "awkward.h"

namespace awkward {
namespace {

CUgraphExec instantiate(CUgraph graph) {
  CUgraphExec made = nullptr;
  check(cuGraphInstantiate(&made, graph, 0), "cuGraphInstantiate");
  return made;
}

// Beside other blocks, of which some leave where there is a limit.
void launch_three_times(CUgraphExec exec, CUstream stream) {
  Others others;
  for (int round = 0; round < 3; ++round) {
    others.use();
    check(cuGraphLaunch(exec, stream), "cuGraphLaunch");
    check(cuStreamSynchronize(stream), "cuStreamSynchronize");
  }
}

// Of a graph that allocates: its memory goes with it.
void launch_and_trim(CUgraph graph, CUgraphExec exec, CUstream stream, CUdeviceptr a) {
  launch_three_times(exec, stream);
  contents("a", a);
  check(cuGraphExecDestroy(exec), "cuGraphExecDestroy");
  check(cuGraphDestroy(graph), "cuGraphDestroy");
  show("trimmed", cuDeviceGraphMemTrim(device));
  check(cuStreamDestroy(stream), "cuStreamDestroy");
  release(a);
}

void captured() {
  const CUdeviceptr a = block(1), b = block(2);
  const CUstream stream = make_stream();
  finish();
  check(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), "cuStreamBeginCapture");
  launch(stream, "add", kWords, a, b, kWords);
  check(cuMemsetD32Async(b, 3, kWords / 2, stream), "cuMemsetD32Async");
  // A plain allocation meanwhile, on a thread that may.
  const CUdeviceptr beside = allocate();
  launch(stream, "add", kWords, b, a, kWords);
  CUgraph graph = nullptr;
  check(cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
  const CUgraphExec exec = instantiate(graph);
  check(cuGraphDestroy(graph), "cuGraphDestroy");
  launch_three_times(exec, stream);
  contents("a", a);
  contents("b", b);
  check(cuGraphExecDestroy(exec), "cuGraphExecDestroy");
  check(cuStreamDestroy(stream), "cuStreamDestroy");
  for (const CUdeviceptr address : {a, b, beside}) release(address);
}

void captured_with_allocation() {
  const CUdeviceptr a = block(1);
  const CUstream stream = make_stream();
  finish();
  check(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), "cuStreamBeginCapture");
  CUdeviceptr made = 0;
  check(cuMemAllocAsync(&made, kBytes, stream), "cuMemAllocAsync");
  refill(made, 5, kBytes, stream);
  launch(stream, "add", kWords, a, made, kWords);
  check(cuMemFreeAsync(made, stream), "cuMemFreeAsync");
  CUgraph graph = nullptr;
  check(cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
  const CUgraphExec exec = instantiate(graph);
  launch_and_trim(graph, exec, stream, a);
}

CUgraphNode kernel_node(CUgraph graph, const CUgraphNode* after, std::size_t count, const char* name, void** parameters,
                        CUDA_KERNEL_NODE_PARAMS* params) {
  *params = {};
  params->func = kernel(name);
  params->gridDimX = kWords / 256;
  params->gridDimY = params->gridDimZ = params->blockDimY = params->blockDimZ = 1;
  params->blockDimX = 256;
  params->kernelParams = parameters;
  CUgraphNode node = nullptr;
  check(cuGraphAddKernelNode(&node, graph, after, count, params), "cuGraphAddKernelNode");
  return node;
}

// Allocation and free are nodes; the block outlives the launch in the second half.
void memory_nodes() {
  CUgraph graph = nullptr;
  check(cuGraphCreate(&graph, 0), "cuGraphCreate");
  CUDA_MEM_ALLOC_NODE_PARAMS memory{};
  memory.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  memory.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  memory.poolProps.location.id = device;
  memory.bytesize = kBytes;
  CUgraphNode allocated = nullptr, freed = nullptr;
  check(cuGraphAddMemAllocNode(&allocated, graph, nullptr, 0, &memory), "cuGraphAddMemAllocNode");
  CUdeviceptr a = block(1);
  unsigned seed = 3;
  int count = kWords;
  void* fill[] = {&memory.dptr, &seed, &count};
  void* add[] = {&a, &memory.dptr, &count};
  CUDA_KERNEL_NODE_PARAMS params{};
  const CUgraphNode filled = kernel_node(graph, &allocated, 1, "fill", fill, &params);
  const CUgraphNode added = kernel_node(graph, &filled, 1, "add", add, &params);
  check(cuGraphAddMemFreeNode(&freed, graph, &added, 1, memory.dptr), "cuGraphAddMemFreeNode");
  const CUgraphExec exec = instantiate(graph);
  const CUstream stream = make_stream();
  finish();
  launch_and_trim(graph, exec, stream, a);
}

// A block that a graph names is exchanged for another.
void updated() {
  CUgraph graph = nullptr;
  check(cuGraphCreate(&graph, 0), "cuGraphCreate");
  CUdeviceptr a = block(1), b = block(2), c = block(3);
  int count = kWords;
  void* add[] = {&a, &b, &count};
  CUDA_KERNEL_NODE_PARAMS params{};
  const CUgraphNode node = kernel_node(graph, nullptr, 0, "add", add, &params);
  const CUgraphExec exec = instantiate(graph);
  finish();
  {
    Others others;
    others.use();
    check(cuGraphLaunch(exec, nullptr), "cuGraphLaunch");
    void* other[] = {&a, &c, &count};
    params.kernelParams = other;
    check(cuGraphExecKernelNodeSetParams(exec, node, &params), "cuGraphExecKernelNodeSetParams");
    release(b);
    others.use();
    check(cuGraphLaunch(exec, nullptr), "cuGraphLaunch");
    check(cuGraphKernelNodeSetParams(node, &params), "cuGraphKernelNodeSetParams");
    CUgraphExecUpdateResultInfo info{};
    show("updated", cuGraphExecUpdate(exec, graph, &info));
    others.use();
    check(cuGraphLaunch(exec, nullptr), "cuGraphLaunch");
  }
  contents("a", a);
  check(cuGraphExecDestroy(exec), "cuGraphExecDestroy");
  check(cuGraphDestroy(graph), "cuGraphDestroy");
  release(a);
  release(c);
}

// A capture that fails leaves nothing behind.
void spoilt() {
  const CUdeviceptr a = block(1);
  const CUstream stream = make_stream(), other = make_stream();
  finish();
  check(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
  launch(stream, "add", kWords, a, a, kWords);
  show("allocated meanwhile", cuMemFree(0));
  show("waited for", cuStreamSynchronize(stream));
  CUgraph graph = nullptr;
  show("ended", cuStreamEndCapture(stream, &graph));
  launch(other, "add", kWords, a, a, kWords);
  check(cuStreamSynchronize(other), "cuStreamSynchronize");
  contents("a", a);
  for (const CUstream one : {stream, other}) check(cuStreamDestroy(one), "cuStreamDestroy");
  release(a);
}

}  // namespace

std::span<const Case> graph_cases() {
  static constexpr std::array kCases = {
      Case{"graph-captured", captured}, Case{"graph-captured-with-allocation", captured_with_allocation},
      Case{"graph-memory-nodes", memory_nodes}, Case{"graph-updated", updated}, Case{"graph-spoilt", spoilt}};
  return kCases;
}

}  // namespace awkward
