// Where memoptd is, as seen from libmemopt.so: in an installation, in a build, or beside it.
#pragma once

#include <unistd.h>

#include <string>

namespace memopt::shm {

// `folder` of libmemopt.so. Empty: there is none that can be executed.
inline std::string planner_beside(const std::string& folder) {
  for (const char* const behind : {"/../bin/memoptd", "/memoptd"}) {
    if (std::string path = folder + behind; access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

// For people.
inline std::string planner_places(const std::string& folder) { return folder + "/../bin or " + folder; }

}  // namespace memopt::shm
