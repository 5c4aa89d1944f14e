#include "decisions.h"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>

namespace launch_effects {
namespace {

constexpr std::string_view kFirstLine = "launch-effects 1";

// Numbers of a line, one after the other, each with what must stand behind it.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  template <typename Number>
  bool number(Number& out, char behind, int base = 10) {
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), out, base);
    if (error != std::errc()) return false;
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    if (text_.empty()) return behind == ' ';
    if (text_.front() != behind) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool at_end() const { return text_.empty(); }

 private:
  std::string_view text_;
};

bool read_launch(std::string_view line, const std::vector<std::string>& kernels, Decisions& out) {
  Reader reader(line);
  LaunchId id;
  Decision decision;
  std::size_t kernel = 0;
  if (!reader.number(id.thread, ' ') || !reader.number(id.number, ' ') || !reader.number(kernel, ' ') ||
      !reader.number(decision.digest, ' ', 16) || !reader.number(decision.bytes, ' ') || kernel >= kernels.size())
    return false;
  decision.kernel = kernels[kernel];
  while (!reader.at_end()) {
    Named named;
    if (!reader.number(named.offset, ':') || !reader.number(named.block.thread, '.') ||
        !reader.number(named.block.number, '+') || !reader.number(named.begin, ' '))
      return false;
    decision.named.push_back(named);
  }
  out[id] = std::move(decision);
  return true;
}

}  // namespace

bool read_decisions(const std::string& path, Decisions& out) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line) || line != kFirstLine) {
    std::fprintf(stderr, "launch effects: %s is no file of decisions\n", path.c_str());
    return false;
  }
  std::vector<std::string> kernels;
  for (int number = 2; std::getline(file, line); ++number) {
    const std::string_view text = line;
    if (const std::size_t name = text.find(' ', 7); text.starts_with("kernel ") && name != std::string_view::npos) {
      kernels.emplace_back(text.substr(name + 1));
    } else if (!text.starts_with("launch ") || !read_launch(text.substr(7), kernels, out)) {
      std::fprintf(stderr, "launch effects: %s:%d is no decision\n", path.c_str(), number);
      return false;
    }
  }
  return true;
}

void write_decisions(const std::string& path, const Decisions& decisions) {
  std::FILE* const file = std::fopen(path.c_str(), "we");
  if (file == nullptr) {
    std::fprintf(stderr, "launch effects: cannot write %s: %s\n", path.c_str(), std::strerror(errno));
    return;
  }
  std::fprintf(file, "%s\n", kFirstLine.data());
  std::map<std::string, std::size_t> kernels;
  for (const auto& [id, decision] : decisions) {
    const auto [kernel, is_new] = kernels.emplace(decision.kernel, kernels.size());
    if (is_new) std::fprintf(file, "kernel %zu %s\n", kernel->second, decision.kernel.c_str());
    std::fprintf(file, "launch %u %u %zu %llx %llu", id.thread, id.number, kernel->second,
                 static_cast<unsigned long long>(decision.digest), static_cast<unsigned long long>(decision.bytes));
    for (const Named& named : decision.named) {
      std::fprintf(file, " %u:%u.%u+%llu", named.offset, named.block.thread, named.block.number,
                   static_cast<unsigned long long>(named.begin));
    }
    std::fputc('\n', file);
  }
  if (std::fclose(file) != 0) std::fprintf(stderr, "launch effects: %s is incomplete\n", path.c_str());
}

}  // namespace launch_effects
