#include "tools/memoptctl/recording/recording_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "tools/memoptctl/common/printable.h"

namespace memopt::tools {

RecordingFiles::~RecordingFiles() {
  if (first_ < 0) return;
  ::close(first_);
  if (made_) ::unlink(path_.c_str());
}

int RecordingFiles::create(const std::string& path, bool& made, std::string& error) const {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  made = fd >= 0;
  if (fd < 0 && errno == EEXIST && force_) fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd >= 0) return fd;
  error = errno == EEXIST ? fmt::format("{}: is there already (--force overwrites it)", printable(path))
                          : fmt::format("{}: can't be written: {}", printable(path), std::strerror(errno));
  return -1;
}

bool RecordingFiles::open(std::string& error) {
  first_ = create(path_, made_, error);
  return first_ >= 0;
}

std::optional<RecordingFiles::File> RecordingFiles::take(pid_t pid, std::string& error) {
  const std::lock_guard lock(mutex_);
  File file{std::exchange(first_, -1), path_};
  if (file.fd < 0) {
    // A process that executes another program, or whose agent has lost us, comes again under its number.
    const std::string base = fmt::format("{}.{}", path_, pid);
    file.path = base;
    for (int again = 2; taken_.count(file.path) != 0; ++again) file.path = fmt::format("{}.{}", base, again);
    bool made = false;
    file.fd = create(file.path, made, error);
    if (file.fd < 0) return std::nullopt;
  }
  // Only now is an old recording lost. What can't be cut (a device, a pipe) has nothing to lose.
  struct stat about {};
  if (::fstat(file.fd, &about) == 0 && S_ISREG(about.st_mode) && ::ftruncate(file.fd, 0) != 0) {
    error = fmt::format("{}: can't be emptied: {}", printable(file.path), std::strerror(errno));
    ::close(file.fd);
    return std::nullopt;
  }
  taken_.insert(file.path);
  return file;
}

}  // namespace memopt::tools
