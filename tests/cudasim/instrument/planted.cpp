// Small programs with one mistake each, and the same programs without it: what the simulator must catch, and what it
// must let pass.
//
//   planted CASE wrong|right MODULE
//
// Last line of output: "contents right" or "contents wrong". Compiled with load/store callbacks, so that the host's own
// accesses are seen.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr int kWords = 1 << 18;
constexpr std::size_t kBytes = kWords * sizeof(unsigned);  // 1 MiB: several pieces

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = "?";
  cuGetErrorName(result, &name);
  std::printf("%s: %s\n", what, name);
  std::exit(3);
}
#define CHECK(call) check((call), #call)

struct Program {
  bool wrong = false;
  CUfunction fill = nullptr, add = nullptr;
  CUstream a = nullptr, b = nullptr;
  CUevent event = nullptr;

  explicit Program(const std::string& module_path) {
    CHECK(cuInit(0));
    CUcontext context;
    CUdevice device;
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    std::ifstream file(module_path, std::ios::binary);
    std::vector<char> image((std::istreambuf_iterator<char>(file)), {});
    image.push_back(0);
    CUmodule module;
    CHECK(cuModuleLoadData(&module, image.data()));
    CHECK(cuModuleGetFunction(&fill, module, "_Z4fillPjji"));
    CHECK(cuModuleGetFunction(&add, module, "_Z3addPjPKji"));
    CHECK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  }

  void launch_fill(CUstream stream, CUdeviceptr words, unsigned value) {
    int count = kWords;
    void* parameters[] = {&words, &value, &count};
    CHECK(cuLaunchKernel(fill, kWords / 256, 1, 1, 256, 1, 1, 0, stream, parameters, nullptr));
  }
  void launch_add(CUstream stream, CUdeviceptr to, CUdeviceptr from) {
    int count = kWords;
    void* parameters[] = {&to, &from, &count};
    CHECK(cuLaunchKernel(add, kWords / 256, 1, 1, 256, 1, 1, 0, stream, parameters, nullptr));
  }
  // The edge that the wrong program lacks: what comes on `to` waits for what is on `from`.
  void edge(CUstream from, CUstream to) {
    if (wrong) return;
    CHECK(cuEventRecord(event, from));
    CHECK(cuStreamWaitEvent(to, event, 0));
  }
  CUdeviceptr device_words() {
    CUdeviceptr words;
    CHECK(cuMemAlloc(&words, kBytes));
    CHECK(cuMemsetD32(words, 0, kWords));
    CHECK(cuCtxSynchronize());
    return words;
  }
  unsigned* pinned_words(unsigned value) {
    void* words;
    CHECK(cuMemHostAlloc(&words, kBytes, 0));
    for (int i = 0; i < kWords; ++i) static_cast<unsigned*>(words)[i] = value;
    return static_cast<unsigned*>(words);
  }
};

bool all(const unsigned* words, unsigned value) {
  for (int i = 0; i < kWords; ++i) {
    if (words[i] != value) return false;
  }
  return true;
}

// A kernel writes, a copy on another stream reads.
bool compute_then_copy(Program& p) {
  const CUdeviceptr words = p.device_words();
  unsigned* host = p.pinned_words(1);
  p.launch_fill(p.a, words, 7);
  p.edge(p.a, p.b);
  CHECK(cuMemcpyDtoHAsync(host, words, kBytes, p.b));
  CHECK(cuCtxSynchronize());
  return all(host, 7);
}

// A copy writes, a kernel on another stream reads.
bool copy_then_compute(Program& p) {
  const CUdeviceptr words = p.device_words(), sum = p.device_words();
  unsigned* host = p.pinned_words(5);
  unsigned* out = p.pinned_words(1);
  CHECK(cuMemcpyHtoDAsync(words, host, kBytes, p.a));
  p.edge(p.a, p.b);
  p.launch_add(p.b, sum, words);
  CHECK(cuMemcpyDtoHAsync(out, sum, kBytes, p.b));
  CHECK(cuCtxSynchronize());
  return all(out, 5);
}

// A kernel reads, a copy on another stream overwrites what it reads.
bool compute_then_overwrite(Program& p) {
  const CUdeviceptr words = p.device_words(), sum = p.device_words();
  unsigned* host = p.pinned_words(9);
  unsigned* out = p.pinned_words(1);
  p.launch_fill(p.a, words, 4);
  CHECK(cuStreamSynchronize(p.a));
  p.launch_add(p.a, sum, words);
  p.edge(p.a, p.b);
  CHECK(cuMemcpyHtoDAsync(words, host, kBytes, p.b));
  CHECK(cuMemcpyDtoHAsync(out, sum, kBytes, p.a));
  CHECK(cuCtxSynchronize());
  return all(out, 4);
}

// Two copies. They use one engine each way; that engines are queues is no order that a program may rely on.
bool copy_then_copy(Program& p) {
  const CUdeviceptr words = p.device_words();
  unsigned* from = p.pinned_words(11);
  unsigned* to = p.pinned_words(1);
  CHECK(cuMemcpyHtoDAsync(words, from, kBytes, p.a));
  p.edge(p.a, p.b);
  CHECK(cuMemcpyDtoHAsync(to, words, kBytes, p.b));
  CHECK(cuCtxSynchronize());
  return all(to, 11);
}

// One chunk at two addresses: written through one, read through the other.
bool across_aliases(Program& p) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemAccessDesc access{};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  constexpr std::size_t kChunk = 2u << 20;
  CUmemGenericAllocationHandle chunk;
  CHECK(cuMemCreate(&chunk, kChunk, &properties, 0));
  CUdeviceptr alias[2];
  for (CUdeviceptr& address : alias) {
    CHECK(cuMemAddressReserve(&address, kChunk, 0, 0, 0));
    CHECK(cuMemMap(address, kChunk, 0, chunk, 0));
    CHECK(cuMemSetAccess(address, kChunk, &access, 1));
  }
  CHECK(cuMemsetD32(alias[0], 0, kWords));
  CHECK(cuCtxSynchronize());
  unsigned* host = p.pinned_words(1);
  p.launch_fill(p.a, alias[0], 13);
  p.edge(p.a, p.b);
  CHECK(cuMemcpyDtoHAsync(host, alias[1], kBytes, p.b));
  CHECK(cuCtxSynchronize());
  return all(host, 13);
}

// The host reads what a copy has not been waited for.
bool host_reads_early(Program& p) {
  const CUdeviceptr words = p.device_words();
  unsigned* host = p.pinned_words(1);
  p.launch_fill(p.a, words, 17);
  CHECK(cuMemcpyDtoHAsync(host, words, kBytes, p.a));
  if (!p.wrong) CHECK(cuStreamSynchronize(p.a));
  const bool right = all(host, 17);
  CHECK(cuCtxSynchronize());
  return right;
}

// The host overwrites what a copy has still to read.
bool host_writes_early(Program& p) {
  const CUdeviceptr words = p.device_words();
  unsigned* from = p.pinned_words(19);
  unsigned* to = p.pinned_words(1);
  CHECK(cuMemcpyHtoDAsync(words, from, kBytes, p.a));
  if (!p.wrong) CHECK(cuStreamSynchronize(p.a));
  for (int i = 0; i < kWords; ++i) from[i] = 23;
  CHECK(cuMemcpyDtoHAsync(to, words, kBytes, p.a));
  CHECK(cuStreamSynchronize(p.a));
  return all(to, 19);
}

// A wait on an event that is recorded only later waits for nothing.
bool wait_before_record(Program& p) {
  const CUdeviceptr words = p.device_words();
  unsigned* host = p.pinned_words(1);
  if (p.wrong) CHECK(cuStreamWaitEvent(p.b, p.event, 0));
  p.launch_fill(p.a, words, 29);
  CHECK(cuEventRecord(p.event, p.a));
  if (!p.wrong) CHECK(cuStreamWaitEvent(p.b, p.event, 0));
  CHECK(cuMemcpyDtoHAsync(host, words, kBytes, p.b));
  CHECK(cuCtxSynchronize());
  return all(host, 29);
}

// --- stream-ordered memory

CUdeviceptr pool_words(CUstream stream, std::size_t bytes = kBytes) {
  CUdeviceptr words;
  CHECK(cuMemAllocAsync(&words, bytes, stream));
  return words;
}

// Memory that is there in the order of one stream is used on another one. Its former owner may still be at work on it.
bool pool_used_before_allocated(Program& p) {
  unsigned* host = p.pinned_words(1);
  const CUdeviceptr old = pool_words(p.a);
  p.launch_fill(p.a, old, 3);
  CHECK(cuMemFreeAsync(old, p.a));
  const CUdeviceptr words = pool_words(p.a);
  p.edge(p.a, p.b);
  p.launch_fill(p.b, words, 31);
  CHECK(cuMemcpyDtoHAsync(host, words, kBytes, p.b));
  CHECK(cuCtxSynchronize());
  CHECK(cuMemFree(words));
  return all(host, 31);
}

// Freed on one stream while another one still reads.
bool pool_freed_before_used(Program& p) {
  unsigned* host = p.pinned_words(1);
  const CUdeviceptr words = pool_words(p.a);
  p.launch_fill(p.a, words, 37);
  CHECK(cuStreamSynchronize(p.a));
  CHECK(cuMemcpyDtoHAsync(host, words, kBytes, p.b));
  p.edge(p.b, p.a);
  CHECK(cuMemFreeAsync(words, p.a));
  CHECK(cuCtxSynchronize());
  return all(host, 37);
}

// The same of memory that came from cuMemAlloc.
bool block_freed_before_used(Program& p) {
  unsigned* host = p.pinned_words(1);
  const CUdeviceptr words = p.device_words();
  p.launch_fill(p.a, words, 41);
  CHECK(cuStreamSynchronize(p.a));
  CHECK(cuMemcpyDtoHAsync(host, words, kBytes, p.b));
  p.edge(p.b, p.a);
  CHECK(cuMemFreeAsync(words, p.a));
  CHECK(cuCtxSynchronize());
  return all(host, 41);
}

// All in one stream, but the free comes too early.
bool pool_used_after_freed(Program& p) {
  unsigned* host = p.pinned_words(1);
  const CUdeviceptr words = pool_words(p.a), sum = p.device_words();
  p.launch_fill(p.a, words, 43);
  if (p.wrong) CHECK(cuMemFreeAsync(words, p.a));
  p.launch_add(p.a, sum, words);
  if (!p.wrong) CHECK(cuMemFreeAsync(words, p.a));
  CHECK(cuMemcpyDtoHAsync(host, sum, kBytes, p.a));
  CHECK(cuCtxSynchronize());
  return all(host, 43);
}

// cuMemFree of such memory waits for nothing.
bool pool_freed_at_once(Program& p) {
  unsigned* host = p.pinned_words(1);
  const CUdeviceptr words = pool_words(p.a);
  p.launch_fill(p.a, words, 47);
  CHECK(cuMemcpyDtoHAsync(host, words, kBytes, p.a));
  if (!p.wrong) CHECK(cuStreamSynchronize(p.a));
  CHECK(cuMemFree(words));
  CHECK(cuCtxSynchronize());
  return all(host, 47);
}

// Nor does it for the allocation itself.
bool pool_freed_before_allocated(Program& p) {
  const CUdeviceptr shared = p.device_words();
  p.launch_fill(p.a, shared, 3);
  const CUdeviceptr words = pool_words(p.a);
  if (!p.wrong) CHECK(cuStreamSynchronize(p.a));
  CHECK(cuMemFree(words));
  CHECK(cuCtxSynchronize());
  return true;
}

// Memory of a pool that no allocation holds.
bool pool_overrun(Program& p) {
  const CUdeviceptr words = pool_words(p.a, p.wrong ? kBytes - 512 : kBytes);
  p.launch_fill(p.a, words, 53);
  CHECK(cuMemFreeAsync(words, p.a));
  CHECK(cuCtxSynchronize());
  return true;
}

// That memory was free by the time it was asked for says nothing about what else its former owner's stream has done.
bool pool_reuse_is_no_edge(Program& p) {
  unsigned* host = p.pinned_words(1);
  const CUdeviceptr shared = p.device_words();
  constexpr std::size_t kMost = 20u << 20;  // a pool takes 32 MiB at a time: no room for two
  const CUdeviceptr words = pool_words(p.a, kMost);
  p.launch_fill(p.a, words, 3);
  p.launch_fill(p.a, shared, 59);
  CHECK(cuMemFreeAsync(words, p.a));
  for (int i = 0; i < 20; ++i) {  // time goes by
    std::size_t free, total;
    CHECK(cuMemGetInfo(&free, &total));
  }
  const CUdeviceptr again = pool_words(p.b, kMost);
  p.edge(p.a, p.b);
  CHECK(cuMemcpyDtoHAsync(host, shared, kBytes, p.b));
  CHECK(cuMemFreeAsync(again, p.b));
  CHECK(cuCtxSynchronize());
  return again == words && all(host, 59);
}

const std::map<std::string, std::function<bool(Program&)>> kCases = {
    {"compute_then_copy", compute_then_copy},
    {"copy_then_compute", copy_then_compute},
    {"compute_then_overwrite", compute_then_overwrite},
    {"copy_then_copy", copy_then_copy},
    {"across_aliases", across_aliases},
    {"host_reads_early", host_reads_early},
    {"host_writes_early", host_writes_early},
    {"wait_before_record", wait_before_record},
    {"pool_used_before_allocated", pool_used_before_allocated},
    {"pool_freed_before_used", pool_freed_before_used},
    {"block_freed_before_used", block_freed_before_used},
    {"pool_used_after_freed", pool_used_after_freed},
    {"pool_freed_at_once", pool_freed_at_once},
    {"pool_freed_before_allocated", pool_freed_before_allocated},
    {"pool_overrun", pool_overrun},
    {"pool_reuse_is_no_edge", pool_reuse_is_no_edge},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 || !kCases.contains(argv[1]) ||
      (std::strcmp(argv[2], "wrong") != 0 && std::strcmp(argv[2], "right") != 0)) {
    std::fprintf(stderr, "usage: planted CASE wrong|right MODULE\n");
    return 2;
  }
  Program program(argv[3]);
  program.wrong = std::strcmp(argv[2], "wrong") == 0;
  std::printf("contents %s\n", kCases.at(argv[1])(program) ? "right" : "wrong");
  return 0;
}
