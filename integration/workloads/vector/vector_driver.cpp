// The same loop through the driver API: cuMemAlloc, cuLaunchKernel, cuMemFree. Its kernels are in vector_kernels.fatbin
// beside it.
#include <cuda.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "options.h"
#include "results.h"

namespace {

constexpr unsigned kThreads = 256;

void check_driver(CUresult result, const char* call, int line) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "unknown error";
  std::fprintf(stderr, "vector_driver: %s:%d: %s failed: %s (%d)\n", __FILE__, line, call, name,
               static_cast<int>(result));
  std::exit(3);
}
#define CHECK_DRIVER(call) check_driver((call), #call, __LINE__)

class Block {
 public:
  explicit Block(int count) { CHECK_DRIVER(cuMemAlloc(&address_, static_cast<std::size_t>(count) * sizeof(unsigned))); }
  ~Block() { reset(); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void reset() {
    if (address_ != 0) CHECK_DRIVER(cuMemFree(std::exchange(address_, 0)));
  }
  CUdeviceptr* address() { return &address_; }

 private:
  CUdeviceptr address_ = 0;
};

std::vector<char> module_beside_program() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  std::string name(path.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  const std::size_t slash = name.rfind('/');
  name = (slash == std::string::npos ? std::string(".") : name.substr(0, slash)) + "/vector_kernels.fatbin";
  std::ifstream file(name, std::ios::binary);
  std::vector<char> image{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (image.empty()) {
    std::fprintf(stderr, "vector_driver: %s: no module of kernels there\n", name.c_str());
    std::exit(2);
  }
  return image;
}

struct Kernels {
  explicit Kernels(CUmodule module) {
    CHECK_DRIVER(cuModuleGetFunction(&fill, module, "vector_fill"));
    CHECK_DRIVER(cuModuleGetFunction(&combine, module, "vector_combine"));
  }
  CUfunction fill = nullptr, combine = nullptr;
};

void launch(CUfunction kernel, CUstream stream, int count, void** parameters) {
  const unsigned blocks = (static_cast<unsigned>(count) + kThreads - 1) / kThreads;
  CHECK_DRIVER(cuLaunchKernel(kernel, blocks, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr));
}

void one_round(const Kernels& kernels, CUstream stream, void* host, unsigned seed, int count) {
  unsigned inverse = ~seed;
  Block x(count), v(count);
  void* fill_x[] = {x.address(), &seed, &count};
  launch(kernels.fill, stream, count, fill_x);
  void* fill_v[] = {v.address(), &inverse, &count};
  launch(kernels.fill, stream, count, fill_v);
  Block y(count);
  void* combine_y[] = {y.address(), x.address(), v.address(), &count};
  launch(kernels.combine, stream, count, combine_y);
  v.reset();
  Block z(count);
  void* combine_z[] = {z.address(), y.address(), x.address(), &count};
  launch(kernels.combine, stream, count, combine_z);
  CHECK_DRIVER(cuMemcpyDtoHAsync(host, *z.address(), static_cast<std::size_t>(count) * sizeof(unsigned), stream));
  CHECK_DRIVER(cuStreamSynchronize(stream));
}

}  // namespace

int main(int argc, char** argv) {
  const vector::Options options = vector::parse(argc, argv, "vector_driver");
  const std::vector<char> image = module_beside_program();
  vector::Results results("vector_driver");
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUstream stream = nullptr;
  void* host = nullptr;
  CHECK_DRIVER(cuInit(0));
  CHECK_DRIVER(cuDeviceGet(&device, 0));
  CHECK_DRIVER(cuDevicePrimaryCtxRetain(&context, device));
  CHECK_DRIVER(cuCtxSetCurrent(context));
  CHECK_DRIVER(cuModuleLoadData(&module, image.data()));
  CHECK_DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK_DRIVER(cuMemAllocHost(&host, static_cast<std::size_t>(options.elements) * sizeof(unsigned)));

  const Kernels kernels(module);
  unsigned seed = 0;
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    for (int round = 0; round < vector::kRounds; ++round, ++seed) {
      const int count = vector::length_of(options.elements, round);
      one_round(kernels, stream, host, seed, count);
      results.verify(static_cast<const unsigned*>(host), count, seed);
    }
  }

  CHECK_DRIVER(cuMemFreeHost(host));
  CHECK_DRIVER(cuStreamDestroy(stream));
  CHECK_DRIVER(cuModuleUnload(module));
  CHECK_DRIVER(cuDevicePrimaryCtxRelease(device));
  results.print();
  return 0;
}
