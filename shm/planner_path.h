// Where memoptd is, as seen from libmemopt.so: in an installation, in a build, or beside it.
#pragma once

#include <unistd.h>

#include <string>

namespace memopt::shm {

// The folder with the programs, as seen from that of libmemopt.so: lib, or lib/x86_64-linux-gnu as Debian has it.
inline std::string programs_of(const std::string& folder) {
  return folder + (folder.ends_with("-linux-gnu") ? "/../../bin" : "/../bin");
}

// `folder` of libmemopt.so. Empty: there is none that can be executed.
inline std::string planner_beside(const std::string& folder) {
  for (const std::string& place : {programs_of(folder), folder}) {
    if (std::string path = place + "/memoptd"; access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

// For people.
inline std::string planner_places(const std::string& folder) { return programs_of(folder) + " or " + folder; }

}  // namespace memopt::shm
