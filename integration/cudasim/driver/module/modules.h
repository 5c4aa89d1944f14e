// Modules, libraries, functions and kernels: images (fatbin, cubin, PTX) are parsed for kernels, parameters and
// globals; what a kernel does comes from plug-ins of host functions, found by mangled name.
//
// Threads: called with the driver's lock held.
#pragma once
#include <cuda.h>

#include <memory>

#include "units.h"

namespace cudasim {

struct Driver;

class Modules {
 public:
  explicit Modules(Driver& driver);
  ~Modules();

  void release_context(ContextId context);

  struct Impl;  // module/modules_impl.h: shared by module/*.cpp, api/module.cpp, api/launch.cpp
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace cudasim
