#include "tools/memoptctl/config/config_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/memoptctl/common/printable.h"

namespace memopt::tools {
namespace {

constexpr std::size_t kLargest = std::size_t{1} << 20;

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

std::vector<FileSetting> read_config(const std::filesystem::path& path, ConfigScope scope) {
  const auto fail = [&](const std::string& why) {
    return ConfigError(fmt::format("{}: {}", printable(path.string()), why));
  };
  // A pipe of that name must not keep us waiting for a writer.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  struct stat info {};
  if (file.fd < 0 || ::fstat(file.fd, &info) != 0) throw fail(fmt::format("can't be read: {}", std::strerror(errno)));
  if (!S_ISREG(info.st_mode)) throw fail("is no file: expected settings as TOML");
  std::string text;
  for (;;) {
    char part[16384];
    const ssize_t got = ::read(file.fd, part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw fail(fmt::format("can't be read: {}", std::strerror(errno)));
    if (got == 0) break;
    text.append(part, static_cast<std::size_t>(got));
    if (text.size() > kLargest) throw fail("is larger than 1 MiB: expected settings as TOML");
  }
  return parse_config(text, path, scope);
}

}  // namespace memopt::tools
