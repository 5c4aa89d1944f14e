// What doctor looks at. Each check adds its findings to the report; what may crash or hang runs in a child process.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tools/memoptctl/doctor/doctor_report.h"
#include "tools/memoptctl/doctor/elf_file.h"

namespace memopt::tools {

// The CUDA driver: found, of which version, with virtual memory management, and do two addresses of one chunk show the
// same bytes? `simulator`: folder of the simulated driver, if it is the one to look at; `device`: its preset.
void check_driver(Report& report, const std::optional<std::string>& simulator,
                  const std::optional<std::string>& device);

// The child's side (`memoptctl probe driver`): facts as lines on standard output. Returns its exit code.
int probe_driver();

// What the system allows a process that matters to memopt: shared memory, locked memory, memory of the control group.
void check_limits(Report& report);

// What is set for memopt in `environment` (an array of "NAME=value", null-terminated, or nullptr): is it understood?
void check_options(Report& report, const char* const* environment);

// What memopt.toml says, here and of the user: is it understood? It holds for this process, and for all that it starts,
// from here on, as for a program of `run`.
void check_config(Report& report);

// Does libmemopt.so get into programs? By its file, and by a small child that is started under it. Returns the version
// that the child found; empty: none.
std::string check_preload(Report& report, const std::string& own_version);

// The child's side (`memoptctl probe preload`).
int probe_preload();

// Is there a planner that this memopt can talk to? One is started under a name of its own, greeted as an agent does,
// and ended: the user's own planner is left in peace. `version`: of the library that would talk to it.
void check_planner(Report& report, const std::string& version);

// The wire version in the name of a planner's socket "memoptd-<uid>-<version>-<instance>" in a /proc/net/unix listing;
// negative: there is none.
int planner_wire_version(const std::string& listing, unsigned uid, const std::string& instance);

// A program by its file: what of it is executed in the end (interpreters of scripts), and how it reaches CUDA.
struct ProgramFile {
  std::string path;
  std::optional<ElfFile> elf;
  bool preloadable = false;  // nothing in its file speaks against it
};
// Does libmemopt.so get into this program?
ProgramFile check_program_file(Report& report, const std::string& program);

// The file that is executed for it by PATH; empty: there is none.
std::string find_program(const std::string& name, const std::string& path);
// Words of a script's first line, "#!" taken off; empty: it is no script.
std::vector<std::string> script_interpreter(const std::string& first_line);

struct ProgramTrial {
  std::vector<std::string> command;
  std::optional<std::string> simulated_device;
  std::chrono::milliseconds limit{10'000};
  std::optional<ElfFile> file;  // of the program, where it is known
};
// Runs the program briefly under memopt, and says what was seen of it. True if calls of the driver were.
bool check_program(Report& report, const ProgramTrial& trial);

}  // namespace memopt::tools
