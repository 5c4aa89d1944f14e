// Parts that need a library which may be missing: modules beside libmemopt.so, loaded when they are asked for.
#pragma once

#include <string>

namespace memopt::tools {

struct OptionalModule {
  void* run = nullptr;  // what the module offers; stays until the process ends
  std::string missing;  // why there is none
};

// Looks for the function in a module of this very build: module and program share the layout of their types. `version`
// names a string in it.
OptionalModule load_optional_module(const char* file, const char* version, const char* run);

}  // namespace memopt::tools
