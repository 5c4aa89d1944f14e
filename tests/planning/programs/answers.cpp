// What the driver answers to wrong calls and rare questions about memory that memopt may serve: one line each, the same
// with memopt and without. Between them the program goes on with its work, as if nothing had been asked.
//
//   answers CASE
#include <cuda.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "driver_program.h"

const char* const kProgram = "answers";

namespace {

void show(const char* what, CUresult result) { std::printf("%s: %d\n", what, static_cast<int>(result)); }

CUdeviceptr allocate(std::size_t bytes, unsigned int word) {
  CUdeviceptr address = 0;
  check(cuMemAlloc(&address, bytes), "cuMemAlloc");
  check(cuMemsetD32(address, word, bytes / 4), "cuMemsetD32");
  return address;
}

// Is the block still there, as it was?
void verify(const char* what, CUdeviceptr address, std::size_t bytes, unsigned int word) {
  std::vector<unsigned int> words(bytes / 4);
  check(cuMemcpyDtoH(words.data(), address, bytes), "cuMemcpyDtoH");
  std::size_t wrong = 0;
  for (const unsigned int found : words) wrong += found == word ? 0 : 1;
  std::printf("%s: %zu wrong words\n", what, wrong);
}

// Some rounds of allocations on two streams, whose bytes are used again and again.
void work(const char* what) {
  CUstream streams[2];
  for (CUstream& stream : streams) check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  int wrong = 0;
  for (unsigned int round = 0; round < 40; ++round) {
    CUdeviceptr blocks[4];
    for (unsigned int i = 0; i < 4; ++i) {
      check(cuMemAlloc(&blocks[i], (i + 1) << 20), "cuMemAlloc");
      check(cuMemsetD32Async(blocks[i], round * 4 + i, ((i + 1) << 20) / 4, streams[i % 2]), "cuMemsetD32Async");
    }
    for (unsigned int i = 0; i < 4; ++i) {
      unsigned int word = 0;
      check(cuMemcpyDtoHAsync(&word, blocks[i] + (i << 18), 4, streams[i % 2]), "cuMemcpyDtoHAsync");
      check(cuStreamSynchronize(streams[i % 2]), "cuStreamSynchronize");
      wrong += word == round * 4 + i ? 0 : 1;
      check(cuMemFree(blocks[i]), "cuMemFree");
    }
  }
  for (CUstream stream : streams) check(cuStreamDestroy(stream), "cuStreamDestroy");
  if (what != nullptr) std::printf("%s: %d wrong words\n", what, wrong);
}

int wrong_frees() {
  CUdevice device = 0;
  const CUcontext context = open_device(&device);
  constexpr std::size_t kLarge = std::size_t{6} << 20;
  const CUdeviceptr large = allocate(kLarge, 1);
  const CUdeviceptr small = allocate(4096, 2);

  show("null", cuMemFree(0));
  show("inside a block", cuMemFree(large + 512));
  show("inside a small block", cuMemFree(small + 4));
  show("its end", cuMemFree(large + kLarge));
  show("far behind it", cuMemFree(large + (std::size_t{1} << 32)));
  show("invented", cuMemFree(0x1234567000));
  const CUdeviceptr once = allocate(kLarge, 3);
  show("once", cuMemFree(once));
  show("twice", cuMemFree(once));

  check(cuCtxSetCurrent(nullptr), "cuCtxSetCurrent");
  show("without a context", cuMemFree(large));
  show("without a context, small", cuMemFree(small));
  show("without a context, invented", cuMemFree(large + 512));
  CUdeviceptr none = 0;
  show("allocate without a context", cuMemAlloc(&none, 4096));
  std::thread([large] { show("on a thread without a context", cuMemFree(large)); }).join();
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  verify("still there", large, kLarge, 1);
  verify("still there, small", small, 4096, 2);
  work("work");

  CUcontext other = nullptr;
  check(cuCtxCreate(&other, nullptr, 0, device), "cuCtxCreate");
  show("in another context", cuMemFree(small));
  show("in another context, twice", cuMemFree(small));
  std::thread([other] { show("destroyed by another thread", cuCtxDestroy(other)); }).join();
  show("in a context that is gone", cuMemFree(large));
  check(cuCtxPopCurrent(nullptr), "cuCtxPopCurrent");
  verify("still there", large, kLarge, 1);
  show("in its own", cuMemFree(large));
  work("work");

  const CUdeviceptr left = allocate(kLarge, 4);
  check(cuDevicePrimaryCtxReset(device), "cuDevicePrimaryCtxReset");
  show("in a context that was reset", cuMemFree(left));
  show("allocate in a context that was reset", cuMemAlloc(&none, 4096));
  CUcontext again = nullptr;
  check(cuDevicePrimaryCtxRetain(&again, device), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(again), "cuCtxSetCurrent");
  show("of the context before", cuMemFree(left));
  work("work");
  return 0;
}

void use_stream(CUstream stream, CUdeviceptr block, CUevent event) {
  unsigned int word = 0;
  CUdeviceptr made = 0;
  unsigned int flags = 0;
  CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
  CUgraph graph = nullptr;
  show("  memset", cuMemsetD32Async(block, 9, 16, stream));
  show("  copy", cuMemcpyDtoDAsync(block, block + 4096, 64, stream));
  show("  copy to the host", cuMemcpyDtoHAsync(&word, block, 4, stream));
  show("  launch", cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
  show("  host function", cuLaunchHostFunc(
                              stream, [](void*) {}, nullptr));
  show("  record", cuEventRecord(event, stream));
  show("  wait", cuStreamWaitEvent(stream, event, 0));
  show("  query", cuStreamQuery(stream));
  show("  synchronize", cuStreamSynchronize(stream));
  show("  flags", cuStreamGetFlags(stream, &flags));
  show("  capturing", cuStreamIsCapturing(stream, &capturing));
  show("  end of a capture", cuStreamEndCapture(stream, &graph));
  show("  allocate", cuMemAllocAsync(&made, 4096, stream));
  show("  free", cuMemFreeAsync(block, stream));
}

int wrong_streams() {
  CUdevice device = 0;
  open_device(&device);
  constexpr std::size_t kBytes = std::size_t{6} << 20;
  const CUdeviceptr block = allocate(kBytes, 1);
  CUdeviceptr ordered = 0;
  check(cuMemAllocAsync(&ordered, 65536, nullptr), "cuMemAllocAsync");
  CUevent event = nullptr;
  check(cuEventCreate(&event, 0), "cuEventCreate");
  work("work");

  std::puts("invented");
  use_stream(reinterpret_cast<CUstream>(0x5550), block, event);
  for (std::uintptr_t i = 0; i < 200; ++i) {
    const auto stream = reinterpret_cast<CUstream>(0x66660000 + i * 64);
    if (cuMemsetD32Async(block, 9, 16, stream) != CUDA_ERROR_INVALID_HANDLE ||
        cuStreamSynchronize(stream) != CUDA_ERROR_INVALID_HANDLE) {
      std::puts("an invented stream was accepted");
    }
  }
  std::puts("destroyed");
  CUstream gone = nullptr;
  check(cuStreamCreate(&gone, 0), "cuStreamCreate");
  check(cuMemsetD32Async(block, 1, kBytes / 4, gone), "cuMemsetD32Async");
  show("  destroyed", cuStreamDestroy(gone));
  show("  destroyed twice", cuStreamDestroy(gone));
  use_stream(gone, block, event);
  show("an invented one destroyed", cuStreamDestroy(reinterpret_cast<CUstream>(0x5550)));
  show("an invented event", cuEventSynchronize(reinterpret_cast<CUevent>(0x7770)));
  show("an invented event recorded", cuEventRecord(reinterpret_cast<CUevent>(0x7770), nullptr));
  show("an invented event waited for", cuStreamWaitEvent(nullptr, reinterpret_cast<CUevent>(0x7770), 0));
  show("an invented event destroyed", cuEventDestroy(reinterpret_cast<CUevent>(0x7770)));

  verify("still there", block, kBytes, 1);
  work("work");
  show("free of the ordered block", cuMemFreeAsync(ordered, nullptr));
  show("freed twice", cuMemFreeAsync(ordered, nullptr));
  show("inside a block", cuMemFreeAsync(block + 512, nullptr));
  show("its own free", cuMemFree(block));
  show("its own free, twice", cuMemFree(block));
  work("work");
  return 0;
}

// ---- what a pointer is ----------------------------------------------------------------------------------------------

enum class Shape { kNumber, kWord, kAddress, kContext, kPool, kIdentifier };
struct Attribute {
  const char* name;
  CUpointer_attribute attribute;
  std::size_t bytes;
  Shape shape;
};
constexpr Attribute kAttributes[] = {
    {"context", CU_POINTER_ATTRIBUTE_CONTEXT, 8, Shape::kContext},
    {"memory type", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 4, Shape::kNumber},
    {"device pointer", CU_POINTER_ATTRIBUTE_DEVICE_POINTER, 8, Shape::kAddress},
    {"host pointer", CU_POINTER_ATTRIBUTE_HOST_POINTER, 8, Shape::kAddress},
    {"sync memops", CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 4, Shape::kNumber},
    {"buffer id", CU_POINTER_ATTRIBUTE_BUFFER_ID, 8, Shape::kIdentifier},
    {"managed", CU_POINTER_ATTRIBUTE_IS_MANAGED, 4, Shape::kNumber},
    {"device", CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 4, Shape::kNumber},
    {"ipc", CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, 4, Shape::kNumber},
    {"range start", CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 8, Shape::kAddress},
    {"range size", CU_POINTER_ATTRIBUTE_RANGE_SIZE, 8, Shape::kWord},
    {"mapped", CU_POINTER_ATTRIBUTE_MAPPED, 4, Shape::kNumber},
    {"handle types", CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, 8, Shape::kWord},
    {"rdma", CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, 4, Shape::kNumber},
    {"access", CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, 4, Shape::kNumber},
    {"pool", CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, 8, Shape::kPool},
    {"mapping size", CU_POINTER_ATTRIBUTE_MAPPING_SIZE, 8, Shape::kWord},
    {"mapping start", CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, 8, Shape::kAddress},
    {"memory block id", CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, 8, Shape::kIdentifier},
    {"decompression", CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE, 4, Shape::kNumber},
    {"tokens", CU_POINTER_ATTRIBUTE_P2P_TOKENS, 16, Shape::kNumber},
    {"one that is none", static_cast<CUpointer_attribute>(30), 4, Shape::kNumber},
};

CUcontext g_context = nullptr;
CUmemoryPool g_pool = nullptr;

// In words that are the same wherever the block lies.
void print_value(const Attribute& attribute, CUresult result, const unsigned char* bytes, CUdeviceptr base) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes, attribute.bytes < 8 ? attribute.bytes : 8);
  std::printf("  %s: %d", attribute.name, static_cast<int>(result));
  const bool written = value != 0xeeeeeeeeeeeeeeee && value != 0xeeeeeeee;
  switch (attribute.shape) {
    case Shape::kAddress:
      if (!written || value == 0) {
        std::printf(" %s\n", written ? "null" : "-");
      } else {
        std::printf(" base%+lld\n", static_cast<long long>(value - base));
      }
      return;
    case Shape::kContext:
      std::printf(" %s\n", !written                                              ? "-"
                           : value == 0                                          ? "null"
                           : value == reinterpret_cast<std::uint64_t>(g_context) ? "own"
                                                                                 : "?");
      return;
    case Shape::kPool:
      std::printf(" %s\n", !written                                           ? "-"
                           : value == 0                                       ? "null"
                           : value == reinterpret_cast<std::uint64_t>(g_pool) ? "the device's"
                                                                              : "?");
      return;
    case Shape::kIdentifier:
      std::printf(" %s\n", !written ? "-" : value == 0 ? "0" : "a number");
      return;
    default:
      if (written) {
        std::printf(" %llu\n", static_cast<unsigned long long>(value));
      } else {
        std::printf(" -\n");
      }
  }
}

void print_attributes(const char* what, CUdeviceptr address, CUdeviceptr base) {
  constexpr std::size_t kCount = std::size(kAttributes);
  std::printf("%s\n", what);
  unsigned char bytes[kCount][16];
  for (std::size_t i = 0; i < kCount; ++i) {
    std::memset(bytes[i], 0xee, sizeof(bytes[i]));
    const CUresult result = cuPointerGetAttribute(bytes[i], kAttributes[i].attribute, address);
    print_value(kAttributes[i], result, bytes[i], base);
  }
  // All that exist at once; the last two are no attributes of any memory here.
  std::printf(" at once\n");
  CUpointer_attribute attributes[kCount];
  void* data[kCount];
  for (std::size_t i = 0; i < kCount; ++i) {
    std::memset(bytes[i], 0xee, sizeof(bytes[i]));
    attributes[i] = kAttributes[i].attribute;
    data[i] = bytes[i];
  }
  const CUresult result = cuPointerGetAttributes(kCount - 2, attributes, data, address);
  for (std::size_t i = 0; i + 2 < kCount; ++i) print_value(kAttributes[i], result, bytes[i], base);
  show(" with one that is none", cuPointerGetAttributes(kCount, attributes, data, address));
  show(" none at all", cuPointerGetAttributes(0, attributes, data, address));
  data[3] = nullptr;
  show(" without a place", cuPointerGetAttributes(kCount - 2, attributes, data, address));
  show(" one without a place", cuPointerGetAttribute(nullptr, CU_POINTER_ATTRIBUTE_BUFFER_ID, address));
  CUdeviceptr start = 0;
  std::size_t size = 0;
  const CUresult ranged = cuMemGetAddressRange(&start, &size, address);
  std::printf(" address range: %d base%+lld %zu\n", static_cast<int>(ranged),
              static_cast<long long>(start == 0 ? 0 : start - base), size);
}

unsigned long long identifier(CUdeviceptr address, CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_BUFFER_ID) {
  unsigned long long value = 0;
  check(cuPointerGetAttribute(&value, attribute, address), "cuPointerGetAttribute");
  return value;
}

void set_sync(const char* what, CUdeviceptr address, unsigned int value) {
  show(what, cuPointerSetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address));
}

unsigned int sync_of(CUdeviceptr address) {
  unsigned int value = 99;
  check(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address), "cuPointerGetAttribute");
  return value;
}

int pointer_attributes() {
  CUdevice device = 0;
  g_context = open_device(&device);
  check(cuDeviceGetDefaultMemPool(&g_pool, device), "cuDeviceGetDefaultMemPool");
  constexpr std::size_t kLarge = (std::size_t{7} << 20) + 5000;
  const CUdeviceptr large = allocate(kLarge, 1);
  const CUdeviceptr small = allocate(700, 2);
  const CUdeviceptr neighbour = allocate(1300, 3);
  CUdeviceptr ordered = 0;
  check(cuMemAllocAsync(&ordered, 5000, nullptr), "cuMemAllocAsync");
  print_attributes("a block", large, large);
  print_attributes("inside", large + (5 << 20) + 3, large);
  print_attributes("a small block", small + 1, small);
  print_attributes("another", neighbour + 1299, neighbour);
  print_attributes("a block of a pool", ordered + 8, ordered);
  print_attributes("invented", 0x1234567000, 0x1234567000);

  std::printf("identifiers: %d %d %d %d %d %d\n", identifier(small) != identifier(neighbour),
              identifier(small) == identifier(small + 699), identifier(large) == identifier(large + (5 << 20)),
              identifier(large) != identifier(small), identifier(ordered) != identifier(small),
              identifier(large, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID) ==
                  identifier(large + kLarge - 1, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID));
  void* pinned = nullptr;
  check(cuMemAllocHost(&pinned, 4096), "cuMemAllocHost");
  std::printf("not that of host memory: %d\n", identifier(reinterpret_cast<CUdeviceptr>(pinned)) != identifier(small));

  set_sync("set", large + 100, 1);
  std::printf("synchronises: %u %u %u %u\n", sync_of(large), sync_of(large + (6 << 20)), sync_of(small),
              sync_of(neighbour));
  set_sync("set on a small one", small, 7);
  std::printf("synchronises: %u %u\n", sync_of(small), sync_of(neighbour));
  set_sync("set back", large, 0);
  std::printf("synchronises: %u %u %u\n", sync_of(large), sync_of(large + (6 << 20)), sync_of(small));
  set_sync("invented", 0x1234567000, 1);
  set_sync("set on that of a pool", ordered, 1);
  std::printf("synchronises: %u\n", sync_of(ordered));
  const unsigned int on = 1;
  show("set another attribute", cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_CONTEXT, large));
  show("set nothing", cuPointerSetAttribute(nullptr, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, large));
  check(cuCtxSetCurrent(nullptr), "cuCtxSetCurrent");
  set_sync("set without a context", large, 1);
  set_sync("set back without a context", large, 0);
  print_attributes("without a context", large, large);
  check(cuCtxSetCurrent(g_context), "cuCtxSetCurrent");

  const unsigned long long before = identifier(small);
  check(cuMemFree(small), "cuMemFree");
  print_attributes("freed", small, small);
  set_sync("set on a freed one", small, 1);
  const CUdeviceptr again = allocate(700, 4);
  std::printf("a new block: %d, synchronises: %u\n", identifier(again) != before, sync_of(again));
  check(cuMemFree(large), "cuMemFree");
  print_attributes("freed", large + (5 << 20), large);
  check(cuMemFreeAsync(ordered, nullptr), "cuMemFreeAsync");
  check(cuCtxSynchronize(), "cuCtxSynchronize");
  work("work");
  return 0;
}

// ---- threads that are to be cancelled -------------------------------------------------------------------------------

// The thread makes the first calls of the process, and all others, while it is to end at its next cancellation point:
// of these its own calls have none, so that it comes to its end and ends there.
int cancelled() {
  bool reached = false;
  pthread_t thread;
  pthread_create(
      &thread, nullptr,
      [](void* given) -> void* {
        pthread_cancel(pthread_self());
        CUdevice device = 0;
        open_device(&device);
        CUdeviceptr kept = 0;
        check(cuMemAlloc(&kept, 3 << 20), "cuMemAlloc");
        work(nullptr);
        CUdeviceptr ordered = 0;
        check(cuMemAllocAsync(&ordered, 65536, nullptr), "cuMemAllocAsync");
        check(cuMemFreeAsync(ordered, nullptr), "cuMemFreeAsync");
        cuMemFree(kept + 64);
        *static_cast<bool*>(given) = true;
        pthread_testcancel();
        return nullptr;
      },
      &reached);
  void* result = nullptr;
  pthread_join(thread, &result);
  std::printf("came to its end: %d, was cancelled: %d\n", reached, result == PTHREAD_CANCELED);
  CUdevice device = 0;
  open_device(&device);
  work("work");
  return 0;
}

// ---- descriptors ----------------------------------------------------------------------------------------------------

// The program's files have the numbers that they have without memopt, and nothing but the program reads or writes them,
// also after it has closed all that it knows nothing of.
int descriptors() {
  CUdevice device = 0;
  open_device(&device);
  work("work");
  const int first = open("/dev/null", O_RDONLY | O_CLOEXEC);
  std::printf("first: %d\n", first);
  for (int i = 3; i < 1024; ++i) {
    // But for the device: a driver lives by its files.
    char path[64];
    char target[64] = {};
    std::snprintf(path, sizeof(path), "/proc/self/fd/%d", i);
    if (readlink(path, target, sizeof(target) - 1) > 0 && std::strstr(target, "cudasim-device") == nullptr) close(i);
  }
  const std::string text(100, 'x');
  int files[12];
  for (int& file : files) {
    file = memfd_create("program", 0);
    if (write(file, text.data(), text.size()) != 100 || lseek(file, 10, SEEK_SET) != 10) std::puts("not written");
  }
  work("work");
  int pipes[2] = {-1, -1};
  const bool piped = pipe2(pipes, O_NONBLOCK) == 0 && write(pipes[1], "abc", 3) == 3;
  work("work");
  char read_back[200];
  std::printf("pipe: %d %d %d, %zd bytes\n", piped, pipes[0], pipes[1], read(pipes[0], read_back, sizeof(read_back)));
  for (const int file : files) {
    const long at = lseek(file, 0, SEEK_CUR);
    const ssize_t bytes = pread(file, read_back, sizeof(read_back), 0);
    const bool same = bytes == 100 && text == std::string(read_back, 100);
    std::printf("file %d: at %ld, %zd bytes, %s\n", file, at, bytes, same ? "as written" : "changed");
  }
  return 0;
}

struct Case {
  const char* name;
  int (*run)();
};
constexpr Case kCases[] = {{"wrong-frees", wrong_frees},
                           {"wrong-streams", wrong_streams},
                           {"pointer-attributes", pointer_attributes},
                           {"cancelled", cancelled},
                           {"descriptors", descriptors}};

}  // namespace

int main(int argc, char** argv) {
  for (const Case& known : kCases) {
    if (argc == 2 && std::strcmp(argv[1], known.name) == 0) return known.run();
  }
  std::fprintf(stderr, "usage: answers CASE\n");
  return 2;
}
