#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>

#include "tools/memoptctl/common/install_paths.h"
#include "tools/memoptctl/doctor/checks.h"
#include "tools/memoptctl/run/limited_process.h"

namespace memopt::tools {
namespace {

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const std::size_t begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

}  // namespace

std::string check_preload(Report& report, const std::string& own_version) {
  const auto library = find_library();
  if (!library) {
    report.add("preload", Verdict::kProblem, "libmemopt.so is missing (looked in ../lib beside memoptctl)",
               "build or install it: cmake --build --preset release");
    return "";
  }
  std::string why;
  const auto elf = read_elf(library->string(), &why);
  if (!elf || !elf->bits_64 || elf->machine != EM_X86_64) {
    report.add("preload", Verdict::kProblem,
               fmt::format("{} can't be preloaded: {}", library->string(),
                           elf ? "it is not for 64-bit x86 (wrong architecture)" : why),
               "build it again on this machine");
    return "";
  }
  // As a person would do it, with the settings of this environment, in which those of files are by now.
  LimitedProcess child({{own_program(), "run", "--no-config", "--", own_program(), "probe", "preload"}});
  child.finish();
  std::string version;
  bool disabled = false;
  std::istringstream lines(child.output());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("version=")) version = line.substr(8);
    if (line == "disabled=1") disabled = true;
  }
  if (version.empty()) {
    const std::string said = last_line(child.errors());
    report.add("preload", Verdict::kProblem,
               fmt::format("a child that was started under {} did not have it ({})", library->string(),
                           !said.empty() ? said : child.how_it_ended()),
               "the loader's message says why; a file system mounted noexec, or a loader other than glibc's, is usual");
  } else if (version != own_version) {
    report.add("preload", Verdict::kProblem,
               fmt::format("{} is memopt {}, this memoptctl {}", library->string(), version, own_version),
               "install both from one build");
  } else if (disabled) {
    report.add("preload", Verdict::kWarning,
               fmt::format("{} is loaded, but MEMOPT_DISABLE=1 is set", library->string()), "unset MEMOPT_DISABLE");
  } else {
    report.add("preload", Verdict::kOk, fmt::format("{}, memopt {}", library->string(), version));
  }
  return version;
}

int probe_preload() {
  // Found only where the library was preloaded: nothing is linked to it.
  const auto version = reinterpret_cast<const char* (*)()>(::dlsym(RTLD_DEFAULT, "memopt_version"));
  if (version != nullptr) fmt::print("version={}\n", version());
  const char* const disabled = std::getenv("MEMOPT_DISABLE");
  fmt::print("disabled={}\n", disabled != nullptr && std::strcmp(disabled, "1") == 0 ? 1 : 0);
  return 0;
}

}  // namespace memopt::tools
