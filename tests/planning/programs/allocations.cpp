// A trace's allocations and frees through the CUDA runtime, where allocators of all kinds can be put in front of it,
// with a little work on each block, so that bytes are in use for a while after they were freed.
//
//   allocations TRACE [--iterations N] [--streams N] [--pause MS]
//
//   --iterations N  play the trace up to the end of its last iteration, and that one again until N were played
//   --streams N     the work of every Nth block is on the Nth stream (1)
//   --pause MS      the program waits so many milliseconds after each iteration (0)
//
// Prints the peak load in bytes, and how many allocations there were.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "steady.h"
#include "trace.h"

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "allocations: %s\n", what.c_str());
  std::exit(2);
}

void check(cudaError_t result, const char* call) {
  if (result != cudaSuccess) fail(std::string(call) + ": " + cudaGetErrorString(result));
}

class Program {
 public:
  Program(std::size_t streams, std::chrono::milliseconds pause) : streams_(streams), pause_(pause) {
    for (cudaStream_t& stream : streams_) check(cudaStreamCreate(&stream), "cudaStreamCreate");
  }

  void* make(std::uint64_t bytes) {
    void* block = nullptr;
    check(cudaMalloc(&block, bytes), "cudaMalloc");
    live_ += bytes;
    peak_ = std::max(peak_, live_);
    cudaStream_t const stream = streams_[made_++ % streams_.size()];
    check(cudaMemsetAsync(block, 0, std::min<std::uint64_t>(bytes, 4096), stream), "cudaMemsetAsync");
    return block;
  }
  void free(void*& block, std::uint64_t bytes) {
    if (block == nullptr) return;
    check(cudaFree(block), "cudaFree");
    live_ -= bytes;
    block = nullptr;
  }
  void end_iteration() {
    for (cudaStream_t const stream : streams_) check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    if (pause_.count() != 0) std::this_thread::sleep_for(pause_);
  }

  std::uint64_t peak() const { return peak_; }
  std::uint64_t made() const { return made_; }

 private:
  std::vector<cudaStream_t> streams_;
  std::chrono::milliseconds pause_;
  std::uint64_t live_ = 0;
  std::uint64_t peak_ = 0;
  std::uint64_t made_ = 0;
};

struct Options {
  std::string trace;
  std::size_t iterations = 0;
  std::size_t streams = 1;
  std::chrono::milliseconds pause{0};
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--iterations" && i + 1 < argc) {
      options.iterations = std::strtoull(argv[++i], nullptr, 10);
    } else if (argument == "--streams" && i + 1 < argc) {
      options.streams = std::strtoull(argv[++i], nullptr, 10);
    } else if (argument == "--pause" && i + 1 < argc) {
      options.pause = std::chrono::milliseconds(std::strtoull(argv[++i], nullptr, 10));
    } else if (options.trace.empty()) {
      options.trace = argument;
    } else {
      fail("what is '" + argument + "'?");
    }
  }
  if (options.trace.empty() || options.streams == 0)
    fail("usage: allocations TRACE [--iterations N] [--streams N] [--pause MS]");
  return options;
}

void play(const replay::Trace& trace, const Options& options, Program& program) {
  const std::optional<replay::Steady> steady = options.iterations != 0 ? replay::find_steady(trace) : std::nullopt;
  if (options.iterations != 0 && !steady) fail("no iteration was found in " + options.trace);
  std::vector<void*> blocks(trace.blocks.size(), nullptr);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (trace.blocks[i].from_before) blocks[i] = program.make(trace.blocks[i].bytes);
  }
  // Where each block of the last iterations was born, for the loop that goes on with them.
  std::vector<std::size_t> born(trace.blocks.size(), 0);
  const std::size_t end = steady ? steady->end : trace.operations.size();
  for (std::size_t i = 0; i < end; ++i) {
    const replay::Operation& operation = trace.operations[i];
    const std::uint64_t bytes = trace.blocks[operation.block].bytes;
    if (operation.verb == replay::Verb::kMalloc) {
      blocks[operation.block] = program.make(bytes);
      born[operation.block] = i;
    } else if (operation.verb == replay::Verb::kFree) {
      program.free(blocks[operation.block], bytes);
    }
    if (steady && i >= steady->begin() && (i + 1 - steady->begin()) % steady->period == 0) program.end_iteration();
  }
  if (!steady) return;
  // By offset of birth, then by round modulo the deepest age + 1; the trace's last iteration is round 0.
  const std::size_t depth = steady->deepest + 1;
  std::vector<std::vector<void*>> ring(steady->period, std::vector<void*>(depth, nullptr));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i] == nullptr || trace.blocks[i].from_before || born[i] < steady->begin()) continue;
    const std::size_t ago = (steady->end - 1 - born[i]) / steady->period;
    if (ago >= depth || born[i] < steady->end - (ago + 1) * steady->period) continue;
    const std::size_t offset = born[i] - (steady->end - (ago + 1) * steady->period);
    ring[offset][(depth - ago) % depth] = blocks[i];
  }
  for (std::size_t round = 1; round + steady->iterations <= options.iterations; ++round) {
    for (std::size_t offset = 0; offset < steady->loop.size(); ++offset) {
      const replay::LoopOperation& step = steady->loop[offset];
      void*& block = step.born_in_loop ? ring[step.birth][(round + depth - step.age) % depth] : blocks[step.block];
      if (step.verb == replay::Verb::kMalloc) {
        block = program.make(step.bytes);
      } else if (step.verb == replay::Verb::kFree) {
        program.free(block, step.bytes);
      }
    }
    program.end_iteration();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  try {
    const replay::Trace trace = replay::allocations_only(replay::read_trace(options.trace));
    Program program(options.streams, options.pause);
    play(trace, options, program);
    std::printf("peak_load %llu\nallocations %llu\n", static_cast<unsigned long long>(program.peak()),
                static_cast<unsigned long long>(program.made()));
  } catch (const replay::TraceError& error) {
    fail(error.what());
  }
  return 0;
}
