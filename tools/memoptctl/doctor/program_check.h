// Runs the program briefly under memopt, and says what was seen of it.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tools/memoptctl/doctor/doctor_report.h"
#include "tools/memoptctl/doctor/elf_file.h"

namespace memopt::tools {

struct ProgramTrial {
  std::vector<std::string> command;
  std::optional<std::string> simulated_device;
  std::chrono::milliseconds limit{10'000};
  std::optional<ElfFile> file;  // of the program, where it is known
};

// True if calls of the driver were seen.
bool check_program(Report& report, const ProgramTrial& trial);

}  // namespace memopt::tools
