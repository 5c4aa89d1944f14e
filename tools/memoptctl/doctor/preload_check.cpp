#include "tools/memoptctl/doctor/preload_check.h"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "tools/memoptctl/common/install_paths.h"
#include "tools/memoptctl/run/limited_process.h"
#include "tools/memoptctl/run/run_command.h"

namespace memopt::tools {
namespace {

constexpr int kDeepestScript = 4;

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const std::size_t begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

// Why the loader of such a program would not load a library of ours; empty: it would.
std::string wrong_kind(const ElfFile& elf) {
  if (elf.bits_64 && elf.machine == EM_X86_64) return "";
  return elf.machine == EM_386 ? "it is a 32-bit program"
                               : fmt::format("it is for another machine (ELF {})", elf.machine);
}

// Does the loader start it in secure mode, in which LD_PRELOAD is ignored? Why; empty: no.
std::string secure_reason(const std::string& path) {
  struct stat info {};
  struct statvfs mount {};
  if (::stat(path.c_str(), &info) != 0 || (::statvfs(path.c_str(), &mount) == 0 && (mount.f_flag & ST_NOSUID) != 0)) {
    return "";
  }
  if ((info.st_mode & S_ISUID) != 0 && info.st_uid != ::geteuid()) return "it is setuid";
  if ((info.st_mode & S_ISGID) != 0 && (info.st_mode & S_IXGRP) != 0 && info.st_gid != ::getegid()) {
    return "it is setgid";
  }
  const bool has_capabilities = ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
  return has_capabilities && ::geteuid() != 0 ? "it has file capabilities" : "";
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
  // As a person would do it, with the settings of this environment.
  LimitedProcess child({{own_program(), "run", "--", own_program(), "probe", "preload"}});
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

std::string find_program(const std::string& name, const std::string& path) {
  const auto usable = [](const std::string& file) {
    struct stat info {};
    return ::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::access(file.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) return usable(name) ? name : "";
  std::istringstream folders(path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = (folder.empty() ? std::string(".") : folder) + "/" + name;
    if (usable(file)) return file;
  }
  return "";
}

std::vector<std::string> script_interpreter(const std::string& first_line) {
  if (!first_line.starts_with("#!")) return {};
  std::istringstream words(first_line.substr(2));
  std::vector<std::string> found;
  for (std::string word; words >> word;) found.push_back(word);
  return found;
}

ProgramFile check_program_file(Report& report, const std::string& program) {
  const char* const search = std::getenv("PATH");
  const std::string path = search == nullptr ? "/bin:/usr/bin" : search;
  ProgramFile found;
  found.path = find_program(program, path);
  if (found.path.empty()) {
    report.add("program.file", Verdict::kProblem, fmt::format("{}: no such program, or it can't be executed", program),
               "give its path, or set PATH");
    return found;
  }
  std::string shown = found.path;
  std::string why;
  for (int depth = 0; depth < kDeepestScript; ++depth) {
    // Scripts are never in secure mode themselves: what counts is the interpreter.
    found.elf = read_elf(found.path, &why);
    if (found.elf) break;
    std::ifstream file(found.path);
    std::string line;
    std::getline(file, line);
    std::vector<std::string> words = script_interpreter(line.substr(0, 4096));
    if (words.size() > 1 && words[0].ends_with("/env")) {
      words.erase(words.begin());
      while (words.size() > 1 && (words[0].starts_with('-') || words[0].find('=') != std::string::npos)) {
        words.erase(words.begin());
      }
    }
    const std::string next = words.empty() ? "" : find_program(words[0], path);
    if (next.empty()) break;
    found.path = next;
    shown += " by " + next;
  }
  if (!found.elf) {
    report.add("program.file", Verdict::kUnknown, fmt::format("{}: {}", shown, why));
    return found;
  }
  const std::string kind = wrong_kind(*found.elf);
  const std::string secure = secure_reason(found.path);
  if (!kind.empty()) {
    report.add("program.file", Verdict::kProblem,
               fmt::format("{}: {}: libmemopt.so can't be loaded into it", shown, kind),
               "use a 64-bit x86 build of the program");
  } else if (found.elf->interpreter.empty()) {
    report.add("program.file", Verdict::kProblem,
               fmt::format("{}: it is linked statically to libc, and has no loader: LD_PRELOAD does nothing", shown),
               "link it dynamically (the CUDA runtime may stay static)");
  } else if (!secure.empty()) {
    report.add("program.file", Verdict::kProblem,
               fmt::format("{}: {}: the loader ignores LD_PRELOAD for it", shown, secure),
               "run a copy without that bit");
  } else if (found.elf->interpreter.find("musl") != std::string::npos) {
    report.add("program.file", Verdict::kProblem, fmt::format("{}: its loader is {}", shown, found.elf->interpreter),
               "memopt needs glibc");
  } else {
    found.preloadable = true;
    report.add("program.file", Verdict::kOk, shown);
  }
  return found;
}

}  // namespace memopt::tools
