// Runs code that touches device memory by real loads and stores and turns a fault into a value: the device's illegal
// address. A SIGSEGV or SIGBUS on this thread inside run() at any address ends `body` (its frames are not unwound:
// kernels are plain C++ without owners) and its address is returned. Outside of run() the signal goes to whoever had it
// before. Reentrant; any thread.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>

namespace cudasim {

class FaultGuard {
 public:
  static std::optional<std::uintptr_t> run(const std::function<void()>& body);
};

}  // namespace cudasim
