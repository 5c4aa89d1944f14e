// Which processes of this machine have memopt's library and a CUDA driver mapped, by /proc: no help from the processes
// is needed.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace memopt::tools {

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  std::string command;                   // printable, arguments included
  bool memopt = false;                   // libmemopt.so is mapped
  bool driver = false;                   // libcuda.so.* is mapped
  bool disabled = false;                 // started with MEMOPT_DISABLE set to something other than 0
  bool other_network_namespace = false;  // its abstract sockets can't be seen from here
};

struct Scan {
  std::vector<Process> processes;  // those with memopt mapped, by pid
  std::size_t unreadable = 0;      // processes of other users, which may not be looked at
};

Scan scan_processes(const std::string& proc = "/proc");

// Printable command line of one process; "?" where it is gone or can't be read.
std::string command_of(pid_t pid, const std::string& proc = "/proc");

// Why this user can know nothing of a process: there is none, or it is another user's. Empty: it can be looked at.
std::string why_out_of_reach(pid_t pid, uid_t user, const std::string& proc = "/proc");

}  // namespace memopt::tools
