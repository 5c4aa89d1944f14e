// Programs of several host threads on shared streams, made from seeds, that know what they must read.
//
//   order_fuzzer MODULE FIRST [--programs N] [--iterations N] [--operations N] [--threads N] [--without WHAT] [--list]
//
//   MODULE         kernels: fill and add
//   FIRST          seed of the first program; the others follow
//   --operations   about as many an iteration, and what orders them on top (60)
//   --threads      at most (4)
//   --without      functions: no host functions; barrier: nothing relies on cuMemFree having waited for the device
//   --list         prints the operations instead of running them
//
// Prints "programs N, checksum X". Exit code 1 names program, iteration and operation at which something else was read
// than must have been, or at which a call failed.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "program.h"
#include "runner.h"

namespace {

using namespace memopt::order;

[[noreturn]] void refuse(const char* why) {
  std::fprintf(stderr,
               "order_fuzzer: %s\nusage: order_fuzzer MODULE FIRST [--programs N] [--iterations N] [--operations N] "
               "[--threads N] [--without functions|barrier] [--list]\n",
               why);
  std::exit(2);
}

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "order_fuzzer: %s: error %d\n", what, static_cast<int>(result));
  std::exit(3);
}

std::uint64_t number(const char* text) {
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text, &end, 10);
  if (end == text || *end != '\0') refuse("a number is expected");
  return value;
}

struct Arguments {
  std::string module;
  std::uint64_t first = 0;
  std::uint64_t programs = 1;
  std::uint32_t iterations = 12;
  bool list = false;
  GeneratorOptions options;
};

Arguments parse(int argc, char** argv) {
  if (argc < 3) refuse("MODULE and FIRST are expected");
  Arguments arguments;
  arguments.module = argv[1];
  arguments.first = number(argv[2]);
  for (int i = 3; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--list") {
      arguments.list = true;
      continue;
    }
    if (i + 1 == argc) refuse("an option wants a value");
    const char* const value = argv[++i];
    if (option == "--programs") {
      arguments.programs = number(value);
    } else if (option == "--iterations") {
      arguments.iterations = static_cast<std::uint32_t>(number(value));
    } else if (option == "--operations") {
      arguments.options.operations = static_cast<int>(number(value));
    } else if (option == "--threads" && number(value) >= 1) {
      arguments.options.most_threads = static_cast<int>(number(value));
    } else if (option == "--without" && std::string(value) == "functions") {
      arguments.options.host_functions = false;
    } else if (option == "--without" && std::string(value) == "barrier") {
      arguments.options.free_is_a_barrier = false;
    } else {
      refuse("an unknown option");
    }
  }
  return arguments;
}

Kernels load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> image((std::istreambuf_iterator<char>(file)), {});
  image.push_back('\0');
  CUmodule module = nullptr;
  Kernels kernels;
  check(cuModuleLoadData(&module, image.data()), "cuModuleLoadData");
  check(cuModuleGetFunction(&kernels.fill, module, "_Z4fillPjji"), "fill");
  check(cuModuleGetFunction(&kernels.add, module, "_Z3addPjPKji"), "add");
  return kernels;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  if (arguments.list) {
    const Program program = generate(arguments.first, arguments.options);
    for (std::size_t op = 0; op < program.ops.size(); ++op) std::printf("%s\n", describe(program, op).c_str());
    return 0;
  }
  CUdevice device = 0;
  CUcontext context = nullptr;
  check(cuInit(0), "cuInit");
  check(cuDeviceGet(&device, 0), "cuDeviceGet");
  check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  const Kernels kernels = load(arguments.module);
  std::uint64_t checksum = 0;
  for (std::uint64_t i = 0; i < arguments.programs; ++i) {
    const Program program = generate(arguments.first + i, arguments.options);
    Runner runner(program, kernels, context);
    runner.run(arguments.iterations);
    checksum = checksum * 31 + runner.checksum();
  }
  std::printf("programs %llu, checksum %016llx\n", static_cast<unsigned long long>(arguments.programs),
              static_cast<unsigned long long>(checksum));
  return 0;
}
