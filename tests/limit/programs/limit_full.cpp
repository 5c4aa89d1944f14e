// A device that is full, without a limit: what is refused, and what is served. CUDASIM_CAPACITY says how much there is.
#include <array>
#include <atomic>
#include <cstdio>
#include <optional>
#include <thread>

#include "limit_program.h"

namespace limit {
namespace {

constexpr unsigned kMost = 20;  // blocks, more than any device of these tests has room for

// A block that has been used; nothing if it is refused.
std::optional<Block> ask(unsigned seed) {
  CUdeviceptr trial = 0;
  const CUresult result = cuMemAlloc(&trial, kBytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return std::nullopt;
  check(result, "cuMemAlloc");
  // Of its size there is one now.
  check(cuMemFree(trial), "cuMemFree");
  return Block(kBytes, seed);
}

std::size_t wrong_in(const std::vector<Block>& blocks) {
  std::size_t wrong = 0;
  for (const Block& block : blocks) wrong += block.wrong();
  return wrong;
}

// Blocks are used as they are made, and asked for once more where one is refused.
void refused() {
  std::vector<Block> blocks;
  for (bool again = false; blocks.size() < kMost;) {
    if (std::optional<Block> block = ask(static_cast<unsigned>(blocks.size()))) {
      if (again) std::printf("served when asked again, behind %zu\n", blocks.size());
      again = false;
      blocks.push_back(std::move(*block));
    } else if (again) {
      std::printf("refused twice, behind %zu\n", blocks.size());
      break;
    } else {
      std::printf("refused behind %zu\n", blocks.size());
      again = true;
    }
  }
  std::printf("%zu blocks\n", blocks.size());
  say("all of them", wrong_in(blocks));
}

// Nothing is done with the blocks: a program finds out how many it can have, in the order of a stream.
void untouched() {
  const CUstream stream = make_stream();
  std::vector<CUdeviceptr> blocks;
  for (CUresult result = CUDA_SUCCESS; blocks.size() < kMost;) {
    CUdeviceptr block = 0;
    result = cuMemAllocAsync(&block, kBytes, stream);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) break;
    check(result, "cuMemAllocAsync");
    blocks.push_back(block);
  }
  std::printf("%zu blocks\n", blocks.size());
}

// The driver is asked for memory that memopt does not serve, beside blocks that fill most of the device.
void of_the_driver() {
  std::vector<Block> blocks;
  for (unsigned i = 0; i < 8; ++i) blocks.emplace_back(kBytes, i);
  finish();
  std::vector<CUmemGenericAllocationHandle> made;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  while (made.size() < 8) {
    CUmemGenericAllocationHandle handle = 0;
    const CUresult result = cuMemCreate(&handle, 4 * kMib, &properties, 0);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) break;
    check(result, "cuMemCreate");
    made.push_back(handle);
  }
  std::printf("%zu pieces of the driver's\n", made.size());
  say("beside them", wrong_in(blocks));
  for (const CUmemGenericAllocationHandle handle : made) check(cuMemRelease(handle), "cuMemRelease");
  say("without them", wrong_in(blocks));
}

// Threads are out of memory at the same time.
void refused_threads() {
  std::atomic<std::size_t> wrong = 0;
  std::atomic<int> refusals = 0;
  std::vector<std::thread> threads;
  for (unsigned which = 0; which < 3; ++which) {
    threads.emplace_back([&, which] {
      check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
      std::vector<Block> blocks;
      for (unsigned i = 0; i < kMost / 3; ++i) {
        if (std::optional<Block> block = ask(100 * which + i)) {
          blocks.push_back(std::move(*block));
        } else {
          ++refusals;
        }
      }
      wrong += wrong_in(blocks);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("%d refused\n", refusals.load());
  say("of all threads", wrong);
}

}  // namespace

std::span<const Case> full_cases() {
  static constexpr std::array kCases = {Case{"refused", refused}, Case{"untouched", untouched},
                                        Case{"of-the-driver", of_the_driver}, Case{"refused-threads", refused_threads}};
  return kCases;
}

}  // namespace limit
