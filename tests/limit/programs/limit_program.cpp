#include "limit_program.h"

#include <unistd.h>

#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace limit {

CUdevice device = 0;
CUcontext context = nullptr;
Kernels kernels;
std::string argument;

namespace {

std::vector<char> module_beside_program() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  std::string name(path.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  name = name.substr(0, name.rfind('/') + 1) + "limit_kernels.fatbin";
  std::ifstream file(name, std::ios::binary);
  std::vector<char> image{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (image.empty()) {
    std::fprintf(stderr, "%s: %s: no module of kernels there\n", kProgram, name.c_str());
    std::exit(2);
  }
  return image;
}

}  // namespace

void load_kernels() {
  const std::vector<char> image = module_beside_program();
  check(cuModuleLoadData(&kernels.module, image.data()), "cuModuleLoadData");
  const auto find = [](CUfunction* function, const char* name) {
    check(cuModuleGetFunction(function, kernels.module, name), name);
  };
  find(&kernels.fill, "limit_fill");
  find(&kernels.add, "limit_add");
  find(&kernels.add_two, "limit_add_two");
  find(&kernels.add_before, "limit_add_before");
  find(&kernels.gather, "limit_gather");
  find(&kernels.scatter, "limit_scatter");
  find(&kernels.store, "limit_store");
  find(&kernels.first_words, "limit_first_words");
}

void open() {
  context = open_device(&device);
  load_kernels();
}

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
  CUevent event = make_event();
  check(cuEventRecord(event, first), "cuEventRecord");
  check(cuStreamWaitEvent(then, event, 0), "cuStreamWaitEvent");
  check(cuEventDestroy(event), "cuEventDestroy");
}

void finish() { check(cuCtxSynchronize(), "cuCtxSynchronize"); }

Block::Block(std::size_t bytes, unsigned seed, CUstream stream) : words(bytes / sizeof(unsigned)) {
  check(cuMemAlloc(&address_, bytes), "cuMemAlloc");
  fill(seed, stream);
}

void Block::fill(unsigned seed, CUstream stream) {
  check(launch(kernels.fill, stream, words.size(), address_, seed, count()), "limit_fill");
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = seed + static_cast<unsigned>(i);
}

void Block::add(const Block& other, CUstream stream) {
  check(launch(kernels.add, stream, words.size(), address_, other.address_, count()), "limit_add");
  for (std::size_t i = 0; i < words.size(); ++i) words[i] += other.words[i];
}

std::size_t Block::wrong() const {
  std::vector<unsigned> seen(words.size());
  check(cuMemcpyDtoH(seen.data(), address_, bytes()), "cuMemcpyDtoH");
  std::size_t count = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) count += seen[i] != words[i] ? 1 : 0;
  return count;
}

void Block::free() {
  check(cuMemFree(address_), "cuMemFree");
  address_ = 0;
}

Crowd::Crowd(std::size_t bytes, unsigned seed) : seed_(seed) {
  for (std::size_t i = 0; i < bytes / (4 * kMib); ++i) blocks_.emplace_back(4 * kMib, ++seed_ * 2654435761u);
  finish();
}

void Crowd::use(CUstream stream) {
  for (Block& block : blocks_) block.fill(++seed_ * 2654435761u, stream);
}

void Crowd::drive_away(CUstream stream) {
  finish();
  use(stream);
  finish();
}

std::size_t Crowd::wrong() const {
  std::size_t count = 0;
  for (const Block& block : blocks_) count += block.wrong();
  return count;
}

void Crowd::free() {
  for (Block& block : blocks_) block.free();
  blocks_.clear();
}

void say(const std::string& what, std::size_t wrong) {
  std::printf("%s: %zu wrong\n", what.c_str(), wrong);
  std::fflush(stdout);
}

}  // namespace limit
