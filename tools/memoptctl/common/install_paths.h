// Where memopt's library and the simulated driver are: beside this binary, else where the build put them.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

namespace memopt::tools {

// All look beside the running binary first (../lib, ../cudasim/lib), so that a moved build folder uses its own files.
std::optional<std::filesystem::path> find_library();  // libmemopt.so
std::optional<std::filesystem::path> find_beside_library(const char* file);
std::optional<std::filesystem::path> find_simulator_folder();  // the folder with the simulated libcuda.so.1

// This binary, to be started again for something that may fail.
std::string own_program();

}  // namespace memopt::tools
