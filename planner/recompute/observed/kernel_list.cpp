#include "planner/recompute/observed/kernel_list.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "planner/input/shown.h"
#include "planner/input/text.h"

namespace memopt::recompute {
namespace {

using input::shown;
using Use = KernelRule::Use;

// Frameworks have some thousand kernels.
constexpr std::size_t kMostRules = 4096;
constexpr input::TextBounds kListBounds{
    .expected = "a list of kernels", .line_bytes = std::size_t{1} << 13, .lines = 2 * kMostRules};
constexpr const char* kUses = "reads, changes, never, or r, w or c for each block that it names, * behind the last";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

std::optional<Role> role_of(std::string_view word) {
  if (word == "r") return Role::kReads;
  if (word == "w") return Role::kWrites;
  if (word == "c") return Role::kChanges;
  return std::nullopt;
}

void read_use(const input::Lines& lines, std::string_view text, KernelRule& rule) {
  constexpr std::pair<std::string_view, Use> kWords[] = {
      {"reads", Use::kReads}, {"changes", Use::kChanges}, {"never", Use::kNever}};
  for (const auto& [word, use] : kWords) {
    rule.use = use;
    if (text == word) return;
  }
  rule.use = Use::kByPosition;
  if (text.empty()) lines.fail(std::string(kUses) + " behind the last colon", "nothing");
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find_first_of(" \t"));
    rule.rest = word.size() == 2 && word[1] == '*' && word.size() == text.size();
    const std::optional<Role> role = role_of(rule.rest ? word.substr(0, 1) : word);
    if (!role) lines.fail(std::string(kUses) + " behind the last colon", '"' + shown(word) + '"');
    rule.roles.push_back(*role);
    text = trimmed(text.substr(word.size()));
  }
}

}  // namespace

bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0;
  // Behind the last star, and where in the text what it stands for ends at least.
  std::size_t behind_star = std::string_view::npos, star_end = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      behind_star = ++p;
      star_end = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (behind_star != std::string_view::npos) {
      p = behind_star;
      t = ++star_end;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

KernelList KernelList::read(input::File& file) {
  input::Lines lines(file, kListBounds);
  KernelList list;
  for (std::string_view line; lines.next(line);) {
    line = trimmed(line);
    if (line.empty() || line.front() == '#') continue;
    // Names may hold colons.
    const std::size_t colon = line.rfind(':');
    if (colon == std::string_view::npos) lines.fail("PATTERN: USE", '"' + shown(line) + '"');
    if (list.rules_.size() == kMostRules)
      lines.fail("at most " + std::to_string(kMostRules) + " lines with a pattern", "more");
    KernelRule rule;
    rule.pattern = trimmed(line.substr(0, colon));
    rule.line = lines.number();
    if (rule.pattern.empty()) lines.fail("a pattern of kernels' names in front of the last colon", "nothing");
    read_use(lines, trimmed(line.substr(colon + 1)), rule);
    list.rules_.push_back(std::move(rule));
  }
  return list;
}

const KernelRule* KernelList::find(std::string_view kernel) const {
  const auto found = std::find_if(rules_.rbegin(), rules_.rend(),
                                  [&](const KernelRule& rule) { return matches(rule.pattern, kernel); });
  return found == rules_.rend() ? nullptr : &*found;
}

}  // namespace memopt::recompute
