// Where memopt's files are, as seen from this binary: in an installation wherever it was put, or in a build folder.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace memopt::tools {

// All look beside the running binary first (../lib, ../lib/x86_64-linux-gnu), so that what was moved as a whole uses
// its own files; the folder of the build is for binaries that were copied out of it.
std::optional<std::filesystem::path> find_library();  // libmemopt.so
// What belongs to the library: beside it, or in the folder memopt there, where an installation has it.
std::optional<std::filesystem::path> find_beside_library(const char* file);
std::optional<std::filesystem::path> find_simulator_folder();  // the folder with the simulated libcuda.so.1

// Is this the name of libmemopt.so, as a process has it mapped: with or without a version?
bool is_library_name(std::string_view file);

// This binary, to be started again for something that may fail.
std::string own_program();

}  // namespace memopt::tools
