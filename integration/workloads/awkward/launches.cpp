// Launches other than cuLaunchKernel with a list of parameters, and what runs between them.
#include <array>
#include <cstdlib>
#include <cstring>

#include "awkward.h"

namespace awkward {
namespace {

struct AddParameters {
  CUdeviceptr out, in;
  int count;
};

void packed_parameters() {
  const CUdeviceptr a = block(1), b = block(2);
  {
    Others others;
    for (int round = 0; round < 3; ++round) {
      others.use();
      AddParameters parameters{a, b, kWords};
      std::size_t bytes = sizeof(parameters);
      void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &parameters, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                       CU_LAUNCH_PARAM_END};
      check(cuLaunchKernel(kernel("add"), kWords / 256, 1, 1, 256, 1, 1, 0, nullptr, nullptr, extra), "cuLaunchKernel");
    }
  }
  contents("a", a);
  release(a);
  release(b);
}

void with_attributes() {
  CUdeviceptr a = block(1), b = block(2);
  const CUstream stream = make_stream();
  finish();
  {
    Others others;
    others.use();
    int count = kWords;
    void* parameters[] = {&a, &b, &count};
    CUlaunchAttribute attributes[2] = {};
    attributes[0].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    attributes[0].value.priority = 0;
    attributes[1].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attributes[1].value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config{};
    config.gridDimX = kWords / 256;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.blockDimX = 256;
    config.hStream = stream;
    show("without attributes", cuLaunchKernelEx(&config, kernel("add"), parameters, nullptr));
    config.attrs = attributes;
    config.numAttrs = 1;
    show("with a priority", cuLaunchKernelEx(&config, kernel("add"), parameters, nullptr));
    config.numAttrs = 2;
    show("overlapping", cuLaunchKernelEx(&config, kernel("add"), parameters, nullptr));
    show("without a configuration", cuLaunchKernelEx(nullptr, kernel("add"), parameters, nullptr));
    check(cuStreamSynchronize(stream), "cuStreamSynchronize");
  }
  contents("a", a);
  check(cuStreamDestroy(stream), "cuStreamDestroy");
  release(a);
  release(b);
}

void cooperative() {
  CUdeviceptr a = block(1), b = block(2);
  int count = kWords;
  void* parameters[] = {&a, &b, &count};
  show("cooperative", cuLaunchCooperativeKernel(kernel("add"), 64, 1, 1, 256, 1, 1, 0, nullptr, parameters));
  contents("a", a);
  release(a);
  release(b);
}

void by_function_pointers() {
  const CUdeviceptr a = block(1), b = block(2);
  {
    Others others;
    for (int which = 0; which < 4; ++which) {
      others.use();
      launch(nullptr, "apply", kWords, a, b, which, kWords);
    }
  }
  contents("a", a);
  release(a);
  release(b);
}

void shared_memory() {
  CUdeviceptr in = block(1), out = block(2, 1 << 16);
  int count = kWords;
  void* parameters[] = {&out, &in, &count};
  for (const unsigned threads : {64u, 256u, 1024u}) {
    show("sums",
         cuLaunchKernel(kernel("sum_of_block"), 16, 1, 1, threads, 1, 1, threads * 4, nullptr, parameters, nullptr));
    contents("sums", out, 64);
  }
  release(in);
  release(out);
}

// A kernel of a library, which is no function of a module.
void of_a_library() {
  CUlibrary library = nullptr;
  CUkernel add = nullptr;
  check(cuLibraryLoadData(&library, image().data(), nullptr, nullptr, 0, nullptr, nullptr, 0), "cuLibraryLoadData");
  check(cuLibraryGetKernel(&add, library, "add"), "cuLibraryGetKernel");
  CUdeviceptr a = block(1), b = block(2);
  {
    Others others;
    others.use();
    int count = kWords;
    void* parameters[] = {&a, &b, &count};
    check(cuLaunchKernel(reinterpret_cast<CUfunction>(add), kWords / 256, 1, 1, 256, 1, 1, 0, nullptr, parameters,
                         nullptr),
          "cuLaunchKernel");
  }
  contents("a", a);
  show("unloaded", cuLibraryUnload(library));
  release(a);
  release(b);
}

// Modules come and go, and their functions' handles with them.
void of_modules_that_go() {
  CUdeviceptr a = block(1), b = block(2), seen = block(0, 4096);
  for (int round = 0; round < 4; ++round) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    check(cuModuleLoadData(&module, image().data()), "cuModuleLoadData");
    check(cuModuleGetFunction(&function, module, round % 2 == 0 ? "count_calls" : "add"), "cuModuleGetFunction");
    int count = kWords;
    void* parameters[] = {&a, &b, &count};
    void* calls[] = {&seen};
    check(cuLaunchKernel(function, round % 2 == 0 ? 1 : kWords / 256, 1, 1, 256, 1, 1, 0, nullptr,
                         round % 2 == 0 ? calls : parameters, nullptr),
          "cuLaunchKernel");
    finish();
    check(cuModuleUnload(module), "cuModuleUnload");
    contents("calls", seen, 4);
  }
  contents("a", a);
  for (const CUdeviceptr address : {a, b, seen}) release(address);
}

// Functions on the host, in a stream's order, that allocate there.
void host_functions() {
  struct Made {
    std::vector<unsigned> words;
    unsigned seed = 0;
  } made[3];
  const CUdeviceptr a = block(1);
  const CUstream stream = make_stream();
  finish();
  for (unsigned i = 0; i < 3; ++i) {
    made[i].seed = i + 5;
    const auto make = [](void* data) {
      auto& to = *static_cast<Made*>(data);
      to.words.assign(1 << 16, to.seed);
      void* const more = std::malloc(std::size_t{1} << 22);
      std::memset(more, 1, std::size_t{1} << 22);
      std::free(more);
    };
    launch(stream, "add", kWords, a, a, kWords);
    check(cuLaunchHostFunc(stream, make, &made[i]), "cuLaunchHostFunc");
  }
  show("as a callback", cuStreamAddCallback(
                            stream,
                            [](CUstream, CUresult result, void* data) {
                              static_cast<Made*>(data)->words.push_back(result == CUDA_SUCCESS ? 1 : 2);
                            },
                            &made[0], 0));
  check(cuStreamSynchronize(stream), "cuStreamSynchronize");
  for (const Made& one : made) host_contents("made", one.words.data(), one.words.size() * 4);
  contents("a", a);
  check(cuStreamDestroy(stream), "cuStreamDestroy");
  release(a);
}

void the_devices_heap() {
  const CUdeviceptr kept = allocate(8), out = allocate(4);
  launch(nullptr, "heap_fill", 1, kept, 17u);
  {
    Others others;
    others.use();
    launch(nullptr, "heap_read", 1, out, kept);
  }
  contents("sum", out, 4);
  release(kept);
  release(out);
}

void wrong() {
  CUdeviceptr a = block(1), b = block(2);
  int count = kWords;
  void* parameters[] = {&a, &b, &count};
  const CUfunction add = kernel("add");
  show("no function", cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  show("no grid", cuLaunchKernel(add, 0, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr));
  show("too many threads", cuLaunchKernel(add, 1, 1, 1, 2048, 1, 1, 0, nullptr, parameters, nullptr));
  show("too much shared memory", cuLaunchKernel(add, 1, 1, 1, 32, 1, 1, 1 << 30, nullptr, parameters, nullptr));
  AddParameters packed{a, b, kWords};
  std::size_t bytes = sizeof(packed);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  show("parameters twice", cuLaunchKernel(add, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, extra));
  contents("a", a);
  release(a);
  release(b);
}

}  // namespace

std::span<const Case> launch_cases() {
  static constexpr std::array kCases = {Case{"launch-packed-parameters", packed_parameters},
                                        Case{"launch-with-attributes", with_attributes},
                                        Case{"launch-cooperative", cooperative},
                                        Case{"launch-function-pointers", by_function_pointers},
                                        Case{"launch-shared-memory", shared_memory},
                                        Case{"launch-of-a-library", of_a_library},
                                        Case{"launch-of-modules-that-go", of_modules_that_go},
                                        Case{"launch-host-functions", host_functions},
                                        Case{"launch-device-heap", the_devices_heap},
                                        Case{"launch-wrong", wrong}};
  return kCases;
}

}  // namespace awkward
