// A context, two streams and some blocks for each test of graphs; what the checker finds fails it.
#pragma once
#include <cuda.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "cudasim/cudasim.h"
#include "tests/cudasim/counters.h"

#define OK(call) ASSERT_EQ(call, CUDA_SUCCESS)

class GraphTest : public testing::Test {
 protected:
  static constexpr std::size_t kSize = 1 << 16;

  void SetUp() override {
    OK(cuInit(0));
    OK(cuCtxCreate(&context, nullptr, 0, 0));
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING));
    for (CUdeviceptr* block : {&x, &y, &z}) OK(cuMemAlloc(block, kSize));
    for (const CUdeviceptr block : {x, y, z}) OK(cuMemsetD8(block, 0, kSize));
    OK(cuCtxSynchronize());
    races_before = counters().races;
  }
  void TearDown() override {
    EXPECT_EQ(counters().races, races_before + races_wanted) << cudasim_last_race();
    EXPECT_EQ(cuCtxDestroy(context), CUDA_SUCCESS);
  }

  static CudasimCounters counters() { return device_counters(); }
  static std::uint64_t now() { return counters().host_now_ns; }

  static CUDA_MEMSET_NODE_PARAMS fill(CUdeviceptr to, unsigned value, std::size_t size = kSize) {
    return {to, 0, value, 1, size, 1};
  }
  static CUDA_MEMCPY3D copy(CUdeviceptr to, CUdeviceptr from, std::size_t size = kSize) {
    CUDA_MEMCPY3D out{};
    out.srcMemoryType = out.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    out.srcDevice = from;
    out.dstDevice = to;
    out.WidthInBytes = size;
    out.Height = out.Depth = 1;
    return out;
  }
  CUgraphNode add_fill(CUgraph graph, CUdeviceptr to, unsigned value, std::vector<CUgraphNode> behind = {}) {
    CUgraphNode node = nullptr;
    const CUDA_MEMSET_NODE_PARAMS parameters = fill(to, value);
    EXPECT_EQ(cuGraphAddMemsetNode(&node, graph, behind.data(), behind.size(), &parameters, context), CUDA_SUCCESS);
    return node;
  }
  CUgraphNode add_copy(CUgraph graph, CUdeviceptr to, CUdeviceptr from, std::vector<CUgraphNode> behind = {}) {
    CUgraphNode node = nullptr;
    const CUDA_MEMCPY3D parameters = copy(to, from);
    EXPECT_EQ(cuGraphAddMemcpyNode(&node, graph, behind.data(), behind.size(), &parameters, context), CUDA_SUCCESS);
    return node;
  }
  static CUgraphExec instantiate(CUgraph graph, unsigned long long flags = 0) {
    CUgraphExec exec = nullptr;
    EXPECT_EQ(cuGraphInstantiate(&exec, graph, flags), CUDA_SUCCESS);
    return exec;
  }
  // All bytes, if they are the same; else 1000.
  static int value(CUdeviceptr block, std::size_t size = kSize) {
    std::vector<unsigned char> bytes(size);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoH(bytes.data(), block, size), CUDA_SUCCESS);
    for (const unsigned char byte : bytes) {
      if (byte != bytes[0]) return 1000;
    }
    return bytes[0];
  }
  static std::vector<CUgraphNode> nodes_of(CUgraph graph) {
    size_t count = 0;
    EXPECT_EQ(cuGraphGetNodes(graph, nullptr, &count), CUDA_SUCCESS);
    std::vector<CUgraphNode> nodes(count);
    EXPECT_EQ(cuGraphGetNodes(graph, nodes.data(), &count), CUDA_SUCCESS);
    return nodes;
  }
  static size_t edges_of(CUgraph graph) {
    size_t count = 0;
    EXPECT_EQ(cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &count), CUDA_SUCCESS);
    return count;
  }
  static CUgraphNodeType type_of(CUgraphNode node) {
    CUgraphNodeType type{};
    EXPECT_EQ(cuGraphNodeGetType(node, &type), CUDA_SUCCESS);
    return type;
  }

  CUcontext context = nullptr;
  CUstream a = nullptr, b = nullptr;
  CUevent event = nullptr, joined = nullptr;
  CUdeviceptr x = 0, y = 0, z = 0;
  std::uint64_t races_before = 0, races_wanted = 0;
};
