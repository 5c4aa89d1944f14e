// What the cases of limit_cases share: blocks whose contents are known, and a crowd of blocks that drives the others
// off the device where memopt is to hold no more than 48 MiB.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "driver_program.h"

namespace limit {

constexpr std::size_t kMib = std::size_t{1} << 20;
constexpr std::size_t kLimit = 48 * kMib;  // MEMOPT_LIMIT is this, where a case does not say otherwise
constexpr std::size_t kBytes = 6 * kMib;   // of a block that is driven away

struct Kernels {
  CUmodule module = nullptr;  // of the current context
  CUfunction fill = nullptr, add = nullptr, add_two = nullptr, add_before = nullptr, gather = nullptr,
             scatter = nullptr, store = nullptr, first_words = nullptr;
};
// The device's primary context is current, the kernels are loaded.
extern CUdevice device;
extern CUcontext context;
extern Kernels kernels;
void open();
// Loads them into the context that is current now.
void load_kernels();

template <typename... Parameters>
CUresult launch(CUfunction kernel, CUstream stream, std::size_t threads, Parameters... parameters) {
  void* pointers[] = {static_cast<void*>(&parameters)...};
  constexpr unsigned kThreads = 256;
  const auto blocks = static_cast<unsigned>((threads + kThreads - 1) / kThreads);
  return cuLaunchKernel(kernel, blocks, 1, 1, kThreads, 1, 1, 0, stream, pointers, nullptr);
}

CUstream make_stream(unsigned flags = CU_STREAM_NON_BLOCKING);
CUevent make_event();
// `then` begins what follows on it behind what `first` has so far.
void order(CUstream first, CUstream then);
void finish();  // cuCtxSynchronize

// A block, and what must be in it.
class Block {
 public:
  explicit Block(std::size_t bytes, unsigned seed, CUstream stream = nullptr);

  CUdeviceptr address() const { return address_; }
  CUdeviceptr end() const { return address_ + bytes(); }
  std::size_t bytes() const { return words.size() * sizeof(unsigned); }
  int count() const { return static_cast<int>(words.size()); }

  void fill(unsigned seed, CUstream stream = nullptr);
  void add(const Block& other, CUstream stream = nullptr);  // of at least as many words
  std::size_t wrong() const;  // words that are not as they must be, by a copy to the host that waits
  void free();

  std::vector<unsigned> words;

 private:
  CUdeviceptr address_ = 0;
};

// Blocks of 4 MiB that are as large as the limit together. Whatever else was there is away after they were used, as
// nothing of it was used as recently.
class Crowd {
 public:
  explicit Crowd(std::size_t bytes = kLimit, unsigned seed = 1000);
  void use(CUstream stream = nullptr);         // all of them
  void drive_away(CUstream stream = nullptr);  // likewise; what was queued before is waited for
  std::size_t wrong() const;
  void free();

 private:
  std::vector<Block> blocks_;
  unsigned seed_;
};

// "what: N wrong", the line that must be the same under a limit as without one.
void say(const std::string& what, std::size_t wrong);

struct Case {
  std::string_view name;
  void (*run)();
};
extern std::string argument;  // the case's own, "" if there is none

std::span<const Case> access_cases();
std::span<const Case> copy_cases();
std::span<const Case> escape_cases();
std::span<const Case> life_cases();
std::span<const Case> order_cases();
std::span<const Case> full_cases();
std::span<const Case> graph_cases();

}  // namespace limit
