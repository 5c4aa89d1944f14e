#include "planner/layout/files/input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace memopt::layout {
namespace {

std::string shown_name(const std::string& path) { return path == "-" ? "standard input" : path; }

int open_input(const std::string& path) {
  const int fd = path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw std::runtime_error(shown_name(path) + ": cannot be opened: " + std::strerror(errno));
  struct stat status {};
  if (::fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) {
    ::close(fd);
    throw std::runtime_error(shown_name(path) + ": is a folder");
  }
  return fd;
}

struct Close {
  void operator()(gzFile file) const { gzclose_r(file); }
};

}  // namespace

std::string read_input(const std::string& path) {
  constexpr unsigned kStep = 1U << 18;
  const int fd = open_input(path);
  const std::unique_ptr<std::remove_pointer_t<gzFile>, Close> file(gzdopen(fd, "rb"));
  if (!file) {
    ::close(fd);
    throw std::runtime_error(shown_name(path) + ": out of memory");
  }
  gzbuffer(file.get(), kStep);
  std::string content;
  for (int got = 1; got > 0;) {
    const std::size_t size = content.size();
    content.resize(size + kStep);
    got = gzread(file.get(), content.data() + size, kStep);
    content.resize(size + static_cast<std::size_t>(got > 0 ? got : 0));
  }
  // Only here zlib reports that a packed file ended too early: the data before the end was read without an error.
  int error = Z_OK;
  const char* const message = gzerror(file.get(), &error);
  if (error == Z_OK || error == Z_STREAM_END) return content;
  const char* const what = error == Z_ERRNO       ? std::strerror(errno)
                           : error == Z_BUF_ERROR ? "ends within its packed data"
                                                  : message;
  throw std::runtime_error(shown_name(path) + ": cannot be read: " + what);
}

}  // namespace memopt::layout
