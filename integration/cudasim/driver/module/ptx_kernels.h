// Kernels that are executed from their PTX, where no plug-in has them.
#pragma once
#include <memory>

#include "module/launch.h"
#include "ptx/execution/executable.h"
#include "ptx/execution/launch.h"

namespace cudasim {

// Makes the function ready: its module's PTX is parsed where that has not been done, variables that only the PTX has
// get memory. Not ready afterwards: `function.ptx_problem` says why, empty where there is no PTX at all.
void resolve_ptx(Driver& driver, LoadedFunction& function);

// One launch, queued: it outlives the module that named it, and owns its parameters.
class PtxLaunch {
 public:
  PtxLaunch(Driver& driver, const LoadedFunction& function, std::string name, const CudasimLaunch& dimensions,
            std::span<const std::byte> parameters, bool cooperative);

  // For the roofline, from a warp of the middle block that reads zeros: it depends on the launch alone.
  CudasimCost cost();
  CUresult run(std::uint64_t first_block, std::uint64_t last_block, const AccessLog& log);

 private:
  const Memory& memory_;
  std::string name_;
  bool instrumented_;
  std::uint64_t blocks_, warps_;
  ptx::Launch launch_;
};

}  // namespace cudasim
