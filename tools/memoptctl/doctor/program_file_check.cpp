#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tools/memoptctl/doctor/checks.h"

namespace memopt::tools {
namespace {

constexpr int kDeepestScript = 4;

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
