// A program that allocates in the order of its streams (cuMemAllocAsync): blocks are made on one stream, used on others
// behind event joins, and freed on any, as frameworks do with tensors that several streams use. Each block is filled
// with a word of its own, handed on by copies, and checked. Which operations an iteration consists of is drawn from a
// seed, the same in each iteration.
//
//   pools ITERATIONS [--seed N] [--streams N] [--odd N] [--named] [--plain]
//
//   --seed     of the iteration (1)
//   --streams  non-blocking streams (3)
//   --odd N    every N-th iteration is another one
//   --named    from a pool of its own instead of the device's
//   --plain    about every fourth block comes from cuMemAlloc, every fifth is freed by cuMemFree after a wait
//
// First prints what odd calls are answered, then "iterations N, mismatches M, checksum X"; exit code 1 if there was a
// mismatch.
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "driver_program.h"

const char* const kProgram = "pools";

namespace {

struct Block {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  unsigned int word = 0;
  bool pooled = false;
  std::vector<bool> used;  // by stream, since they were last joined
};

struct Options {
  int iterations = 0;
  unsigned int seed = 1;
  int streams = 3;
  int odd = 0;
  bool named = false;
  bool plain = false;
};

class Program {
 public:
  Program(const Options& options, CUmemoryPool pool) : options_(options), pool_(pool) {
    for (int i = 0; i < options.streams; ++i) {
      CUstream stream = nullptr;
      CUevent event = nullptr;
      check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
      check(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
      streams_.push_back(stream);
      events_.push_back(event);
    }
    check(cuMemAllocHost(reinterpret_cast<void**>(&seen_), kSeen * sizeof(unsigned int)), "cuMemAllocHost");
  }

  void iterate(unsigned int seed) {
    std::mt19937 random(seed);
    std::vector<Block> blocks;
    for (int step = 0; step < 40; ++step) {
      const unsigned int choice = random() % 8;
      if (blocks.size() < 3 || choice < 3) {
        blocks.push_back(allocate(random));
      } else if (choice < 5) {
        copy(blocks[random() % blocks.size()], blocks[random() % blocks.size()], random() % streams_.size());
      } else if (choice < 6) {
        look(blocks[random() % blocks.size()], random() % streams_.size());
      } else {
        const std::size_t which = random() % blocks.size();
        look(blocks[which], random() % streams_.size());
        release(blocks[which], random);
        blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(which));
      }
    }
    for (Block& block : blocks) {
      look(block, random() % streams_.size());
      release(block, random);
    }
    // As at the end of a training step, where the loss is read.
    for (const CUstream stream : streams_) check(cuStreamSynchronize(stream), "cuStreamSynchronize");
    for (std::size_t i = 0; i < expected_.size(); ++i) {
      if (seen_[i] != expected_[i]) ++mismatches;
      checksum = (checksum ^ seen_[i]) * 0x100000001b3u;
    }
    expected_.clear();
  }

  std::uint64_t checksum = 0xcbf29ce484222325u;
  int mismatches = 0;

 private:
  static constexpr std::size_t kSeen = 4096;

  // The stream's further work is behind everything that was done with the block.
  void join(Block& block, std::size_t stream) {
    for (std::size_t other = 0; other < streams_.size(); ++other) {
      if (other == stream || !block.used[other]) continue;
      check(cuEventRecord(events_[other], streams_[other]), "cuEventRecord");
      check(cuStreamWaitEvent(streams_[stream], events_[other], 0), "cuStreamWaitEvent");
    }
    block.used.assign(streams_.size(), false);
    block.used[stream] = true;
  }

  Block allocate(std::mt19937& random) {
    static constexpr std::size_t kSizes[] = {512, 4096, 100'000, 1u << 20, 3u << 20, 5u << 20};
    Block block;
    block.bytes = kSizes[random() % std::size(kSizes)];
    block.word = ++words_ * 2654435761u;
    const std::size_t stream = random() % streams_.size();
    block.pooled = !options_.plain || random() % 4 != 0;
    if (!block.pooled) {
      check(cuMemAlloc(&block.address, block.bytes), "cuMemAlloc");
    } else if (options_.named) {
      check(cuMemAllocFromPoolAsync(&block.address, block.bytes, pool_, streams_[stream]), "cuMemAllocFromPoolAsync");
    } else {
      check(cuMemAllocAsync(&block.address, block.bytes, streams_[stream]), "cuMemAllocAsync");
    }
    block.used.assign(streams_.size(), false);
    block.used[stream] = true;
    check(cuMemsetD32Async(block.address, block.word, block.bytes / 4, streams_[stream]), "cuMemsetD32Async");
    return block;
  }

  void copy(Block& to, Block& from, std::size_t stream) {
    if (to.bytes != from.bytes || &to == &from) return;
    join(to, stream);
    join(from, stream);
    check(cuMemcpyDtoDAsync(to.address, from.address, to.bytes, streams_[stream]), "cuMemcpyDtoDAsync");
    to.word = from.word;
  }

  // First and last words, and one in the middle; compared at the end of the iteration.
  void look(Block& block, std::size_t stream) {
    join(block, stream);
    for (const std::size_t at : {std::size_t{0}, block.bytes / 8 * 4, block.bytes - 4}) {
      if (expected_.size() == kSeen) return;
      check(cuMemcpyDtoHAsync(seen_ + expected_.size(), block.address + at, 4, streams_[stream]), "cuMemcpyDtoHAsync");
      expected_.push_back(block.word);
    }
  }

  void release(Block& block, std::mt19937& random) {
    const std::size_t stream = random() % streams_.size();
    join(block, stream);
    if (options_.plain && random() % 5 == 0) {
      // The plain free of a stream-ordered block waits for nothing.
      check(cuStreamSynchronize(streams_[stream]), "cuStreamSynchronize");
      check(cuMemFree(block.address), "cuMemFree");
    } else {
      check(cuMemFreeAsync(block.address, streams_[stream]), "cuMemFreeAsync");
    }
  }

  const Options options_;
  const CUmemoryPool pool_;
  std::vector<CUstream> streams_;
  std::vector<CUevent> events_;
  std::vector<unsigned int> expected_;
  unsigned int* seen_ = nullptr;
  unsigned int words_ = 0;
};

std::uint64_t amount(CUmemoryPool pool, CUmemPool_attribute attribute) {
  cuuint64_t value = 0;
  check(cuMemPoolGetAttribute(pool, attribute, &value), "cuMemPoolGetAttribute");
  return value;
}

// What calls at the edges are answered.
void print_answers(CUmemoryPool pool, CUmemoryPool other) {
  CUdeviceptr block = 0;
  CUdeviceptr second = 0;
  const auto say = [](const char* what, CUresult result) { std::printf("%s: %d\n", what, static_cast<int>(result)); };
  say("no bytes", cuMemAllocAsync(&block, 0, nullptr));
  say("too many bytes", cuMemAllocAsync(&block, std::size_t{1} << 45, nullptr));
  say("after too many", cuMemAllocAsync(&block, 1 << 20, nullptr));
  say("from the other", cuMemAllocFromPoolAsync(&second, 3000, other, nullptr));
  CUmemoryPool of = nullptr;
  say("pool of a block", cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, block));
  std::printf("is the device's: %d\n", of == pool);
  say("pool of the second", cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, second));
  std::printf("is the other: %d\n", of == other);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  say("range", cuMemGetAddressRange(&base, &bytes, block + 12345));
  std::printf("is the block's: %d\n", base == block && bytes == 1 << 20);
  std::printf("in use: %d %d\n", amount(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) >= 1 << 20,
              amount(other, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) >= 3000);
  std::printf("held: %d\n",
              amount(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= amount(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
  say("freed", cuMemFreeAsync(block, nullptr));
  check(cuCtxSynchronize(), "cuCtxSynchronize");  // which does not wait for the stream
  say("freed by the plain call", cuMemFree(second));
  say("freed twice", cuMemFreeAsync(block, nullptr));
  check(cuCtxSynchronize(), "cuCtxSynchronize");
  std::printf("in use: %d %d\n", static_cast<int>(amount(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT)),
              static_cast<int>(amount(other, CU_MEMPOOL_ATTR_USED_MEM_CURRENT)));
  std::printf("watermark: %d\n", amount(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) >= 1 << 20);
  cuuint64_t nothing = 0;
  cuuint64_t something = 5;
  say("watermark set", cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &something));
  say("watermark set back", cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &nothing));
  std::printf("watermark: %d\n", static_cast<int>(amount(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH)));
  cuuint64_t threshold = 1 << 20;
  say("threshold", cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  std::printf("threshold: %d\n", static_cast<int>(amount(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)));
  say("trimmed", cuMemPoolTrimTo(pool, 0));
  std::size_t free = 0;
  std::size_t total = 0;
  check(cuMemGetInfo(&free, &total), "cuMemGetInfo");
  std::printf("free is at most all: %d\n", free <= total);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: pools ITERATIONS [--seed N] [--streams N] [--odd N] [--named] [--plain]\n");
    return 2;
  }
  Options options;
  options.iterations = number(argv[1], "ITERATIONS");
  for (int i = 2; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--named") {
      options.named = true;
    } else if (option == "--plain") {
      options.plain = true;
    } else if (i + 1 < argc && option == "--seed") {
      options.seed = static_cast<unsigned int>(number(argv[++i], "--seed"));
    } else if (i + 1 < argc && option == "--streams") {
      options.streams = number(argv[++i], "--streams");
    } else if (i + 1 < argc && option == "--odd") {
      options.odd = number(argv[++i], "--odd");
    } else {
      std::fprintf(stderr, "pools: unknown or incomplete option '%s'\n", option.c_str());
      return 2;
    }
  }
  if (options.streams < 1 || options.streams > 16) {
    std::fprintf(stderr, "pools: --streams expects 1 to 16\n");
    return 2;
  }
  CUdevice device = 0;
  open_device(&device);
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  CUmemoryPool named = nullptr;
  CUmemoryPool devices = nullptr;
  check(cuMemPoolCreate(&named, &properties), "cuMemPoolCreate");
  check(cuDeviceGetDefaultMemPool(&devices, device), "cuDeviceGetDefaultMemPool");
  print_answers(devices, named);
  {
    Program program(options, named);
    for (int i = 0; i < options.iterations; ++i) {
      const bool odd = options.odd != 0 && i % options.odd == options.odd - 1;
      program.iterate(odd ? options.seed + 1 : options.seed);
    }
    std::printf("iterations %d, mismatches %d, checksum %016llx\n", options.iterations, program.mismatches,
                static_cast<unsigned long long>(program.checksum));
    if (program.mismatches != 0) return 1;
  }
  check(cuMemPoolDestroy(named), "cuMemPoolDestroy");
  return 0;
}
