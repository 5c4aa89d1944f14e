// A program, run on the simulated device and recorded there.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace memopt::tools {

// A folder of its own for recordings, gone at the end. Throws std::runtime_error: there can be none.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct DryRunOptions {
  std::vector<std::string> command;
  std::string simulated;  // as --sim takes it
  std::chrono::milliseconds limit{0};
};

struct DryRun {
  std::string recording;  // the file; empty: there is none
  bool stopped = false;   // its time was over: the recording ends there
  std::string fault;      // why there is no recording, and what to do; empty: there is one
  std::string note;       // beside the recording; empty: nothing
};

// The device has as much memory as the program asks for. What the program writes
// is shown only where it fails.
DryRun run_dry(const DryRunOptions& options, const ScratchFolder& folder);

// What `output`, of a program that failed, says of a library or a module that was not found, and what to do. Empty:
// nothing.
std::string missing_in(const std::string& output);

}  // namespace memopt::tools
