// Graphs, captured and made by hand: what they name must be there whenever they run, whatever else left the device.
#include <sys/mman.h>

#include "limit_program.h"

namespace limit {
namespace {

CUgraphExec instantiate(CUgraph graph) {
  CUgraphExec exec = nullptr;
  check(cuGraphInstantiate(&exec, graph, 0), "cuGraphInstantiate");
  return exec;
}

CUgraph end_capture(CUstream stream) {
  CUgraph graph = nullptr;
  check(cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
  return graph;
}

void run(CUgraphExec exec, CUstream stream) { check(cuGraphLaunch(exec, stream), "cuGraphLaunch"); }

void add_words(Block* to, const Block& from) {
  for (std::size_t i = 0; i < to->words.size(); ++i) to->words[i] += from.words[i];
}

// A step with a fork, captured while its blocks are away, launched in a loop between which they are driven away.
void captured() {
  Block to(kBytes, 1), other(kBytes, 2), from(kBytes, 3);
  Crowd crowd;
  crowd.drive_away();
  const CUstream stream = make_stream(), beside = make_stream();
  check(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
  order(stream, beside);
  check(launch(kernels.add, beside, other.words.size(), other.address(), from.address(), other.count()), "limit_add");
  check(launch(kernels.add, stream, to.words.size(), to.address(), from.address(), to.count()), "limit_add");
  order(beside, stream);
  const CUgraphExec exec = instantiate(end_capture(stream));
  say("nothing has run", to.wrong() + other.wrong());
  for (int i = 0; i < 4; ++i) {
    crowd.drive_away();
    run(exec, stream);
    check(cuStreamSynchronize(stream), "cuStreamSynchronize");
    add_words(&to, from);
    add_words(&other, from);
    say("captured and launched", to.wrong() + other.wrong() + from.wrong());
  }
  for (int i = 0; i < 3; ++i) {  // one behind the other, the crowd at the same time
    run(exec, stream);
    add_words(&to, from);
    add_words(&other, from);
  }
  crowd.use();
  finish();
  say("launched in a row", to.wrong() + other.wrong());
  say("the crowd", crowd.wrong());
}

// Blocks that no launch of the program's names: nodes and their changes alone do.
void by_hand() {
  Block to(kBytes, 1), second(kBytes, 2), from(kBytes, 3);
  Crowd crowd;
  crowd.drive_away();
  CUgraph graph = nullptr;
  check(cuGraphCreate(&graph, 0), "cuGraphCreate");
  CUdeviceptr out = to.address(), in = from.address();
  int count = to.count();
  void* parameters[] = {&out, &in, &count};
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = kernels.add;
  kernel.gridDimX = static_cast<unsigned>((to.words.size() + 255) / 256);
  kernel.gridDimY = kernel.gridDimZ = kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.blockDimX = 256;
  kernel.kernelParams = parameters;
  CUgraphNode node = nullptr;
  check(cuGraphAddKernelNode(&node, graph, nullptr, 0, &kernel), "cuGraphAddKernelNode");
  const CUgraphExec exec = instantiate(graph);
  const CUstream stream = make_stream();
  for (int i = 0; i < 4; ++i) {
    Block& named = i % 2 == 0 ? to : second;
    out = named.address();
    check(cuGraphExecKernelNodeSetParams(exec, node, &kernel), "cuGraphExecKernelNodeSetParams");
    crowd.drive_away();
    run(exec, stream);
    check(cuStreamSynchronize(stream), "cuStreamSynchronize");
    add_words(&named, from);
    say("made by hand", to.wrong() + second.wrong() + from.wrong());
  }
  say("the crowd", crowd.wrong());
}

// With "free" the graph's intermediate block is freed while the graph has it: a mistake, which a device may punish.
// Under memopt its bytes and address stay: what is allocated then must not lie in them.
void freed() {
  Block from(kBytes, 3);
  Block between(kBytes, 4);
  const CUstream stream = make_stream();
  Block to(kBytes, 5);
  finish();
  check(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), "cuStreamBeginCapture");
  check(launch(kernels.fill, stream, between.words.size(), between.address(), 9u, between.count()), "limit_fill");
  check(launch(kernels.add, stream, to.words.size(), to.address(), between.address(), to.count()), "limit_add");
  const CUgraphExec exec = instantiate(end_capture(stream));
  if (argument == "free") between.free();
  for (int i = 0; i < 3; ++i) {
    Block neighbour(kBytes, 6 + static_cast<unsigned>(i));
    finish();
    run(exec, stream);
    check(cuStreamSynchronize(stream), "cuStreamSynchronize");
    for (std::size_t k = 0; k < to.words.size(); ++k) to.words[k] += 9 + static_cast<unsigned>(k);
    say("what a graph has names", to.wrong());
    say("its neighbour", neighbour.wrong());
    neighbour.free();
  }
  say("another block", from.wrong());
}

// Allocations of a capture are the graph's; blocks of memopt's are used beside them.
void allocated() {
  Block to(kBytes, 1);
  Crowd crowd;
  crowd.drive_away();
  const CUstream stream = make_stream();
  CUdeviceptr block = 0;
  check(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), "cuStreamBeginCapture");
  check(cuMemAllocAsync(&block, kMib, stream), "cuMemAllocAsync");
  check(launch(kernels.fill, stream, kMib / 4, block, 7u, static_cast<int>(kMib / 4)), "limit_fill");
  check(launch(kernels.add, stream, kMib / 4, to.address(), block, static_cast<int>(kMib / 4)), "limit_add");
  check(cuMemFreeAsync(block, stream), "cuMemFreeAsync");
  const CUgraphExec exec = instantiate(end_capture(stream));
  for (int i = 0; i < 3; ++i) {
    crowd.drive_away();
    run(exec, stream);
    check(cuStreamSynchronize(stream), "cuStreamSynchronize");
    for (std::size_t k = 0; k < kMib / 4; ++k) to.words[k] += 7 + static_cast<unsigned>(k);
    say("with memory of its own", to.wrong());
  }
  say("the crowd", crowd.wrong());
}

// A graph in each iteration, of blocks of that iteration: two that are freed behind its end, and one, in stream order,
// while it lives. None of them stays for good.
void each() {
  const CUstream stream = make_stream();
  Block sum(kBytes, 1);
  for (unsigned i = 0; i < 12; ++i) {
    const Block from(kBytes, i), between(kBytes, i + 1);
    CUdeviceptr pooled = 0;
    check(cuMemAllocAsync(&pooled, kBytes, stream), "cuMemAllocAsync");
    finish();
    check(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
    check(launch(kernels.fill, stream, between.words.size(), between.address(), i, between.count()), "limit_fill");
    check(launch(kernels.fill, stream, between.words.size(), pooled, 2 * i, between.count()), "limit_fill");
    check(launch(kernels.add, stream, between.words.size(), between.address(), pooled, between.count()), "limit_add");
    check(launch(kernels.add, stream, sum.words.size(), sum.address(), between.address(), sum.count()), "limit_add");
    check(launch(kernels.add, stream, sum.words.size(), sum.address(), from.address(), sum.count()), "limit_add");
    const CUgraph graph = end_capture(stream);
    const CUgraphExec exec = instantiate(graph);
    check(cuGraphDestroy(graph), "cuGraphDestroy");
    run(exec, stream);
    check(cuMemFreeAsync(pooled, stream), "cuMemFreeAsync");
    check(cuGraphExecDestroy(exec), "cuGraphExecDestroy");
    check(cuMemFree(from.address()), "cuMemFree");
    check(cuMemFree(between.address()), "cuMemFree");
    for (std::size_t k = 0; k < sum.words.size(); ++k) {
      sum.words[k] += 3 * i + 2 * static_cast<unsigned>(k) + from.words[k];
    }
    say("captured each time", sum.wrong());
  }
}

CUDA_MEMCPY3D copy_of(CUdeviceptr to, const void* from, std::size_t bytes) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = from;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = to;
  copy.WidthInBytes = bytes;
  copy.Height = copy.Depth = 1;
  return copy;
}

// Fills, copies from the host and a graph within a graph. What a copy came from is gone when the node has another
// source.
void copies() {
  constexpr std::size_t kPage = 4096;
  Block to(kBytes, 1), from(kBytes, 2);
  Crowd crowd;
  CUcontext context = nullptr;
  check(cuCtxGetCurrent(&context), "cuCtxGetCurrent");
  const CUstream stream = make_stream();
  check(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
  check(launch(kernels.add, stream, to.words.size(), to.address(), from.address(), to.count()), "limit_add");
  const CUgraph child = end_capture(stream);
  CUgraph graph = nullptr;
  check(cuGraphCreate(&graph, 0), "cuGraphCreate");
  CUDA_MEMSET_NODE_PARAMS fill{};
  fill.dst = to.address();
  fill.value = 3;
  fill.elementSize = 4;
  fill.width = to.words.size();
  fill.height = 1;
  CUgraphNode filled = nullptr, copied = nullptr, added = nullptr;
  check(cuGraphAddMemsetNode(&filled, graph, nullptr, 0, &fill, context), "cuGraphAddMemsetNode");
  auto* page = static_cast<unsigned*>(mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  CUDA_MEMCPY3D copy = copy_of(to.address(), page, kPage);
  check(cuGraphAddMemcpyNode(&copied, graph, &filled, 1, &copy, context), "cuGraphAddMemcpyNode");
  check(cuGraphAddChildGraphNode(&added, graph, &copied, 1, child), "cuGraphAddChildGraphNode");
  const CUgraphExec exec = instantiate(graph);
  for (unsigned i = 0; i < 4; ++i) {
    if (i == 2) {
      auto* const next =
          static_cast<unsigned*>(mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      copy = copy_of(to.address(), next, kPage);
      check(cuGraphExecMemcpyNodeSetParams(exec, copied, &copy, context), "cuGraphExecMemcpyNodeSetParams");
      munmap(page, kPage);
      page = next;
    }
    for (unsigned k = 0; k < kPage / 4; ++k) page[k] = 11 * i + k;
    crowd.drive_away();
    run(exec, stream);
    check(cuStreamSynchronize(stream), "cuStreamSynchronize");
    for (std::size_t k = 0; k < to.words.size(); ++k) to.words[k] = (k < kPage / 4 ? page[k] : 3) + from.words[k];
    say("filled, copied and added", to.wrong() + from.wrong());
  }
  munmap(page, kPage);
  say("the crowd", crowd.wrong());
}

constexpr Case kCases[] = {{"graphs-captured", captured},   {"graphs-by-hand", by_hand}, {"graphs-freed", freed},
                           {"graphs-allocated", allocated}, {"graphs-each", each},       {"graphs-copies", copies}};

}  // namespace

std::span<const Case> graph_cases() { return kCases; }

}  // namespace limit
