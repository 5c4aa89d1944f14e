// Launches that name a block which is away, in all the ways that a launch can; and questions about such a block.
#include <array>
#include <cstdio>

#include "limit_program.h"

namespace limit {
namespace {

// Of 1 MiB, in the middle of the second page.
constexpr std::size_t kPart = kMib / sizeof(unsigned);
constexpr std::size_t kAt = 3 * kMib / sizeof(unsigned);

void add_part(Block* to, const Block& from) {
  for (std::size_t i = 0; i < kPart; ++i) to->words[kAt + i] += from.words[kAt + i];
}

void middle() {
  Block to(kBytes, 1), from(kBytes, 2);
  Crowd crowd;
  crowd.drive_away();
  const std::size_t offset = kAt * sizeof(unsigned);
  check(launch(kernels.add, nullptr, kPart, to.address() + offset, from.address() + offset, static_cast<int>(kPart)),
        "limit_add");
  add_part(&to, from);
  say("written through its middle", to.wrong());
  say("read through its middle", from.wrong());
  say("the crowd", crowd.wrong());
}

void end() {
  // Of odd sizes, so that an end is not the begin of a page, and of whole pages, where it is a neighbour's begin.
  for (const std::size_t bytes : {kBytes, kBytes - 4096, kBytes - 4}) {
    Block first(bytes, 1), second(bytes, 2);
    Crowd crowd;
    crowd.drive_away();
    check(launch(kernels.add_before, nullptr, 1000, first.end(), 77u, 1000), "limit_add_before");
    for (std::size_t i = first.words.size() - 1000; i < first.words.size(); ++i) first.words[i] += 77;
    say("written through its end", first.wrong());
    say("the other", second.wrong());
    crowd.drive_away();
    check(launch(kernels.add_before, nullptr, first.words.size(), first.end(), 5u, first.count()), "limit_add_before");
    for (unsigned& word : first.words) word += 5;
    say("all of it through its end", first.wrong());
    say("the crowd", crowd.wrong());
    first.free();
    second.free();
    crowd.free();
  }
}

struct Two {
  CUdeviceptr out, in;
};

void parameters() {
  Block to(kBytes, 1), from(kBytes, 2);
  Crowd crowd;
  const auto check_both = [&](const char* what, CUresult result) {
    check(result, what);
    for (std::size_t i = 0; i < to.words.size(); ++i) to.words[i] += from.words[i];
    say(what, to.wrong() + from.wrong());
    crowd.drive_away();
  };
  crowd.drive_away();
  check_both("in a structure",
             launch(kernels.add_two, nullptr, to.words.size(), to.count(), Two{to.address(), from.address()}));

  struct {
    CUdeviceptr out, in;
    int count;
  } packed{to.address(), from.address(), to.count()};
  std::size_t bytes = 20;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  const auto blocks = static_cast<unsigned>((to.words.size() + 255) / 256);
  check_both("in one piece", cuLaunchKernel(kernels.add, blocks, 1, 1, 256, 1, 1, 0, nullptr, nullptr, extra));

  CUdeviceptr out = to.address(), in = from.address();
  int count = to.count();
  void* each[] = {&out, &in, &count};
  CUlaunchConfig config{};
  config.gridDimX = blocks;
  config.blockDimX = 256;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  check_both("by cuLaunchKernelEx", cuLaunchKernelEx(&config, kernels.add, each, nullptr));
  say("the crowd", crowd.wrong());
}

// What is asked is answered the same, wherever its bytes are.
void questions() {
  Block block(kBytes, 1);
  Crowd crowd;
  crowd.drive_away();
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  check(cuMemGetAddressRange(&base, &bytes, block.address() + 12345), "cuMemGetAddressRange");
  std::printf("range: %d %zu\n", static_cast<int>(base == block.address()), bytes);
  unsigned type = 0;
  check(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block.address() + 4096), "memory type");
  CUdeviceptr pointer = 0;
  check(cuPointerGetAttribute(&pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, block.address() + 4096), "pointer");
  CUcontext its = nullptr;
  check(cuPointerGetAttribute(&its, CU_POINTER_ATTRIBUTE_CONTEXT, block.address()), "context");
  std::size_t size = 0;
  check(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, block.address()), "range size");
  int mapped = 0;
  check(cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, block.address() + kBytes - 1), "mapped");
  std::printf("type %u, pointer %d, context %d, size %zu, mapped %d\n", type,
              static_cast<int>(pointer == block.address() + 4096), static_cast<int>(its == context), size, mapped);
  std::printf("free inside it: %d\n", static_cast<int>(cuMemFree(block.address() + 512)));
  say("the block", block.wrong());
}

// A launch that touches more than the limit; what it needs is there all the same.
void more_than_the_limit() {
  constexpr std::size_t kLarge = 16 * kMib;
  Block blocks[] = {Block(kLarge, 1), Block(kLarge, 2), Block(kLarge, 3), Block(kLarge, 4)};
  for (unsigned round = 0; round < 3; ++round) {
    check(launch(kernels.first_words, nullptr, 1, blocks[0].address(), blocks[1].address(), blocks[2].address(),
                 blocks[3].address()),
          "limit_first_words");
    blocks[0].words[0] += 1;
    for (int i = 1; i < 4; ++i) blocks[i].words[0] += blocks[i - 1].words[0];
  }
  std::size_t wrong = 0;
  for (const Block& block : blocks) wrong += block.wrong();
  say("a launch of 64 MiB", wrong);
  // Afterwards there is no need for more than the limit.
  Crowd crowd;
  crowd.drive_away();
  for (Block& block : blocks) block.fill(9);
  wrong = 0;
  for (const Block& block : blocks) wrong += block.wrong();
  say("one by one", wrong + crowd.wrong());
}

// A block that is larger than the limit by itself.
void one_large_block() {
  Block block(64 * kMib, 3);
  Block other(kBytes, 4);
  block.fill(5);
  say("64 MiB", block.wrong() + other.wrong());
  block.free();
  Crowd crowd;
  crowd.drive_away();
  say("afterwards", other.wrong() + crowd.wrong());
}

}  // namespace

std::span<const Case> access_cases() {
  static constexpr std::array kCases = {Case{"middle", middle},
                                        Case{"end", end},
                                        Case{"parameters", parameters},
                                        Case{"questions", questions},
                                        Case{"more-than-the-limit", more_than_the_limit},
                                        Case{"one-large-block", one_large_block}};
  return kCases;
}

}  // namespace limit
