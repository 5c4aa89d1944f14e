// A plain CUDA program that checks its own results. Exits with the number of failed checks.

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "end_to_end_kernels.cuh"

__device__ int device_table[16];
__device__ int initialised_table[4] = {3, 1, 4, 1};
__constant__ float constant_table[8];
namespace {
__device__ double hidden_value;

int g_failures = 0;
void* g_unused = nullptr;

void check(bool holds, const char* what, int line) {
  if (holds) return;
  ++g_failures;
  std::fprintf(stderr, "end_to_end.cu:%d: %s (last error %s)\n", line, what, cudaGetErrorName(cudaPeekAtLastError()));
}

#define CHECK(condition) check((condition), #condition, __LINE__)
void expect(cudaError_t expected, cudaError_t got, const char* what, int line) {
  if (got != expected)
    std::fprintf(stderr, "  got %s instead of %s\n", cudaGetErrorName(got), cudaGetErrorName(expected));
  check(got == expected, what, line);
  if (expected != cudaSuccess) (void)cudaGetLastError();
}

#define CHECK_OK(call) expect(cudaSuccess, (call), #call, __LINE__)
#define CHECK_ERROR(expected, call) expect((expected), (call), #call, __LINE__)

void devices() {
  int count = 0;
  CHECK_OK(cudaGetDeviceCount(&count));
  CHECK(count >= 1);
  int device = -1;
  CHECK_OK(cudaGetDevice(&device));
  CHECK(device == 0);
  CHECK_OK(cudaSetDevice(0));
  CHECK_ERROR(cudaErrorInvalidDevice, cudaSetDevice(count));
  cudaDeviceProp properties;
  CHECK_OK(cudaGetDeviceProperties(&properties, 0));
  CHECK(properties.name[0] != 0);
  CHECK(properties.warpSize == 32);
  CHECK(properties.maxThreadsPerBlock >= 512);
  CHECK(properties.totalGlobalMem > 0);
  int value = 0;
  CHECK_OK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
  CHECK(value == properties.multiProcessorCount);
  size_t free_bytes = 0;
  size_t total = 0;
  CHECK_OK(cudaMemGetInfo(&free_bytes, &total));
  CHECK(free_bytes > 0 && free_bytes <= total && total == properties.totalGlobalMem);
  int version = 0;
  CHECK_OK(cudaDriverGetVersion(&version));
  CHECK(version >= CUDART_VERSION);
}

void memory() {
  std::vector<unsigned char> sent(10000);
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<unsigned char>(i * 7);
  std::vector<unsigned char> got(sent.size());
  unsigned char* a = nullptr;
  unsigned char* b = nullptr;
  CHECK_OK(cudaMalloc(&a, sent.size()));
  CHECK_OK(cudaMalloc(&b, sent.size()));
  CHECK_OK(cudaMemcpy(a, sent.data(), sent.size(), cudaMemcpyHostToDevice));
  CHECK_OK(cudaMemcpy(b, a, sent.size(), cudaMemcpyDeviceToDevice));
  CHECK_OK(cudaMemset(a, 0xAB, sent.size()));
  CHECK_OK(cudaMemcpy(got.data(), b, sent.size(), cudaMemcpyDeviceToHost));
  CHECK(got == sent);
  CHECK_OK(cudaMemcpy(got.data(), a, sent.size(), cudaMemcpyDefault));
  CHECK(got == std::vector<unsigned char>(sent.size(), 0xAB));
  cudaPointerAttributes attributes;
  CHECK_OK(cudaPointerGetAttributes(&attributes, a + 100));
  CHECK(attributes.type == cudaMemoryTypeDevice && attributes.device == 0);
  CHECK_OK(cudaPointerGetAttributes(&attributes, got.data()));
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
  CHECK_OK(cudaFree(a));
  CHECK_OK(cudaFree(b));
  CHECK_OK(cudaFree(nullptr));
  CHECK_ERROR(cudaErrorMemoryAllocation, cudaMalloc(&a, size_t{1} << 50));

  size_t pitch = 0;
  CHECK_OK(cudaMallocPitch(&a, &pitch, 100, 20));
  CHECK(pitch >= 100);
  CHECK_OK(cudaMemset2D(a, pitch, 0, 100, 20));
  CHECK_OK(cudaMemcpy2D(a, pitch, sent.data(), 120, 100, 20, cudaMemcpyHostToDevice));
  std::fill(got.begin(), got.end(), 0);
  CHECK_OK(cudaMemcpy2D(got.data(), 110, a, pitch, 100, 20, cudaMemcpyDeviceToHost));
  bool rows_equal = true;
  for (int row = 0; row < 20; ++row) rows_equal &= std::memcmp(&got[row * 110], &sent[row * 120], 100) == 0;
  CHECK(rows_equal);
  CHECK_OK(cudaFree(a));

  unsigned char* pinned = nullptr;
  CHECK_OK(cudaMallocHost(&pinned, 4096));
  CHECK_OK(cudaPointerGetAttributes(&attributes, pinned));
  CHECK(attributes.type == cudaMemoryTypeHost);
  unsigned int flags = 0;
  CHECK_OK(cudaHostGetFlags(&flags, pinned));
  CHECK_OK(cudaFreeHost(pinned));
  std::vector<unsigned char> registered(3 * 4096);
  CHECK_OK(cudaHostRegister(registered.data(), registered.size(), cudaHostRegisterDefault));
  CHECK_ERROR(cudaErrorHostMemoryAlreadyRegistered,
              cudaHostRegister(registered.data(), registered.size(), cudaHostRegisterDefault));
  CHECK_OK(cudaHostUnregister(registered.data()));
}

void symbols() {
  int* address = nullptr;
  size_t size = 0;
  CHECK_OK(cudaGetSymbolAddress(reinterpret_cast<void**>(&address), device_table));
  CHECK_OK(cudaGetSymbolSize(&size, device_table));
  CHECK(size == sizeof device_table);
  const int sent[4] = {5, 6, 7, 8};
  int got[16];
  CHECK_OK(cudaMemcpyToSymbol(device_table, sent, sizeof sent, 3 * sizeof(int)));
  CHECK_OK(cudaMemcpyFromSymbol(got, device_table, sizeof got));
  CHECK(got[0] == 0 && got[3] == 5 && got[6] == 8 && got[7] == 0);
  add_constant<int, 5><<<1, 16>>>(address, 16);
  CHECK_OK(cudaGetLastError());
  CHECK_OK(cudaMemcpyFromSymbol(got, device_table, sizeof got));
  CHECK(got[0] == 5 && got[3] == 10 && got[15] == 5);
  CHECK_OK(cudaMemcpyFromSymbol(got, initialised_table, sizeof initialised_table));
  CHECK(got[0] == 3 && got[1] == 1 && got[2] == 4 && got[3] == 1);
  const float third = 1.0f / 3;
  float back = 0;
  CHECK_OK(cudaMemcpyToSymbol(constant_table, &third, sizeof third, 4));
  CHECK_OK(cudaMemcpyFromSymbol(&back, constant_table, sizeof back, 4));
  CHECK(back == third);
  const double two = 2;
  double seen = 0;
  CHECK_OK(cudaMemcpyToSymbol(hidden_value, &two, sizeof two));
  CHECK_OK(cudaMemcpyFromSymbol(&seen, hidden_value, sizeof seen));
  CHECK(seen == two);
  CHECK_ERROR(cudaErrorInvalidSymbol, cudaGetSymbolSize(&size, g_failures));
}

void launches() {
  constexpr int kCount = 1000;
  std::vector<float> x(kCount);
  for (int i = 0; i < kCount; ++i) x[i] = static_cast<float>(i);
  float* in = nullptr;
  float* out = nullptr;
  CHECK_OK(cudaMalloc(&in, kCount * sizeof(float)));
  CHECK_OK(cudaMalloc(&out, kCount * sizeof(float)));
  CHECK_OK(cudaMemcpy(in, x.data(), kCount * sizeof(float), cudaMemcpyHostToDevice));
  apply_line<<<(kCount + 127) / 128, 128>>>(Line{in, out, 0.5, kCount, 'x'}, 3.0f);
  CHECK_OK(cudaGetLastError());
  CHECK_OK(cudaDeviceSynchronize());
  std::vector<float> y(kCount);
  CHECK_OK(cudaMemcpy(y.data(), out, kCount * sizeof(float), cudaMemcpyDeviceToHost));
  bool right = true;
  for (int i = 0; i < kCount; ++i) right &= y[i] == 0.5f * x[i] + 3;
  CHECK(right);

  add_constant<float, 2><<<8, 125>>>(out, kCount);
  int* one = reinterpret_cast<int*>(in);
  store_one<<<1, 1>>>(one);
  int value = 0;
  CHECK_OK(cudaMemcpy(&value, one, sizeof value, cudaMemcpyDeviceToHost));
  CHECK(value == 1);
  CHECK_OK(cudaMemcpy(y.data(), out, kCount * sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(y[10] == 0.5f * 10 + 3 + 2);

  cudaLaunchConfig_t config{};
  config.gridDim = 8;
  config.blockDim = 125;
  CHECK_OK(cudaLaunchKernelEx(&config, add_constant<float, 2>, out, kCount));
  CHECK_OK(cudaMemcpy(y.data(), out, sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(y[0] == 3 + 2 + 2);

  nothing<<<1, 5000>>>();
  CHECK_ERROR(cudaErrorInvalidConfiguration, cudaGetLastError());
  nothing<<<0, 1>>>();
  CHECK_ERROR(cudaErrorInvalidConfiguration, cudaGetLastError());
  CHECK_ERROR(cudaErrorInvalidDeviceFunction, cudaLaunchKernel(&g_failures, 1, 1, nullptr, 0, nullptr));

  cudaFuncAttributes attributes;
  CHECK_OK(cudaFuncGetAttributes(&attributes, apply_line));
  CHECK(attributes.maxThreadsPerBlock > 0 && attributes.maxThreadsPerBlock <= 1024 && attributes.numRegs > 0);
  size_t offset = 0;
  size_t size = 0;
  CHECK_OK(cudaFuncGetParamInfo(reinterpret_cast<const void*>(&apply_line), 1, &offset, &size));
  CHECK(offset == sizeof(Line) && size == sizeof(float));
  int blocks = 0;
  CHECK_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, apply_line, 128, 0));
  CHECK(blocks > 0);
  int least_grid = 0;
  int best_block = 0;
  CHECK_OK(cudaOccupancyMaxPotentialBlockSize(&least_grid, &best_block, apply_line));
  CHECK(best_block > 0);
  cudaKernel_t kernel = nullptr;
  CHECK_OK(cudaGetKernel(&kernel, nothing));
  CHECK_OK(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), 1, 1, nullptr, 0, nullptr));
  cudaFunction_t function = nullptr;
  CHECK_OK(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(&nothing)));
  CHECK(function != nullptr);
  CHECK_OK(cudaFree(in));
  CHECK_OK(cudaFree(out));
}

void count_up(void* counter) { static_cast<std::atomic<int>*>(counter)->fetch_add(1); }

void stream_attributes(cudaStream_t first, cudaStream_t second) {
  cudaStreamAttrValue value{}, got{};
  CHECK_OK(cudaStreamGetAttribute(first, cudaStreamAttributeSynchronizationPolicy, &got));
  CHECK(got.syncPolicy == cudaSyncPolicyAuto);
  value.accessPolicyWindow.base_ptr = &value;
  value.accessPolicyWindow.num_bytes = 1 << 20;
  value.accessPolicyWindow.hitRatio = 0.5f;
  value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
  CHECK_OK(cudaStreamSetAttribute(first, cudaStreamAttributeAccessPolicyWindow, &value));
  CHECK_OK(cudaStreamCopyAttributes(second, first));
  CHECK_OK(cudaStreamGetAttribute(second, cudaStreamAttributeAccessPolicyWindow, &got));
  CHECK(got.accessPolicyWindow.base_ptr == &value && got.accessPolicyWindow.num_bytes == 1 << 20);
  value.priority = -100;  // as when a stream is made, the nearest that there is
  CHECK_OK(cudaStreamSetAttribute(second, cudaStreamAttributePriority, &value));
  int priority = 0, greatest = 0;
  CHECK_OK(cudaStreamGetPriority(second, &priority));
  CHECK_OK(cudaDeviceGetStreamPriorityRange(nullptr, &greatest));
  CHECK(priority == greatest && greatest < 0);
  // A ratio above one, and an attribute of launches alone.
  value.accessPolicyWindow.num_bytes = 1 << 20;
  value.accessPolicyWindow.hitRatio = 1.5f;
  CHECK(cudaStreamSetAttribute(first, cudaStreamAttributeAccessPolicyWindow, &value) == cudaErrorInvalidValue);
  CHECK(cudaStreamSetAttribute(first, cudaLaunchAttributeCooperative, &value) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
}

void streams() {
  cudaStream_t first = nullptr;
  cudaStream_t second = nullptr;
  CHECK_OK(cudaStreamCreate(&first));
  CHECK_OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  unsigned int flags = 7;
  CHECK_OK(cudaStreamGetFlags(second, &flags));
  CHECK(flags == cudaStreamNonBlocking);
  unsigned long long id_first = 0;
  unsigned long long id_second = 0;
  CHECK_OK(cudaStreamGetId(first, &id_first));
  CHECK_OK(cudaStreamGetId(second, &id_second));
  CHECK(id_first != id_second);
  stream_attributes(first, second);

  constexpr int kCount = 1 << 16;
  int* values = nullptr;
  int* host = nullptr;
  CHECK_OK(cudaMalloc(&values, kCount * sizeof(int)));
  CHECK_OK(cudaMallocHost(&host, kCount * sizeof(int)));
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  cudaEvent_t untimed = nullptr;
  CHECK_OK(cudaEventCreate(&begin));
  CHECK_OK(cudaEventCreate(&end));
  CHECK_OK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  CHECK_OK(cudaEventRecord(begin, first));
  CHECK_OK(cudaMemsetAsync(values, 0, kCount * sizeof(int), first));
  add_constant<int, 5><<<kCount / 256, 256, 0, first>>>(values, kCount);
  CHECK_OK(cudaEventRecord(untimed, first));
  CHECK_OK(cudaStreamWaitEvent(second, untimed, 0));
  add_constant<int, 5><<<kCount / 256, 256, 0, second>>>(values, kCount);
  CHECK_OK(cudaMemcpyAsync(host, values, kCount * sizeof(int), cudaMemcpyDeviceToHost, second));
  std::atomic<int> counter{0};
  CHECK_OK(cudaLaunchHostFunc(second, count_up, &counter));
  CHECK_OK(cudaEventRecord(end, second));
  CHECK_OK(cudaStreamSynchronize(second));
  CHECK(counter == 1);
  CHECK(host[0] == 10 && host[kCount - 1] == 10);
  CHECK_OK(cudaEventQuery(end));
  CHECK_OK(cudaStreamQuery(second));
  float milliseconds = -1;
  CHECK_OK(cudaEventElapsedTime(&milliseconds, begin, end));
  CHECK(milliseconds > 0);
  CHECK_ERROR(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&milliseconds, begin, untimed));
  CHECK_ERROR(cudaErrorInvalidResourceHandle, cudaStreamDestroy(nullptr));

  // The special streams by their names, and stream 0 of this program's kind.
  CHECK_OK(cudaMemsetAsync(values, 1, 4, cudaStreamLegacy));
  CHECK_OK(cudaMemsetAsync(values, 1, 4, cudaStreamPerThread));
  CHECK_OK(cudaStreamSynchronize(cudaStreamPerThread));
  CHECK_OK(cudaMemsetAsync(values, 2, 4, nullptr));
  CHECK_OK(cudaStreamSynchronize(nullptr));
  CHECK_OK(cudaDeviceSynchronize());
  std::thread([&] {
    add_constant<int, 5><<<1, 1>>>(values, 1);
    int seen = 0;
    CHECK_OK(cudaMemcpy(&seen, values, sizeof seen, cudaMemcpyDeviceToHost));
    CHECK(seen == 0x02020202 + 5);
    CHECK_OK(cudaGetLastError());
  }).join();

  CHECK_OK(cudaEventDestroy(begin));
  CHECK_OK(cudaEventDestroy(end));
  CHECK_OK(cudaEventDestroy(untimed));
  CHECK_OK(cudaStreamDestroy(first));
  CHECK_OK(cudaStreamDestroy(second));
  CHECK_OK(cudaFree(values));
  CHECK_OK(cudaFreeHost(host));
}

void pools() {
  int supported = 0;
  CHECK_OK(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
  CHECK(supported == 1);
  cudaMemPool_t fixed = nullptr;
  cudaMemPool_t current = nullptr;
  CHECK_OK(cudaDeviceGetDefaultMemPool(&fixed, 0));
  CHECK_OK(cudaDeviceGetMemPool(&current, 0));
  CHECK(fixed != nullptr && current == fixed);
  cudaMemLocation location{};
  location.type = cudaMemLocationTypeDevice;
  CHECK_OK(cudaMemGetDefaultMemPool(&current, &location, cudaMemAllocationTypePinned));
  CHECK(current == fixed);

  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = location;
  cudaMemPool_t pool = nullptr;
  CHECK_OK(cudaMemPoolCreate(&pool, &properties));
  unsigned long long threshold = ~0ull;
  CHECK_OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  cudaMemAccessFlags access = cudaMemAccessFlagsProtNone;
  CHECK_OK(cudaMemPoolGetAccess(&access, pool, &location));
  CHECK(access == cudaMemAccessFlagsProtReadWrite);
  CHECK_OK(cudaDeviceSetMemPool(0, pool));

  cudaStream_t stream = nullptr;
  CHECK_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  constexpr int kCount = 1 << 16;
  int* values = nullptr;
  CHECK_OK(cudaMallocAsync(&values, kCount * sizeof(int), stream));
  CHECK_OK(cudaMemsetAsync(values, 0, kCount * sizeof(int), stream));
  add_constant<int, 5><<<kCount / 256, 256, 0, stream>>>(values, kCount);
  std::vector<int> got(kCount);
  CHECK_OK(cudaMemcpyAsync(got.data(), values, kCount * sizeof(int), cudaMemcpyDeviceToHost, stream));
  CHECK_OK(cudaStreamSynchronize(stream));
  CHECK(got == std::vector<int>(kCount, 5));
  cudaPointerAttributes attributes;
  CHECK_OK(cudaPointerGetAttributes(&attributes, values + 7));
  CHECK(attributes.type == cudaMemoryTypeDevice && attributes.device == 0);
  CHECK_OK(cudaFreeAsync(values, stream));
  int* again = nullptr;
  CHECK_OK(cudaMallocFromPoolAsync(&again, kCount * sizeof(int), pool, stream));
  CHECK(again == values);
  unsigned long long used = 0;
  CHECK_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  CHECK(used == kCount * sizeof(int));
  CHECK_OK(cudaFreeAsync(again, stream));
  CHECK_OK(cudaStreamSynchronize(stream));
  unsigned long long reserved = 0;
  CHECK_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
  CHECK(reserved >= used);
  CHECK_OK(cudaMemPoolTrimTo(pool, 0));
  CHECK_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
  CHECK(reserved == 0);

  // Stream 0 of this program's kind; and blocks of one kind, freed the other way.
  int* plain = nullptr;
  CHECK_OK(cudaMallocAsync(&values, sizeof(int), nullptr));
  CHECK_OK(cudaMalloc(&plain, sizeof(int)));
  store_one<<<1, 1>>>(values);
  store_one<<<1, 1>>>(plain);
  CHECK_OK(cudaFreeAsync(plain, nullptr));
  CHECK_OK(cudaStreamSynchronize(nullptr));
  CHECK_OK(cudaFree(values));
  CHECK_OK(cudaFreeAsync(nullptr, stream));
  CHECK_ERROR(cudaErrorMemoryAllocation, cudaMallocAsync(&values, size_t{1} << 50, stream));

  CHECK_OK(cudaMemPoolDestroy(pool));
  CHECK_OK(cudaDeviceGetMemPool(&current, 0));
  CHECK(current == fixed);
  CHECK_ERROR(cudaErrorInvalidValue, cudaMemPoolDestroy(fixed));
  CHECK_OK(cudaStreamDestroy(stream));
}

void graph_memory() {
  unsigned long long held = 7;
  CHECK_OK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &held));
  CHECK(held == 0);
  CHECK_OK(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &held));
  held = 1;
  CHECK_ERROR(cudaErrorInvalidValue, cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &held));
  CHECK_OK(cudaDeviceGraphMemTrim(0));
  cudaStream_t stream = nullptr;
  CHECK_OK(cudaStreamCreate(&stream));
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
  unsigned long long id = 0;
  CHECK_OK(cudaStreamGetCaptureInfo(stream, &status, &id, nullptr, nullptr, nullptr, nullptr));
  CHECK(status == cudaStreamCaptureStatusNone);
  CHECK_OK(cudaStreamDestroy(stream));
}

std::vector<float> floats_of(const float* block, cudaStream_t stream) {
  std::vector<float> values(64, -1);
  CHECK_OK(cudaStreamSynchronize(stream));
  CHECK_OK(cudaMemcpy(values.data(), block, 64 * sizeof(float), cudaMemcpyDeviceToHost));
  return values;
}

// A captured step, launched again and again, and nodes made and changed one by one.
void graphs() {
  cudaStream_t stream = nullptr;
  CHECK_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  float *values = nullptr, *copy = nullptr;
  CHECK_OK(cudaMalloc(&values, 64 * sizeof(float)));
  CHECK_OK(cudaMalloc(&copy, 64 * sizeof(float)));
  CHECK_OK(cudaMemset(values, 0, 64 * sizeof(float)));
  CHECK_OK(cudaDeviceSynchronize());

  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  CHECK_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  add_constant<float, 2><<<1, 64, 0, stream>>>(values, 64);
  CHECK_OK(cudaMemcpyAsync(copy, values, 64 * sizeof(float), cudaMemcpyDeviceToDevice, stream));
  CHECK_ERROR(cudaErrorStreamCaptureUnsupported, cudaMalloc(&g_unused, 64));
  CHECK_ERROR(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
  CHECK(graph == nullptr);
  CHECK_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  add_constant<float, 2><<<1, 64, 0, stream>>>(values, 64);
  CHECK_OK(cudaMemcpyAsync(copy, values, 64 * sizeof(float), cudaMemcpyDeviceToDevice, stream));
  CHECK_OK(cudaStreamEndCapture(stream, &graph));
  CHECK_OK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; ++i) CHECK_OK(cudaGraphLaunch(exec, stream));
  CHECK(floats_of(copy, stream)[63] == 3 * 2);

  size_t count = 2;
  cudaGraphNode_t nodes[2] = {};
  CHECK_OK(cudaGraphGetNodes(graph, nodes, &count));
  CHECK(count == 2);
  cudaKernelNodeParams kernel{};
  CHECK_OK(cudaGraphKernelNodeGetParams(nodes[0], &kernel));
  CHECK(kernel.blockDim.x == 64 && *static_cast<float**>(kernel.kernelParams[0]) == values);
  int none = 0;
  void* arguments[] = {&values, &none};
  kernel.kernelParams = arguments;
  CHECK_OK(cudaGraphExecKernelNodeSetParams(exec, nodes[0], &kernel));
  CHECK_OK(cudaGraphLaunch(exec, stream));
  CHECK(floats_of(copy, stream)[63] == 3 * 2);
  CHECK_OK(cudaGraphExecMemcpyNodeSetParams1D(exec, nodes[1], values, copy, 4, cudaMemcpyDeviceToDevice));
  CHECK_OK(cudaGraphExecDestroy(exec));
  CHECK_OK(cudaGraphDestroy(graph));

  CHECK_OK(cudaGraphCreate(&graph, 0));
  cudaMemsetParams fill{};
  fill.dst = values;
  fill.elementSize = 4;
  fill.width = 64;
  fill.height = 1;
  CHECK_OK(cudaGraphAddMemsetNode(&nodes[0], graph, nullptr, 0, &fill));
  cudaGraphNodeParams any{};
  any.type = cudaGraphNodeTypeKernel;
  any.kernel.func = reinterpret_cast<void*>(&add_constant<float, 2>);
  any.kernel.gridDim = {1, 1, 1};
  any.kernel.blockDim = {64, 1, 1};
  int all = 64;
  arguments[1] = &all;
  any.kernel.kernelParams = arguments;
  CHECK_OK(cudaGraphAddNode(&nodes[1], graph, &nodes[0], nullptr, 1, &any));
  CHECK_OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  CHECK_OK(cudaGraphLaunch(exec, stream));
  CHECK_OK(cudaGraphLaunch(exec, stream));
  CHECK(floats_of(values, stream)[0] == 2);
  cudaGraphNodeType type{};
  CHECK_OK(cudaGraphNodeGetType(nodes[1], &type));
  CHECK(type == cudaGraphNodeTypeKernel);
  CHECK_OK(cudaGraphExecDestroy(exec));
  CHECK_OK(cudaGraphDestroy(graph));
  CHECK_OK(cudaStreamDestroy(stream));
  CHECK_OK(cudaFree(values));
  CHECK_OK(cudaFree(copy));
}

void errors() {
  int local = 0;
  CHECK_ERROR(cudaErrorInvalidValue, cudaFree(&local));
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  void* function = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
  CHECK_OK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 12000, cudaEnableDefault, &status));
  CHECK(status == cudaDriverEntryPointSuccess && function != nullptr);
}

void reset() {
  int* value = nullptr;
  CHECK_OK(cudaDeviceReset());
  CHECK_OK(cudaMalloc(&value, sizeof(int)));
  store_one<<<1, 1>>>(value);
  int got = 0;
  CHECK_OK(cudaMemcpy(&got, value, sizeof got, cudaMemcpyDeviceToHost));
  CHECK(got == 1);
  int table[4] = {};
  CHECK_OK(cudaMemcpyFromSymbol(table, initialised_table, sizeof table));
  CHECK(table[2] == 4);
  CHECK_OK(cudaFree(value));
}

// Calls from a static destructor, after main: the runtime and the driver must still be there.
struct AtExit {
  int* block = nullptr;
  ~AtExit() {
    if (cudaFree(block) != cudaSuccess) {
      std::fprintf(stderr, "end_to_end.cu: cudaFree failed in a static destructor\n");
      std::_Exit(99);
    }
  }
};
AtExit g_at_exit;

}  // namespace

int main() {
  devices();
  memory();
  symbols();
  launches();
  streams();
  pools();
  graph_memory();
  graphs();
  errors();
  reset();
  CHECK_OK(cudaMalloc(&g_at_exit.block, 64));
  if (g_failures == 0) std::printf("end to end: all checks hold\n");
  return g_failures;
}
