// Where memopt's library and the simulated driver are: beside this binary, else where the build put them.
#pragma once
#include <filesystem>
#include <optional>

namespace memopt::tools {

// Both look beside the running binary first (../lib, ../cudasim/lib), so that a moved build folder uses its own files.
std::optional<std::filesystem::path> find_library();           // libmemopt.so
std::optional<std::filesystem::path> find_simulator_folder();  // the folder with the simulated libcuda.so.1

}  // namespace memopt::tools
