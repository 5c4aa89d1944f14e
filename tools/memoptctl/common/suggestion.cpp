#include "tools/memoptctl/common/suggestion.h"

#include <algorithm>

namespace memopt::tools {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> before(width), last(width), now(width);
  for (std::size_t j = 0; j < width; ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j < width; ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) now[j] = std::min(now[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(now);
  }
  return last[b.size()];
}

std::string nearest(std::string_view name, const std::vector<std::string>& names) {
  std::string found;
  std::size_t least = ~std::size_t{0};
  for (const std::string& candidate : names) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < least && 3 * distance <= std::max<std::size_t>(candidate.size(), 3)) {
      least = distance;
      found = candidate;
    }
  }
  return found;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& names) {
  const std::string meant = nearest(name, names);
  return meant.empty() ? meant : ", did you mean " + meant + "?";
}

}  // namespace memopt::tools
