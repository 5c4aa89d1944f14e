// Does libmemopt.so get into programs, and into this one?
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/memoptctl/doctor/doctor_report.h"
#include "tools/memoptctl/doctor/elf_file.h"

namespace memopt::tools {

// The library's file, and a small child that is started under it. Returns the version that the child found; empty:
// none.
std::string check_preload(Report& report, const std::string& own_version);

// The child's side (`memoptctl probe preload`).
int probe_preload();

// A program by its file: what of it is executed in the end (interpreters of scripts), and how it reaches CUDA.
struct ProgramFile {
  std::string path;
  std::optional<ElfFile> elf;
  bool preloadable = false;  // nothing in its file speaks against it
};
// Adds a finding "program.file".
ProgramFile check_program_file(Report& report, const std::string& program);

// The file that is executed for it by PATH; empty: there is none.
std::string find_program(const std::string& name, const std::string& path);
// Words of a script's first line, "#!" taken off; empty: it is no script.
std::vector<std::string> script_interpreter(const std::string& first_line);

}  // namespace memopt::tools
