#pragma once

// A libcuda.so.1 that does nothing but remember: which entry points were asked for, which were called, with what. It
// stands in for a driver where the question is what the runtime does, not what comes of it. Tests reach it with dlopen,
// as the runtime does.

#include <cstdint>
#include <string>
#include <vector>

namespace fake {

struct Request {
  std::string name;
  int version;
  uint64_t flags;  // 1 legacy, 2 per-thread
};

// One call, with the first six arguments as they lay in the registers.
struct Call {
  std::string name;
  uint64_t flags;  // of the request that handed out the entry point
  uint64_t arguments[6];
};

struct Driver {
  virtual std::vector<Request> requests() = 0;
  // Calls since the last `forget_calls()`, by all threads.
  virtual std::vector<Call> calls() = 0;
  virtual void forget_calls() = 0;
  // What the named function answers from now on; 0 again for success.
  virtual void answer(const std::string& name, int result) = 0;
  // What is current to this thread.
  virtual void set_current(void* context) = 0;
  virtual void* current() = 0;
  virtual void* primary() = 0;

 protected:
  ~Driver() = default;
};

// Names that this driver does not know.
inline constexpr const char* kUnknown[] = {"cuMemPoolTrimTo"};
inline constexpr int kVersion = 13000;
inline constexpr int kDevices = 2;
inline constexpr const char* kAccessor = "fake_driver";  // extern "C" fake::Driver* fake_driver();

}  // namespace fake
