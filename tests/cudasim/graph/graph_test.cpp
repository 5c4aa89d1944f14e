// Explicit graphs: nodes, edges, launches and updates, as a program sees them.
#include <sys/wait.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>

#include "graph_fixture.h"

namespace {

TEST_F(GraphTest, NodesRunInTheOrderOfTheEdges) {
  CUgraph graph = nullptr;
  OK(cuGraphCreate(&graph, 0));
  const CUgraphNode first = add_fill(graph, x, 7);
  const CUgraphNode second = add_copy(graph, y, x, {first});
  add_copy(graph, z, y, {second});
  const CUgraphExec exec = instantiate(graph);
  OK(cuGraphDestroy(graph));
  EXPECT_EQ(value(z), 0) << "nothing runs before the launch";
  OK(cuGraphLaunch(exec, a));
  EXPECT_EQ(value(z), 7);
  // Work behind the launch and before it is ordered with it.
  OK(cuMemsetD8Async(z, 9, kSize, a));
  EXPECT_EQ(value(z), 9);
  OK(cuGraphLaunch(exec, a));
  EXPECT_EQ(value(z), 7);
  OK(cuGraphExecDestroy(exec));
  EXPECT_EQ(cuGraphLaunch(exec, a), CUDA_ERROR_INVALID_VALUE);
}

// In processes of their own, whose exit code the race changes.
TEST_F(GraphTest, DISABLED_NodesWithoutAPath) {
  CUgraph graph = nullptr;
  OK(cuGraphCreate(&graph, 0));
  add_fill(graph, x, 1);
  add_fill(graph, x, 2);
  OK(cuGraphLaunch(instantiate(graph), a));
  OK(cuCtxSynchronize());
  races_wanted = 1;
}

TEST_F(GraphTest, DISABLED_TwoExecutableGraphsOfTheSameBytes) {
  CUgraph graph = nullptr;
  OK(cuGraphCreate(&graph, 0));
  add_fill(graph, x, 1);
  const CUgraphExec one = instantiate(graph), other = instantiate(graph);
  OK(cuGraphLaunch(one, a));
  OK(cuGraphLaunch(other, b));
  OK(cuCtxSynchronize());
  races_wanted = 1;
}

TEST_F(GraphTest, WhatNoPathOrdersIsFound) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  for (const char* const name : {"NodesWithoutAPath", "TwoExecutableGraphsOfTheSameBytes"}) {
    const std::string command = "GTEST_OUTPUT= '" + self +
                                "' --gtest_also_run_disabled_tests --gtest_filter=GraphTest.DISABLED_" + name +
                                " >/dev/null 2>&1";
    const int status = std::system(command.c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 86) << name << ": " << status;
  }
}

TEST_F(GraphTest, LaunchesFollowEachOtherWhateverTheirStreams) {
  CUgraph graph = nullptr;
  OK(cuGraphCreate(&graph, 0));
  const CUgraphNode first = add_fill(graph, x, 3), second = add_copy(graph, y, x);
  OK(cuGraphAddDependencies(graph, &first, &second, nullptr, 1));
  const CUgraphExec exec = instantiate(graph);
  for (int i = 0; i < 4; ++i) OK(cuGraphLaunch(exec, i % 2 == 0 ? a : b));
  EXPECT_EQ(value(y), 3);
}

TEST_F(GraphTest, BranchesOverlapInTime) {
  // Copies in and out have engines of their own.
  void* host = nullptr;
  OK(cuMemHostAlloc(&host, 2 * kSize, 0));
  const auto time_of = [&](bool chained) {
    CUgraph graph = nullptr;
    EXPECT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
    CUDA_MEMCPY3D in = copy(x, 0), out = copy(0, y);
    in.srcMemoryType = out.dstMemoryType = CU_MEMORYTYPE_HOST;
    in.srcHost = host;
    out.dstHost = static_cast<char*>(host) + kSize;
    CUgraphNode first = nullptr, second = nullptr;
    EXPECT_EQ(cuGraphAddMemcpyNode(&first, graph, nullptr, 0, &in, context), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphAddMemcpyNode(&second, graph, &first, chained ? 1 : 0, &out, context), CUDA_SUCCESS);
    const CUgraphExec exec = instantiate(graph);
    EXPECT_EQ(cuStreamSynchronize(a), CUDA_SUCCESS);
    const std::uint64_t begin = now();
    EXPECT_EQ(cuGraphLaunch(exec, a), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(a), CUDA_SUCCESS);
    return now() - begin;
  };
  const std::uint64_t parallel = time_of(false), chained = time_of(true);
  EXPECT_GT(chained, parallel + 5000) << "each has a latency of 8 us";
  OK(cuCtxSynchronize());
  OK(cuMemFreeHost(host));
}

std::atomic<int> g_called{0};
void CUDA_CB count(void* by) { g_called += *static_cast<int*>(by); }

TEST_F(GraphTest, HostChildEventAndEmptyNodes) {
  CUgraph child = nullptr, graph = nullptr;
  OK(cuGraphCreate(&child, 0));
  add_copy(child, y, x, {add_fill(child, x, 5)});
  OK(cuGraphCreate(&graph, 0));
  CUgraphNode inner = nullptr, empty = nullptr, host = nullptr, record = nullptr, wait = nullptr;
  OK(cuGraphAddChildGraphNode(&inner, graph, nullptr, 0, child));
  OK(cuGraphAddEmptyNode(&empty, graph, &inner, 1));
  int by = 3;
  const CUDA_HOST_NODE_PARAMS call{count, &by};
  OK(cuGraphAddHostNode(&host, graph, &empty, 1, &call));
  OK(cuGraphAddEventRecordNode(&record, graph, &host, 1, event));
  OK(cuGraphAddEventWaitNode(&wait, graph, &record, 1, joined));
  CUgraph owned = nullptr;
  OK(cuGraphChildGraphNodeGetGraph(inner, &owned));
  EXPECT_NE(owned, child);
  EXPECT_EQ(nodes_of(owned).size(), 2u);
  EXPECT_EQ(cuGraphDestroy(owned), CUDA_ERROR_INVALID_VALUE);
  const CUgraphExec exec = instantiate(graph);
  g_called = 0;
  OK(cuGraphLaunch(exec, a));
  // The event that a node records orders what waits for it.
  OK(cuStreamWaitEvent(b, event, 0));
  OK(cuMemcpyDtoDAsync(z, y, kSize, b));
  OK(cuStreamSynchronize(b));
  EXPECT_EQ(g_called, 3);
  EXPECT_EQ(value(z), 5);
  const CUgraphNodeType types[] = {CU_GRAPH_NODE_TYPE_GRAPH, CU_GRAPH_NODE_TYPE_EMPTY, CU_GRAPH_NODE_TYPE_HOST,
                                   CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_WAIT_EVENT};
  const std::vector<CUgraphNode> nodes = nodes_of(graph);
  for (std::size_t i = 0; i < nodes.size(); ++i) EXPECT_EQ(type_of(nodes[i]), types[i]);
}

TEST_F(GraphTest, ParametersOfExecutableNodesChange) {
  CUgraph graph = nullptr;
  OK(cuGraphCreate(&graph, 0));
  const CUgraphNode set = add_fill(graph, x, 1), moved = add_copy(graph, y, x, {set});
  const CUgraphExec exec = instantiate(graph);
  const CUDA_MEMSET_NODE_PARAMS two = fill(x, 2);
  OK(cuGraphExecMemsetNodeSetParams(exec, set, &two, context));
  const CUDA_MEMCPY3D elsewhere = copy(z, x);
  OK(cuGraphExecMemcpyNodeSetParams(exec, moved, &elsewhere, context));
  OK(cuGraphLaunch(exec, a));
  EXPECT_EQ(value(z), 2);
  EXPECT_EQ(value(y), 0);
  // The graph itself is as it was; a node may be switched off.
  CUDA_MEMSET_NODE_PARAMS had{};
  OK(cuGraphMemsetNodeGetParams(set, &had));
  EXPECT_EQ(had.value, 1u);
  OK(cuGraphNodeSetEnabled(exec, moved, 0));
  unsigned enabled = 1;
  OK(cuGraphNodeGetEnabled(exec, moved, &enabled));
  EXPECT_EQ(enabled, 0u);
  OK(cuMemsetD8(z, 0, kSize));
  OK(cuGraphLaunch(exec, a));
  EXPECT_EQ(value(z), 0);
  // Kinds of memory stay.
  CUDA_MEMCPY3D other = copy(z, x);
  std::vector<char> host(kSize);
  other.dstMemoryType = CU_MEMORYTYPE_HOST;
  other.dstHost = host.data();
  EXPECT_EQ(cuGraphExecMemcpyNodeSetParams(exec, moved, &other, context), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphExecMemsetNodeSetParams(exec, moved, &two, context), CUDA_ERROR_INVALID_VALUE) << "another kind";
}

TEST_F(GraphTest, UpdateTakesTheSameShapeOnly) {
  const auto make = [&](unsigned v, bool more, bool swapped) {
    CUgraph graph = nullptr;
    EXPECT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
    CUgraphNode first = swapped ? add_copy(graph, x, z) : add_fill(graph, x, v);
    const CUgraphNode second = add_copy(graph, y, x, {first});
    if (more) add_fill(graph, z, v, {second});
    return graph;
  };
  const CUgraphExec exec = instantiate(make(1, false, false));
  CUgraphExecUpdateResultInfo info{};
  OK(cuGraphExecUpdate(exec, make(4, false, false), &info));
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  OK(cuGraphLaunch(exec, a));
  EXPECT_EQ(value(y), 4);
  EXPECT_EQ(cuGraphExecUpdate(exec, make(5, true, false), &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  EXPECT_EQ(cuGraphExecUpdate(exec, make(5, false, true), &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
  EXPECT_NE(info.errorNode, nullptr);
  const CUgraph other = make(6, false, false);
  const std::vector<CUgraphNode> nodes = nodes_of(other);
  OK(cuGraphRemoveDependencies(other, &nodes[0], &nodes[1], nullptr, 1));
  EXPECT_EQ(cuGraphExecUpdate(exec, other, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  OK(cuGraphLaunch(exec, a));
  EXPECT_EQ(value(y), 4) << "what fails changes nothing";
}

TEST_F(GraphTest, QuestionsAndClones) {
  CUgraph graph = nullptr, clone = nullptr;
  OK(cuGraphCreate(&graph, 0));
  const CUgraphNode first = add_fill(graph, x, 1), second = add_fill(graph, y, 1),
                    third = add_copy(graph, z, x, {first, second});
  EXPECT_EQ(nodes_of(graph), (std::vector<CUgraphNode>{first, second, third}));
  size_t count = 5;
  CUgraphNode found[5] = {first, first, first, first, first};
  OK(cuGraphGetRootNodes(graph, found, &count));
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(found[2], nullptr) << "what is not needed is null";
  OK(cuGraphNodeGetDependencies(third, nullptr, nullptr, &count));
  EXPECT_EQ(count, 2u);
  OK(cuGraphNodeGetDependentNodes(first, found, nullptr, &count));
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(found[0], third);
  EXPECT_EQ(edges_of(graph), 2u);
  OK(cuGraphClone(&clone, graph));
  CUgraphNode in_clone = nullptr;
  OK(cuGraphNodeFindInClone(&in_clone, third, clone));
  EXPECT_NE(in_clone, third);
  OK(cuGraphDestroyNode(third));
  EXPECT_EQ(edges_of(graph), 0u);
  EXPECT_EQ(edges_of(clone), 2u);
  EXPECT_EQ(cuGraphNodeGetType(third, nullptr), CUDA_ERROR_INVALID_VALUE);
  // A cycle can't be instantiated, and says where.
  OK(cuGraphAddDependencies(graph, &first, &second, nullptr, 1));
  OK(cuGraphAddDependencies(graph, &second, &first, nullptr, 1));
  CUDA_GRAPH_INSTANTIATE_PARAMS parameters{};
  CUgraphExec exec = nullptr;
  EXPECT_EQ(cuGraphInstantiateWithParams(&exec, graph, &parameters), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(parameters.result_out, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
  EXPECT_TRUE(parameters.hErrNode_out == first || parameters.hErrNode_out == second);
  EXPECT_EQ(cuGraphAddDependencies(graph, &first, &second, nullptr, 1), CUDA_ERROR_INVALID_VALUE) << "it is there";
}

TEST_F(GraphTest, WhatIsWrongIsRefused) {
  CUgraph graph = nullptr;
  EXPECT_EQ(cuGraphCreate(&graph, 1), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphCreate(&graph, 0));
  CUgraphNode node = nullptr;
  const CUDA_MEMSET_NODE_PARAMS odd{x, 0, 1, 3, 4, 1};
  EXPECT_EQ(cuGraphAddMemsetNode(&node, graph, nullptr, 0, &odd, context), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphAddMemsetNode(&node, graph, nullptr, 0, nullptr, context), CUDA_ERROR_INVALID_VALUE);
  const CUDA_KERNEL_NODE_PARAMS no_kernel{};
  EXPECT_EQ(cuGraphAddKernelNode(&node, graph, nullptr, 0, &no_kernel), CUDA_ERROR_INVALID_VALUE);
  const CUgraphNode one = add_fill(graph, x, 1);
  const CUgraphNode twice[] = {one, one};
  EXPECT_EQ(cuGraphAddEmptyNode(&node, graph, twice, 2), CUDA_ERROR_INVALID_VALUE);
  const CUgraphNode absent[] = {one, nullptr};
  EXPECT_EQ(cuGraphAddEmptyNode(&node, graph, absent, 2), CUDA_ERROR_INVALID_VALUE);
  CUgraph other = nullptr;
  OK(cuGraphCreate(&other, 0));
  EXPECT_EQ(cuGraphAddEmptyNode(&node, other, &one, 1), CUDA_ERROR_INVALID_VALUE) << "of another graph";
  CUgraphExec exec = nullptr;
  EXPECT_EQ(cuGraphInstantiate(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH), CUDA_ERROR_NOT_SUPPORTED);
  // Memory that is gone by then.
  CUdeviceptr gone = 0;
  OK(cuMemAlloc(&gone, kSize));
  CUgraphNode late = add_fill(other, gone, 1);
  exec = instantiate(other);
  OK(cuMemFree(gone));
  EXPECT_EQ(cuGraphLaunch(exec, a), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(value(x), 0) << "the device is well";
  OK(cuGraphNodeSetEnabled(exec, late, 0));
  OK(cuGraphLaunch(exec, a));
}

std::string fatbin() {
  std::ifstream file(MODULE_FATBIN, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(GraphTest, KernelNodesKeepTheirParameters) {
  const std::string image = fatbin();
  CUmodule module = nullptr;
  OK(cuModuleLoadData(&module, image.data()));
  CUfunction add = nullptr;
  OK(cuModuleGetFunction(&add, module, "_Z11add_vectorsPKfS0_Pfi"));
  int n = 1000;
  std::vector<float> ones(1000, 1.0f);
  OK(cuMemcpyHtoD(x, ones.data(), 4000));
  OK(cuCtxSynchronize());  // a staged copy does not wait
  CUdeviceptr to = y;
  void* parameters[] = {&x, &x, &to, &n};
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = add;
  kernel.gridDimX = 4, kernel.gridDimY = kernel.gridDimZ = 1;
  kernel.blockDimX = 256, kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.kernelParams = parameters;
  CUgraph graph = nullptr;
  OK(cuGraphCreate(&graph, 0));
  CUgraphNode node = nullptr;
  OK(cuGraphAddKernelNode(&node, graph, nullptr, 0, &kernel));
  to = 0, n = 0;  // copied
  const CUgraphExec exec = instantiate(graph);
  const auto first_of = [&](CUdeviceptr block) {
    float out = 0;
    EXPECT_EQ(cuStreamSynchronize(a), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoH(&out, block, 4), CUDA_SUCCESS);
    return out;
  };
  OK(cuGraphLaunch(exec, a));
  EXPECT_EQ(first_of(y), 2.0f);
  CUDA_KERNEL_NODE_PARAMS told{};
  OK(cuGraphKernelNodeGetParams(node, &told));
  EXPECT_EQ(told.func, add);
  EXPECT_EQ(*static_cast<int*>(told.kernelParams[3]), 1000);
  EXPECT_EQ(*static_cast<CUdeviceptr*>(told.kernelParams[2]), y);
  to = z, n = 1000;
  OK(cuGraphExecKernelNodeSetParams(exec, node, &kernel));
  OK(cuGraphLaunch(exec, a));
  EXPECT_EQ(first_of(z), 2.0f);
  kernel.blockDimX = 4096;
  EXPECT_EQ(cuGraphExecKernelNodeSetParams(exec, node, &kernel), CUDA_ERROR_INVALID_VALUE);
}

std::atomic<int> g_destroyed{0};
void CUDA_CB destroyed(void*) { ++g_destroyed; }

TEST_F(GraphTest, UserObjectsGoWithTheLastThatHoldsThem) {
  CUuserObject object = nullptr;
  OK(cuUserObjectCreate(&object, nullptr, destroyed, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  CUgraph graph = nullptr;
  OK(cuGraphCreate(&graph, 0));
  OK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  const CUgraphExec exec = instantiate(graph);
  OK(cuGraphDestroy(graph));
  EXPECT_EQ(g_destroyed, 0);
  OK(cuGraphExecDestroy(exec));
  // It runs on the thread of host functions, which comes to the next one behind it.
  OK(cuLaunchHostFunc(a, destroyed, nullptr));
  OK(cuStreamSynchronize(a));
  EXPECT_EQ(g_destroyed, 2);
  EXPECT_EQ(cuUserObjectRelease(object, 1), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
