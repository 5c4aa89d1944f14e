// The files that one `memoptctl record` writes: FILE for the first program, FILE.<pid> for further ones.
#pragma once

#include <sys/types.h>

#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace memopt::tools {

class RecordingFiles {
 public:
  RecordingFiles(std::string path, bool force) : path_(std::move(path)), force_(force) {}
  ~RecordingFiles();  // a first file that no program took is removed again, if it was made here

  // Opens the first file, so that what is wrong with it shows before the program starts. False: `error`.
  bool open(std::string& error);

  struct File {
    int fd;
    std::string path;
  };
  // An empty file for a program. Nothing: `error`. Any thread.
  std::optional<File> take(pid_t pid, std::string& error);

 private:
  int create(const std::string& path, bool& made, std::string& error) const;

  const std::string path_;
  const bool force_;
  std::mutex mutex_;
  int first_ = -1;     // open, not taken
  bool made_ = false;  // the first file was not there before
  std::set<std::string> taken_;
};

}  // namespace memopt::tools
