#include "planner/recording/python_code.h"

#include <utility>

namespace memopt::planner {
namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20;
constexpr std::size_t kEach = 64;  // an entry without anything in it counts, too

}  // namespace

bool PythonCode::take(std::size_t bytes) {
  if (bytes + kEach > kMostBytes - bytes_) return false;
  bytes_ += bytes + kEach;
  return true;
}

bool PythonCode::add(std::uint32_t lane, const shm::RecordView& record) {
  if (record.kind() == shm::RecordKind::kPythonFrame) {
    const auto body = record.as<shm::NameBody>();
    if (!take(body.length)) return false;
    const auto text = record.bytes_behind<shm::NameBody>(body.length);
    frames_[body.id].assign(reinterpret_cast<const char*>(text.data()), text.size());
    return true;
  }
  if (record.kind() != shm::RecordKind::kPythonStack) return true;
  const auto body = record.as<shm::StackBody>();
  if (at_.count(lane) == 0 && !take(0)) return false;
  at_[lane] = body.hash;
  if (body.frames == 0) return true;
  if (!take(body.frames * sizeof(std::uint64_t))) return false;
  std::vector<std::uint64_t> ids(body.frames);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = record.word_behind<shm::StackBody>(i);
  stacks_[body.hash] = std::move(ids);
  return true;
}

std::uint64_t PythonCode::at(std::uint32_t lane) const {
  const auto found = at_.find(lane);
  return found == at_.end() ? 0 : found->second;
}

std::vector<std::string> PythonCode::names(std::uint64_t stack) const {
  std::vector<std::string> result;
  const auto found = stacks_.find(stack);
  if (found == stacks_.end()) return result;
  for (const std::uint64_t id : found->second) {
    const auto frame = frames_.find(id);
    result.push_back(frame == frames_.end() || frame->second.empty() ? "(not named)" : frame->second);
  }
  return result;
}

}  // namespace memopt::planner
