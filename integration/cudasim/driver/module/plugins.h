// Plug-ins of host kernels: shared libraries named by the configuration, loaded when the first module is, kept for
// good.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cudasim/plugin_abi.h"

namespace cudasim {

class AccessLog;
class Memory;

// A kernel as a plug-in has it.
struct HostKernel {
  const CudasimKernel* kernel;
  const CudasimPlugin* plugin;
  std::string path;      // of the plug-in
  std::string shadowed;  // path of another plug-in that has a kernel of this name too; "" for none
};

class Plugins {
 public:
  Plugins(std::vector<std::string> paths, const Memory& memory);

  // Null when no plug-in has it. Loads the plug-ins at the first call; one that can't be used is named on stderr and
  // left out.
  HostKernel* find(std::string_view mangled_name);

 private:
  void load_all();
  void load(const std::string& path);
  void add(const std::string& path, const CudasimPlugin& plugin);

  std::vector<std::string> paths_;
  bool loaded_ = false;
  std::map<std::string, HostKernel, std::less<>> kernels_;
};

}  // namespace cudasim
