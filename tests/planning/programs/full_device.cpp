// A program that fills the device with one kind of memory, as far as that goes: at the begin, or after iterations of
// allocations and frees, whose memory natively is the driver's again; or within one, beside blocks that live. Blocks of
// the iterations are filled with words of their own and checked.
//
//   full_device KIND [--loop N] [--within] [--again N] [--pending] [--trials]
//
//   KIND       what fills the device:
//                size=BYTES, sizes=SEED (cuMemAlloc; SEED: from 256 KiB to 6 MiB, in any order, some freed between),
//                shared=SEED (likewise, from 256 KiB to 2 MiB),
//                turns=SEED, small-turns=SEED (from 1 to 12, to 2 MiB, taking turns where there is no more room), all
//                (one block as large as cuMemGetInfo says), context (cuMemAlloc in another context), pitch, create
//                (cuMemCreate), pool, closed-pool (a pool that has a size of its own, which memopt does not serve),
//                module (one with a large variable), nothing, fragments=BYTES (rooms of the BYTES that every second
//                block left)
//   --loop N   iterations before (0)
//   --within   in the middle of a further iteration
//   --again N  iterations afterwards (0)
//   --pending  at the end of an iteration a block is freed while work on it goes on
//   --trials   before, blocks are asked for that are larger than what there is
//
// Prints how many blocks there were and how much memory, then "mismatches M"; exit code 1 if there was a mismatch.
#include <cuda.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "driver_program.h"

const char* const kProgram = "full_device";

namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;
// Some module of 8 MiB.
constexpr std::size_t kVariable = 8 * kMib;
constexpr const char* kModule =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .global .align 8 .b8 large[8388608];\n";

struct Block {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  unsigned int word = 0;
};

// What an iteration does, with `within` in the middle.
class Iterations {
 public:
  explicit Iterations(bool pending) : pending_(pending) {}

  void run(const std::function<void()>& within = {}) {
    static constexpr std::size_t kSizes[] = {5 * kMib, 4096,     3 * kMib, 700,      9 * kMib, 65536,    1 * kMib,
                                             2 * kMib, 1u << 18, 512,      6 * kMib, 3u << 19, 20 * kMib};
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < std::size(kSizes); ++i) {
      blocks.push_back(allocate(kSizes[i]));
      if (i % 3 == 2) {
        release(blocks[i - 1]);
        blocks[i - 1].address = 0;
      }
      if (i == std::size(kSizes) / 2 && within) within();
    }
    for (const Block& block : blocks) {
      if (block.address != 0) release(block);
    }
    if (!pending_) return;
    CUdeviceptr last = 0;
    check(cuMemAllocAsync(&last, 12 * kMib, nullptr), "cuMemAllocAsync");
    for (unsigned char i = 0; i < 10; ++i) check(cuMemsetD8Async(last, i, 12 * kMib, nullptr), "cuMemsetD8Async");
    check(cuMemFreeAsync(last, nullptr), "cuMemFreeAsync");
  }

  int mismatches = 0;

 private:
  Block allocate(std::size_t bytes) {
    Block block{0, bytes, ++words_ * 2654435761u};
    check(cuMemAlloc(&block.address, bytes), "cuMemAlloc of an iteration");
    check(cuMemsetD32Async(block.address, block.word, bytes / 4, nullptr), "cuMemsetD32Async");
    return block;
  }
  void release(const Block& block) {
    for (const std::size_t at : {std::size_t{0}, block.bytes / 8 * 4, block.bytes / 4 * 4 - 4}) {
      unsigned int word = 0;
      check(cuMemcpyDtoH(&word, block.address + at, 4), "cuMemcpyDtoH");
      if (word != block.word) ++mismatches;
    }
    check(cuMemFree(block.address), "cuMemFree");
  }

  const bool pending_;
  unsigned int words_ = 0;
};

// Blocks by cuMemAlloc until there is no room for another of that size. Returns the sum of what is held.
class Filling {
 public:
  bool add(std::size_t bytes) {
    CUdeviceptr address = 0;
    const CUresult result = cuMemAlloc(&address, bytes);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) return false;
    check(result, "cuMemAlloc");
    blocks_.push_back({address, bytes, 0});
    bytes_ += bytes;
    return true;
  }
  void remove(std::size_t which) {
    check(cuMemFree(blocks_[which].address), "cuMemFree");
    bytes_ -= blocks_[which].bytes;
    blocks_[which] = blocks_.back();
    blocks_.pop_back();
  }
  void clear() {
    while (!blocks_.empty()) remove(blocks_.size() - 1);
  }
  std::size_t count() const { return blocks_.size(); }
  std::size_t size(std::size_t which) const { return blocks_[which].bytes; }
  void print(const char* what) const { std::printf("%s: %zu blocks, %zu KiB\n", what, count(), bytes_ >> 10); }

 private:
  std::vector<Block> blocks_;
  std::size_t bytes_ = 0;
};

void fill_with(std::size_t bytes) {
  Filling filling;
  while (filling.add(bytes)) {
  }
  filling.print("filled");
  filling.clear();
}

// Every second of the blocks in half of the device is freed, and blocks of 2 MiB fill what is left.
void fill_fragments(std::size_t bytes) {
  Filling filling;
  std::size_t free = 0;
  std::size_t total = 0;
  check(cuMemGetInfo(&free, &total), "cuMemGetInfo");
  const std::size_t wanted = total / 2 / std::max(bytes, 2 * kMib);
  while (filling.count() < wanted && filling.add(bytes)) {
  }
  for (std::size_t i = 0; i < filling.count(); ++i) filling.remove(i);
  Filling rooms;
  while (rooms.add(2 * kMib)) {
  }
  rooms.print("filled");
  rooms.clear();
  filling.clear();
}

void fill_mixed(unsigned int seed, std::size_t least, std::size_t most) {
  std::mt19937_64 random(seed);
  const auto any = [&] { return least + random() % (most - least); };
  Filling filling;
  while (filling.add(any())) {
  }
  while (filling.add(least)) {
  }
  filling.print("filled");
  for (int round = 0; round < 3; ++round) {
    for (std::size_t left = filling.count() / 2; left != 0; --left) filling.remove(random() % filling.count());
    while (filling.add(any())) {
    }
    filling.print("filled again");
  }
  while (filling.add(least)) {
  }
  filling.print("to the brim");
  filling.clear();
}

// Allocates and frees at random, at the brim: never more than fits if each block has granules of its own, as blocks of
// 1 MiB or more have natively.
void fill_by_turns(unsigned int seed, std::size_t least, std::size_t most) {
  std::mt19937_64 random(seed);
  std::size_t room = 0;
  std::size_t total = 0;
  check(cuMemGetInfo(&room, &total), "cuMemGetInfo");
  room /= 2 * kMib;
  const auto granules = [](std::size_t bytes) { return (bytes + 2 * kMib - 1) / (2 * kMib); };
  Filling filling;
  std::size_t failed = 0;
  for (int step = 0; step < 3000; ++step) {
    const std::size_t bytes = least + random() % (most - least);
    while (granules(bytes) > room) {
      const std::size_t which = random() % filling.count();
      room += granules(filling.size(which));
      filling.remove(which);
    }
    if (filling.add(bytes)) {
      room -= granules(bytes);
    } else {
      ++failed;
    }
  }
  std::printf("%zu do not fit\n", failed);
  filling.clear();
}

void fill_at_once() {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cuMemGetInfo(&free, &total), "cuMemGetInfo");
  if (free > total) std::printf("more is free than there is\n");
  CUdeviceptr block = 0;
  check(cuMemAlloc(&block, free), "all that is said to be free");
  std::printf("filled: 1 blocks, %zu KiB\n", free >> 10);
  check(cuMemFree(block), "cuMemFree");
}

void fill_other_context(CUdevice device) {
  CUcontext here = nullptr;
  CUcontext other = nullptr;
  check(cuCtxGetCurrent(&here), "cuCtxGetCurrent");
  check(cuCtxCreate(&other, nullptr, 0, device), "cuCtxCreate");
  fill_at_once();
  fill_with(3 * kMib);
  check(cuCtxDestroy(other), "cuCtxDestroy");
  check(cuCtxSetCurrent(here), "cuCtxSetCurrent");
}

// `make` returns the driver's code, `undo` takes back the block of that number.
template <typename Make, typename Undo>
void fill(std::size_t bytes, Make&& make, Undo&& undo) {
  std::size_t count = 0;
  CUresult result = CUDA_SUCCESS;
  while ((result = make(count)) == CUDA_SUCCESS) ++count;
  if (result != CUDA_ERROR_OUT_OF_MEMORY) check(result, "what fills the device");
  std::printf("filled: %zu blocks, %zu KiB\n", count, count * bytes >> 10);
  for (std::size_t i = 0; i < count; ++i) check(undo(i), "what frees it again");
}

void fill_pitched() {
  std::vector<CUdeviceptr> made;
  fill(
      4 * kMib,
      [&](std::size_t) {
        CUdeviceptr address = 0;
        std::size_t pitch = 0;
        const CUresult result = cuMemAllocPitch(&address, &pitch, 4000, 1024, 4);
        if (result == CUDA_SUCCESS) made.push_back(address);
        return result;
      },
      [&](std::size_t which) { return cuMemFree(made[which]); });
}

void fill_physical(CUdevice device) {
  std::vector<CUmemGenericAllocationHandle> made;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  fill(
      4 * kMib,
      [&](std::size_t) {
        CUmemGenericAllocationHandle handle = 0;
        const CUresult result = cuMemCreate(&handle, 4 * kMib, &properties, 0);
        if (result == CUDA_SUCCESS) made.push_back(handle);
        return result;
      },
      [&](std::size_t which) { return cuMemRelease(made[which]); });
}

void fill_pool(CUdevice device, bool closed) {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  properties.maxSize = closed ? std::size_t{1} << 30 : 0;
  CUmemoryPool pool = nullptr;
  check(cuMemPoolCreate(&pool, &properties), "cuMemPoolCreate");
  std::vector<CUdeviceptr> made;
  fill(
      40 * kMib,
      [&](std::size_t) {
        CUdeviceptr address = 0;
        const CUresult result = cuMemAllocFromPoolAsync(&address, 40 * kMib, pool, nullptr);
        if (result == CUDA_SUCCESS) made.push_back(address);
        return result;
      },
      [&](std::size_t which) { return cuMemFreeAsync(made[which], nullptr); });
  check(cuCtxSynchronize(), "cuCtxSynchronize");
  check(cuMemPoolDestroy(pool), "cuMemPoolDestroy");
}

void fill_modules() {
  std::vector<CUmodule> made;
  fill(
      kVariable,
      [&](std::size_t) {
        CUmodule module = nullptr;
        const CUresult result = cuModuleLoadData(&module, kModule);
        if (result == CUDA_SUCCESS) made.push_back(module);
        return result;
      },
      [&](std::size_t which) { return cuModuleUnload(made[which]); });
}

// Programs find out by trial how much they can have.
void try_too_much() {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cuMemGetInfo(&free, &total), "cuMemGetInfo");
  CUdeviceptr block = 0;
  for (const std::size_t bytes : {free + 1, free + 2 * kMib, total, total + 1, total * 1000}) {
    if (bytes <= free) continue;
    const CUresult result = cuMemAlloc(&block, bytes);
    if (result != CUDA_ERROR_OUT_OF_MEMORY) std::printf("%zu bytes of %zu: %d\n", bytes, free, result);
  }
}

bool fill_by(const std::string& kind, CUdevice device) {
  const std::size_t equals = kind.find('=');
  const auto value = [&] { return static_cast<std::size_t>(number(kind.c_str() + equals + 1, "KIND")); };
  const std::string name = kind.substr(0, equals);
  if (name == "size" && equals != kind.npos) {
    fill_with(value());
  } else if (name == "fragments" && equals != kind.npos) {
    fill_fragments(value());
  } else if (name == "sizes" && equals != kind.npos) {
    fill_mixed(static_cast<unsigned int>(value()), kMib / 4, 6 * kMib);
  } else if (name == "shared" && equals != kind.npos) {
    fill_mixed(static_cast<unsigned int>(value()), kMib / 4, 2 * kMib);
  } else if (name == "turns" && equals != kind.npos) {
    fill_by_turns(static_cast<unsigned int>(value()), kMib, 12 * kMib);
  } else if (name == "small-turns" && equals != kind.npos) {
    fill_by_turns(static_cast<unsigned int>(value()), kMib, 2 * kMib);
  } else if (kind == "all") {
    fill_at_once();
  } else if (kind == "context") {
    fill_other_context(device);
  } else if (kind == "pitch") {
    fill_pitched();
  } else if (kind == "create") {
    fill_physical(device);
  } else if (kind == "pool" || kind == "closed-pool") {
    fill_pool(device, kind == "closed-pool");
  } else if (kind == "module") {
    fill_modules();
  } else {
    return kind == "nothing";
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  int before = 0;
  int after = 0;
  bool within = false;
  bool trials = false;
  bool pending = false;
  for (int i = 2; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--within") {
      within = true;
    } else if (option == "--pending") {
      pending = true;
    } else if (option == "--trials") {
      trials = true;
    } else if (i + 1 < argc && option == "--loop") {
      before = number(argv[++i], "--loop");
    } else if (i + 1 < argc && option == "--again") {
      after = number(argv[++i], "--again");
    } else {
      std::fprintf(stderr, "full_device: unknown or incomplete option '%s'\n", option.c_str());
      return 2;
    }
  }
  if (argc < 2) {
    std::fprintf(stderr, "usage: full_device KIND [--loop N] [--within] [--again N] [--pending] [--trials]\n");
    return 2;
  }
  CUdevice device = 0;
  open_device(&device);
  Iterations iterations(pending);
  for (int i = 0; i < before; ++i) iterations.run();
  const auto do_it = [&] {
    if (trials) try_too_much();
    if (!fill_by(argv[1], device)) {
      std::fprintf(stderr, "full_device: unknown KIND '%s'\n", argv[1]);
      std::exit(2);
    }
  };
  if (within) {
    iterations.run(do_it);
  } else {
    do_it();
  }
  for (int i = 0; i < after; ++i) iterations.run();
  std::printf("mismatches %d\n", iterations.mismatches);
  return iterations.mismatches == 0 ? 0 : 1;
}
