// What is known of a kernel before it is launched: its name, its parameters. Thread-safe; asks the driver without a
// lock.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "entry_points.h"
#include "tensor_lists.h"

namespace launch_effects {

struct Parameter {
  std::size_t offset = 0;
  std::size_t size = 0;
  // By the C++ type in the mangled name: a pointer to const. Structs may hold anything and count as written.
  bool is_read_only = false;
};

struct Kernel {
  std::string name;  // as the driver has it
  std::vector<Parameter> parameters;
  std::size_t bytes = 0;             // of all parameters, packed
  std::optional<TensorLists> lists;  // which the first parameter is
  std::optional<CatInputs> inputs;   // which the second parameter is

  // The bytes of a launch's parameters, packed; empty where they can't be had.
  std::vector<std::byte> pack(void* const* values, void* const* extra) const;
  const Parameter* at(std::size_t offset) const;
};

class Kernels {
 public:
  // For a CUfunction, or a CUkernel in its place.
  std::shared_ptr<const Kernel> of(CUfunction function);
  // Handles may mean something else from now on.
  void forget();

 private:
  std::mutex mutex_;
  std::unordered_map<CUfunction, std::shared_ptr<const Kernel>> known_;
};

}  // namespace launch_effects
