// Runs a program, iteration by iteration, and compares all that it reads with what it must read.
#pragma once

#include <cuda.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "program.h"

namespace memopt::order {

struct Kernels {
  CUfunction fill = nullptr;
  CUfunction add = nullptr;
};

class Runner {
 public:
  Runner(const Program& program, const Kernels& kernels, CUcontext context);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  void run(std::uint32_t iterations);
  std::uint64_t checksum() const { return checksum_; }  // of all that was read; one that a right run always has

 private:
  struct Function {
    Runner* runner;
    std::size_t op;
  };

  void run_thread(int thread, std::uint32_t iterations);
  void meet(int thread);  // all threads; the first one ends the iteration
  void end_iteration();
  void await(const Op& op);
  void execute(std::size_t index);
  void launch(const Op& op);
  void copy_out_now(std::size_t index);
  void poll(CUevent event);
  void make_stream(int stream);
  void compare(std::size_t index, const std::uint32_t* words);
  void set_flag(int flag);
  void await_flag(int flag);
  CUstream stream_of(const Op& op) const;
  std::uint32_t* slot(int slot) { return slots_ + std::size_t(slot) * Program::kSlotWords; }
  [[noreturn]] void fail(std::size_t op, const std::string& what) const;
  void check(CUresult result, std::size_t op) const;

  const Program& program_;
  const Kernels kernels_;
  const CUcontext context_;
  std::vector<CUdeviceptr> blocks_;
  std::vector<CUstream> streams_;
  std::vector<CUevent> events_;
  std::vector<Function> functions_;  // by operation
  std::vector<std::vector<std::size_t>> of_thread_;
  std::uint32_t* slots_ = nullptr;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> calls_;  // that have returned, by thread
  std::vector<char> flags_;
  std::uint32_t iteration_ = 0;
  int there_ = 0;
  std::uint64_t meetings_ = 0;
  std::uint64_t checksum_ = 0xcbf29ce484222325u;
};

}  // namespace memopt::order
