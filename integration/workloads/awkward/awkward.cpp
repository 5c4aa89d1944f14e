// Small programs that use CUDA in awkward ways, one behaviour each.
//
//   awkward --list            names, and how each ends: "repeats", "once"
//   awkward CASE [ROUNDS]     runs it so many times; what it prints is the same on every driver
//
// At the end all memory is back: "balance 0" where cuMemGetInfo says as much as before the case.
#include "awkward.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>

namespace awkward {

CUdevice device = 0;

namespace {

struct Module {
  CUmodule handle = nullptr;
  std::map<std::string, CUfunction> functions;
};
std::mutex g_modules_lock;
std::map<CUcontext, Module> g_modules;

Module& module_of_context() {
  CUcontext context = nullptr;
  check(cuCtxGetCurrent(&context), "cuCtxGetCurrent");
  Module& module = g_modules[context];
  if (module.handle == nullptr) check(cuModuleLoadData(&module.handle, image().data()), "cuModuleLoadData");
  return module;
}

std::uint64_t hash_of(const void* memory, std::size_t bytes) {
  // FNV-1a over words.
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto* const from = static_cast<const unsigned char*>(memory);
  for (std::size_t at = 0; at < bytes; at += sizeof(std::uint32_t)) {
    std::uint32_t word = 0;
    std::memcpy(&word, from + at, bytes - at < sizeof(word) ? bytes - at : sizeof(word));
    hash = (hash ^ word) * 0x100000001b3u;
  }
  return hash;
}

std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  check(cuMemGetInfo(&free, &total), "cuMemGetInfo");
  return free;
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const auto cases :
       {allocation_cases(), own_memory_cases(), pool_cases(), pointer_cases(), launch_cases(), free_cases(),
        copy_cases(), query_cases(), stream_cases(), graph_cases(), context_cases(), process_cases()}) {
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

}  // namespace

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  std::fprintf(stderr, "awkward: %s: %s\n", what, name != nullptr ? name : "an error without a name");
  std::fflush(stdout);
  std::_Exit(3);
}

void show(const char* what, CUresult result) {
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  std::printf("%s: %s\n", what, name != nullptr ? name : "an error without a name");
}

void say(const char* what, unsigned long long value) { std::printf("%s: %llu\n", what, value); }

void contents(const char* what, CUdeviceptr address, std::size_t bytes) {
  std::vector<char> words(bytes);
  finish();
  check(cuMemcpyDtoH(words.data(), address, bytes), what);
  host_contents(what, words.data(), bytes);
}

void host_contents(const char* what, const void* memory, std::size_t bytes) {
  std::printf("%s: %016llx\n", what, static_cast<unsigned long long>(hash_of(memory, bytes)));
}

CUcontext open() {
  CUcontext context = nullptr;
  check(cuInit(0), "cuInit");
  check(cuDeviceGet(&device, 0), "cuDeviceGet");
  check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  return context;
}

const std::vector<char>& image() {
  static const std::vector<char> bytes = [] {
    char path[4096] = {};
    const auto length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    std::string folder(path, length > 0 ? static_cast<std::size_t>(length) : 0);
    folder.resize(folder.rfind('/') + 1);
    std::ifstream file(folder + "awkward_kernels.fatbin", std::ios::binary);
    std::vector<char> read{std::istreambuf_iterator<char>(file), {}};
    if (read.empty()) {
      std::fprintf(stderr, "awkward: %sawkward_kernels.fatbin is not there\n", folder.c_str());
      std::_Exit(2);
    }
    return read;
  }();
  return bytes;
}

CUfunction kernel(const char* name) {
  const std::lock_guard lock(g_modules_lock);
  Module& module = module_of_context();
  CUfunction& function = module.functions[name];
  if (function == nullptr) check(cuModuleGetFunction(&function, module.handle, name), name);
  return function;
}

CUdeviceptr global(const char* name) {
  const std::lock_guard lock(g_modules_lock);
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  check(cuModuleGetGlobal(&address, &bytes, module_of_context().handle, name), name);
  return address;
}

void forget_modules() {
  const std::lock_guard lock(g_modules_lock);
  g_modules.clear();
}

CUdeviceptr allocate(std::size_t bytes) {
  CUdeviceptr address = 0;
  check(cuMemAlloc(&address, bytes), "cuMemAlloc");
  return address;
}

CUdeviceptr block(unsigned seed, std::size_t bytes, CUstream stream) {
  const CUdeviceptr address = allocate(bytes);
  refill(address, seed, bytes, stream);
  return address;
}

void refill(CUdeviceptr address, unsigned seed, std::size_t bytes, CUstream stream) {
  const int count = static_cast<int>(bytes / sizeof(unsigned));
  launch(stream, "fill", count, address, seed, count);
}

void release(CUdeviceptr address) { check(cuMemFree(address), "cuMemFree"); }

void finish() { check(cuCtxSynchronize(), "cuCtxSynchronize"); }

CUstream make_stream(unsigned flags) {
  CUstream stream = nullptr;
  check(cuStreamCreate(&stream, flags), "cuStreamCreate");
  return stream;
}

CUevent make_event() {
  CUevent event = nullptr;
  check(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  return event;
}

void order(CUstream first, CUstream then) {
  const CUevent event = make_event();
  check(cuEventRecord(event, first), "cuEventRecord");
  check(cuStreamWaitEvent(then, event, 0), "cuStreamWaitEvent");
  check(cuEventDestroy(event), "cuEventDestroy");
}

Others::Others() {
  for (int i = 0; i < 4; ++i) blocks_.push_back(allocate());
}

Others::~Others() {
  finish();
  for (const CUdeviceptr address : blocks_) release(address);
}

void Others::use() {
  finish();
  for (const CUdeviceptr address : blocks_) check(cuMemsetD32(address, ++seed_, kWords), "cuMemsetD32");
  finish();
}

}  // namespace awkward

int main(int argc, char** argv) {
  using namespace awkward;
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    for (const Case& known : all_cases()) std::printf("%s %s\n", known.name, known.repeats ? "repeats" : "once");
    return 0;
  }
  for (const Case& known : all_cases()) {
    if (argc < 2 || std::strcmp(argv[1], known.name) != 0) continue;
    const int rounds = argc > 2 ? std::atoi(argv[2]) : 1;
    open();
    kernel("fill");
    finish();
    const std::size_t before = free_bytes();
    for (int round = 0; round < rounds; ++round) known.run();
    finish();
    say("balance", before - free_bytes());
    std::fflush(stdout);
    check(cuDevicePrimaryCtxRelease(device), "cuDevicePrimaryCtxRelease");
    return 0;
  }
  std::fprintf(stderr, "usage: awkward CASE [ROUNDS] | --list\n");
  return 2;
}
