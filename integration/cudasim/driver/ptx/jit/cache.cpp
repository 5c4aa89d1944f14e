#include "ptx/jit/cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

namespace cudasim::ptx::jit {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSuffix = ".ptxo";
constexpr std::uint64_t kMostFileBytes = 64 << 20;

struct Header {
  char magic[8];
  std::uint64_t description_bytes, object_bytes, hash;  // of description and object
};
constexpr char kMagic[9] = "PTXOBJ01";

// Empty where it is not there, not this user's, or too large.
std::string contents_of(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return {};
  struct stat status {};
  std::string bytes;
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
      static_cast<std::uint64_t>(status.st_size) <= kMostFileBytes) {
    bytes.resize(static_cast<std::size_t>(status.st_size));
    std::size_t have = 0;
    while (have < bytes.size()) {
      const ssize_t got = read(file, bytes.data() + have, bytes.size() - have);
      if (got <= 0) break;
      have += static_cast<std::size_t>(got);
    }
    bytes.resize(have);
  }
  close(file);
  return bytes;
}

bool write_all(int file, const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t put = write(file, bytes.data() + done, bytes.size() - done);
    if (put <= 0) return false;
    done += static_cast<std::size_t>(put);
  }
  return true;
}

}  // namespace

// FNV-1a.
std::uint64_t hash_of(const std::string& bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

Cache::Cache(std::string folder, std::uint64_t most_bytes) : folder_(std::move(folder)), most_bytes_(most_bytes) {}

std::string Cache::path_of(const std::string& description) const {
  std::array<char, 17> name;
  std::snprintf(name.data(), name.size(), "%016llx", static_cast<unsigned long long>(hash_of(description)));
  return folder_ + "/" + name.data() + kSuffix;
}

std::string Cache::find(const std::string& description) const {
  if (folder_.empty()) return {};
  const std::string path = path_of(description);
  const std::string bytes = contents_of(path);
  Header header;
  if (bytes.size() < sizeof header) return {};
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof header.magic) != 0 || header.description_bytes != description.size() ||
      header.object_bytes != bytes.size() - sizeof header - description.size() ||
      bytes.size() < sizeof header + description.size())
    return {};
  const std::string rest = bytes.substr(sizeof header);
  if (hash_of(rest) != header.hash || rest.compare(0, description.size(), description) != 0) return {};
  // Used: the oldest are removed first.
  utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  return rest.substr(description.size());
}

void Cache::keep(const std::string& description, const std::string& object) const {
  if (folder_.empty()) return;
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof header.magic);
  header.description_bytes = description.size();
  header.object_bytes = object.size();
  header.hash = hash_of(description + object);
  const std::string bytes = std::string(reinterpret_cast<const char*>(&header), sizeof header) + description + object;
  if (bytes.size() > kMostFileBytes) return;
  const std::string path = path_of(description);
  std::string temporary = path + ".XXXXXX";
  const int file = mkostemp(temporary.data(), O_CLOEXEC);
  if (file < 0) return;
  const bool written = write_all(file, bytes);
  close(file);
  if (!written || std::rename(temporary.c_str(), path.c_str()) != 0) {
    unlink(temporary.c_str());
    return;
  }
  trim();
}

void Cache::trim() const {
  struct File {
    fs::path path;
    fs::file_time_type time;
    std::uint64_t bytes;
  };
  std::vector<File> files;
  std::uint64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    // Those that other processes are writing count, too: what a killed one has left goes in time.
    if (at->path().filename().string().find(kSuffix) == std::string::npos) continue;
    std::error_code gone;
    const File file{at->path(), fs::last_write_time(at->path(), gone), fs::file_size(at->path(), gone)};
    if (gone) continue;
    total += file.bytes;
    files.push_back(file);
  }
  if (total <= most_bytes_) return;
  std::ranges::sort(files, {}, &File::time);
  for (const File& file : files) {
    if (total <= most_bytes_ / 4 * 3) break;
    std::error_code gone;
    if (fs::remove(file.path, gone)) total -= file.bytes;
  }
}

}  // namespace cudasim::ptx::jit
