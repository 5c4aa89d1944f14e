#include "planner/input/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <istream>
#include <streambuf>
#include <utility>

namespace memopt::input {
namespace {

constexpr std::size_t kHead = 4096;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// What all readers of one file share.
struct Source {
  explicit Source(int descriptor) : fd(descriptor) {}
  ~Source() {
    if (fd >= 0) ::close(fd);
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  int fd;               // -1: all there is lies in `kept`
  bool regular = true;  // can be read anywhere
  bool keeps = true;    // what is read, for the next reader; of what is not regular
  std::string kept;
  std::string name;
};

class SourceBytes : public Bytes {
 public:
  explicit SourceBytes(std::shared_ptr<Source> source) : source_(std::move(source)) {}

  std::size_t read(char* to, std::size_t size) override {
    Source& source = *source_;
    if (at_ < source.kept.size()) {
      const std::size_t got = std::min(size, source.kept.size() - at_);
      std::memcpy(to, source.kept.data() + at_, got);
      at_ += got;
      return got;
    }
    if (source.fd < 0) return 0;
    ssize_t got = 0;
    do {
      got = source.regular ? ::pread(source.fd, to, size, static_cast<off_t>(at_)) : ::read(source.fd, to, size);
    } while (got < 0 && errno == EINTR);
    if (got < 0) throw InputError(source.name + ": cannot be read: " + std::strerror(errno));
    const auto bytes = static_cast<std::size_t>(got);
    if (!source.regular && source.keeps) {
      if (bytes > File::kMostKept - source.kept.size()) {
        throw InputError(source.name + ": expected at most " + std::to_string(File::kMostKept >> 20) +
                         " MiB of what is no file and is read more than once; write it into a file first");
      }
      source.kept.append(to, bytes);
    }
    at_ += bytes;
    return bytes;
  }

 private:
  std::shared_ptr<Source> source_;
  std::size_t at_ = 0;
};

class Buffer : public std::streambuf {
 public:
  explicit Buffer(std::unique_ptr<Bytes> bytes) : bytes_(std::move(bytes)) {}

 protected:
  int_type underflow() override {
    const std::size_t got = bytes_->read(buffer_.data(), buffer_.size());
    if (got == 0) return traits_type::eof();
    setg(buffer_.data(), buffer_.data(), buffer_.data() + got);
    return traits_type::to_int_type(buffer_[0]);
  }

 private:
  std::unique_ptr<Bytes> bytes_;
  std::array<char, std::size_t{1} << 16> buffer_;
};

class Stream : public std::istream {
 public:
  explicit Stream(std::unique_ptr<Bytes> bytes) : std::istream(nullptr), buffer_(std::move(bytes)) {
    rdbuf(&buffer_);
    exceptions(std::ios::badbit);  // what reading throws is thrown on
  }

 private:
  Buffer buffer_;
};

std::size_t read_fully(Bytes& from, char* to, std::size_t size) {
  std::size_t all = 0;
  for (std::size_t got = 1; all < size && got != 0; all += got) got = from.read(to + all, size - all);
  return all;
}

}  // namespace

struct File::State {
  std::string path;
  std::shared_ptr<Source> source;
  Packing packing = Packing::kNone;
  std::size_t mark = 0;  // bytes of a byte order mark
  std::string head;
  bool taken = false;

  void look() {
    std::array<char, kPackingBytes> first{};
    SourceBytes raw(source);
    packing = packing_of({first.data(), read_fully(raw, first.data(), first.size())});
    head.resize(kByteOrderMark.size() + kHead);
    head.resize(read_fully(*open(), head.data(), head.size()));
    if (head.starts_with(kByteOrderMark)) mark = kByteOrderMark.size();
    head.erase(0, mark);
  }

  std::unique_ptr<Bytes> open() const {
    if (taken && !source->regular) throw std::logic_error(source->name + ": is read a second time");
    std::unique_ptr<Bytes> bytes = unpack(packing, std::make_unique<SourceBytes>(source), source->name);
    std::array<char, kByteOrderMark.size()> passed_over{};
    read_fully(*bytes, passed_over.data(), mark);
    return bytes;
  }
};

File::File(std::unique_ptr<State> state) : state_(std::move(state)) { state_->look(); }
File::~File() = default;
File::File(File&&) noexcept = default;
File& File::operator=(File&&) noexcept = default;

File::File(const std::string& path) : state_(std::make_unique<State>()) {
  const bool standard = path == "-";
  const std::string name = standard ? "standard input" : path;
  const int fd = standard ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw InputError(name + ": cannot be opened: " + std::strerror(errno));
  state_->path = path;
  state_->source = std::make_shared<Source>(fd);
  state_->source->name = name;
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw InputError(name + ": cannot be opened: " + std::strerror(errno));
  if (S_ISDIR(status.st_mode)) throw InputError(name + ": is a folder");
  // Standard input may stand behind its beginning, and what was there before is not meant.
  state_->source->regular = S_ISREG(status.st_mode) && !standard;
  state_->look();
}

File File::holding(std::string bytes, const std::string& name) {
  auto state = std::make_unique<State>();
  state->path = name;
  state->source = std::make_shared<Source>(-1);
  state->source->name = name;
  state->source->kept = std::move(bytes);
  return File(std::move(state));
}

const std::string& File::path() const { return state_->path; }
const std::string& File::name() const { return state_->source->name; }
std::string_view File::head() const { return state_->head; }

bool File::begins_with(char letter) const {
  const std::size_t first = state_->head.find_first_not_of(" \t\r\n");
  return first != std::string::npos && state_->head[first] == letter;
}

std::unique_ptr<std::istream> File::stream() { return std::make_unique<Stream>(state_->open()); }

std::unique_ptr<Bytes> File::take() {
  std::unique_ptr<Bytes> bytes = state_->open();
  state_->taken = true;
  state_->source->keeps = false;
  return bytes;
}

}  // namespace memopt::input
