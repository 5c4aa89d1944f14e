// Awkward uses of the CUDA runtime, one behaviour each: awkward_runtime --list, or awkward_runtime CASE. What is
// printed is the same on every driver, and with the shared and the static runtime.
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kBytes = std::size_t{3} << 20;
constexpr int kWords = static_cast<int>(kBytes / sizeof(unsigned));

__device__ unsigned* global_pointer = nullptr;
__constant__ unsigned* constant_pointers[2] = {nullptr, nullptr};
__device__ unsigned table[1024];

__global__ void fill(unsigned* out, unsigned seed, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = seed * 2654435761u + static_cast<unsigned>(i);
}

__global__ void add(unsigned* out, const unsigned* in, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] += in[i];
}

__global__ void add_by_symbols(int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  global_pointer[i] += constant_pointers[0][i] ^ constant_pointers[1][i];
  if (i < 1024) table[i] = global_pointer[i];
}

void show(const char* what, cudaError_t result) {
  std::printf("%s: %s\n", what, cudaGetErrorName(result));
  (void)cudaGetLastError();
}

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "awkward_runtime: %s: %s\n", what, cudaGetErrorName(result));
  std::_Exit(3);
}

unsigned* block(unsigned seed, cudaStream_t stream = nullptr) {
  unsigned* made = nullptr;
  check(cudaMalloc(&made, kBytes), "cudaMalloc");
  fill<<<kWords / 256, 256, 0, stream>>>(made, seed, kWords);
  check(cudaGetLastError(), "fill");
  return made;
}

void contents(const char* what, const unsigned* from) {
  std::vector<unsigned> words(kWords);
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  check(cudaMemcpy(words.data(), from, kBytes, cudaMemcpyDeviceToHost), what);
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const unsigned word : words) hash = (hash ^ word) * 0x100000001b3u;
  std::printf("%s: %016llx\n", what, static_cast<unsigned long long>(hash));
}

void release(unsigned* memory) { check(cudaFree(memory), "cudaFree"); }

// The very first call, on a thread that is not main()'s.
void first_on_a_thread() {
  std::thread([] {
    unsigned* const made = block(1);
    contents("made", made);
    release(made);
  }).join();
  unsigned* const made = block(2);
  contents("made here", made);
  release(made);
}

void device_reset() {
  for (unsigned round = 0; round < 3; ++round) {
    unsigned* const a = block(round);
    unsigned* const left = block(round + 9);
    add<<<kWords / 256, 256>>>(a, left, kWords);
    contents("before", a);
    show("reset", cudaDeviceReset());
    show("freed in what is gone", cudaFree(left));
    const unsigned words[4] = {round, 2, 3, 4};
    unsigned back[4] = {};
    check(cudaMemcpyToSymbol(table, words, sizeof(words)), "cudaMemcpyToSymbol");
    check(cudaMemcpyFromSymbol(back, table, sizeof(back)), "cudaMemcpyFromSymbol");
    std::printf("a symbol: %u\n", back[0] + back[3]);
  }
}

void symbols() {
  unsigned* const a = block(1);
  unsigned* const b = block(2);
  unsigned* const c = block(3);
  unsigned* const both[2] = {b, c};
  check(cudaMemcpyToSymbol(global_pointer, &a, sizeof(a)), "cudaMemcpyToSymbol");
  check(cudaMemcpyToSymbol(constant_pointers, both, sizeof(both)), "cudaMemcpyToSymbol");
  std::vector<unsigned*> others;
  for (unsigned i = 0; i < 6; ++i) others.push_back(block(100 + i));
  for (int round = 0; round < 3; ++round) {
    for (unsigned* const other : others) add<<<kWords / 256, 256>>>(other, other, kWords);
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    add_by_symbols<<<kWords / 256, 256>>>(kWords);
  }
  contents("a", a);
  unsigned first = 0;
  check(cudaMemcpyFromSymbol(&first, table, sizeof(first)), "cudaMemcpyFromSymbol");
  std::printf("table: %u\n", first);
  for (unsigned* const other : others) release(other);
  for (unsigned* const one : {a, b, c}) release(one);
}

void shaped() {
  cudaPitchedPtr box{};
  check(cudaMalloc3D(&box, make_cudaExtent(1000, 30, 20)), "cudaMalloc3D");
  std::printf("pitch: %zu\n", box.pitch);
  check(cudaMemset3D(box, 5, make_cudaExtent(1000, 30, 20)), "cudaMemset3D");
  std::vector<unsigned char> back(1000 * 30 * 20);
  cudaMemcpy3DParms copy{};
  copy.srcPtr = box;
  copy.dstPtr = make_cudaPitchedPtr(back.data(), 1000, 1000, 30);
  copy.extent = make_cudaExtent(1000, 30, 20);
  copy.kind = cudaMemcpyDeviceToHost;
  check(cudaMemcpy3D(&copy), "cudaMemcpy3D");
  unsigned sum = 0;
  for (const unsigned char byte : back) sum += byte;
  std::printf("sum: %u\n", sum);
  check(cudaFree(box.ptr), "cudaFree");
  void* rows = nullptr;
  std::size_t pitch = 0;
  check(cudaMallocPitch(&rows, &pitch, 100, 40), "cudaMallocPitch");
  std::printf("pitch: %zu\n", pitch);
  show("freed", cudaFree(rows));
  show("freed twice", cudaFree(rows));
}

void wrong() {
  unsigned* none = nullptr;
  show("nothing", cudaMalloc(&none, 0));
  std::printf("null: %d\n", none == nullptr);
  show("null freed", cudaFree(nullptr));
  show("too much", cudaMalloc(&none, std::size_t{1} << 50));
  show("remembered", cudaGetLastError());
  unsigned* const a = block(1);
  show("inside", cudaFree(a + 16));
  cudaPointerAttributes attributes{};
  show("attributes", cudaPointerGetAttributes(&attributes, a + 7));
  std::printf("type %d, device %d, itself %d, of the host %d\n", static_cast<int>(attributes.type), attributes.device,
              attributes.devicePointer == a + 7, attributes.hostPointer != nullptr);
  cudaIpcMemHandle_t handle{};
  std::printf("shared: %d\n", cudaIpcGetMemHandle(&handle, a) == cudaSuccess);
  (void)cudaGetLastError();
  contents("a", a);
  release(a);
}

// Threads whose last destructors free, while others go on.
void threads() {
  struct Kept {
    unsigned* memory = nullptr;
    ~Kept() {
      if (memory != nullptr) release(memory);
    }
  };
  for (unsigned round = 0; round < 4; ++round) {
    std::vector<std::thread> all;
    for (unsigned i = 0; i < 3; ++i) {
      all.emplace_back([i] {
        thread_local Kept kept;
        kept.memory = block(i, cudaStreamPerThread);
        check(cudaStreamSynchronize(cudaStreamPerThread), "cudaStreamSynchronize");
      });
    }
    for (std::thread& thread : all) thread.join();
  }
  std::printf("done\n");
}

// Static objects of the program, which go after main().
struct AtTheEnd {
  unsigned* memory = nullptr;
  ~AtTheEnd() {
    if (memory == nullptr) return;
    const cudaError_t result = cudaFree(memory);
    std::printf("freed after main: %d\n", result == cudaSuccess || result == cudaErrorCudartUnloading);
  }
};
AtTheEnd g_at_the_end;

void destructors() {
  g_at_the_end.memory = block(4);
  contents("kept", g_at_the_end.memory);
}

void entry_points() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check(cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 12000, cudaEnableDefault, &found),
        "cudaGetDriverEntryPointByVersion");
  const auto allocate = reinterpret_cast<int (*)(unsigned long long*, std::size_t)>(function);
  check(cudaGetDriverEntryPointByVersion("cuMemFree", &function, 12000, cudaEnableDefault, &found),
        "cudaGetDriverEntryPointByVersion");
  const auto give_back = reinterpret_cast<int (*)(unsigned long long)>(function);
  check(cudaFree(nullptr), "cudaFree");
  unsigned long long address = 0;
  std::printf("allocated: %d\n", allocate(&address, kBytes));
  fill<<<kWords / 256, 256>>>(reinterpret_cast<unsigned*>(address), 8, kWords);
  contents("filled", reinterpret_cast<unsigned*>(address));
  // By the runtime, which did not make it; and the other way about.
  show("freed", cudaFree(reinterpret_cast<void*>(address)));
  unsigned* const made = block(3);
  std::printf("freed: %d\n", give_back(reinterpret_cast<unsigned long long>(made)));
}

struct Case {
  const char* name;
  void (*run)();
};
constexpr Case kCases[] = {{"first-on-a-thread", first_on_a_thread},
                           {"device-reset", device_reset},
                           {"symbols", symbols},
                           {"shaped", shaped},
                           {"wrong", wrong},
                           {"threads", threads},
                           {"destructors", destructors},
                           {"entry-points", entry_points}};

}  // namespace

int main(int argc, char** argv) {
  for (const Case& known : kCases) {
    if (argc == 2 && std::strcmp(argv[1], "--list") == 0) std::printf("%s once\n", known.name);
    if (argc == 2 && std::strcmp(argv[1], known.name) == 0) {
      known.run();
      // But where memory is left for the time after main().
      if (known.run != destructors) show("reset", cudaDeviceReset());
      return 0;
    }
  }
  return argc == 2 && std::strcmp(argv[1], "--list") == 0 ? 0 : 2;
}
