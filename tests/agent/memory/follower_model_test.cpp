// The follower against one that is simpler and slower.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "tests/agent/memory/followed_thread.h"

namespace memopt::agent {
namespace {

// Against a follower that keeps the whole history and looks at it from behind.
class FollowerModel : public testing::TestWithParam<unsigned> {
 protected:
  struct Model {
    std::vector<std::uint64_t> sizes;
    std::size_t match = 0;
    std::vector<std::uint64_t> history{};  // what was followed, as planned, and what came then
    std::size_t off = 0;                   // of it: mallocs since the plan was left
    bool following = false, known = false;
    std::size_t position = 0, doubts = 0, end_doubts = 0;
    std::optional<std::size_t> found{};  // in this iteration
    bool by_end = false;                 // back by the end of one
    bool whole = false;                  // an iteration was followed to its end since
    double scale = 0, batch = 0;         // what is gone by, and what is known of the iteration

    bool fits(double size, std::size_t at, double by) const {
      const auto planned = static_cast<double>(sizes[at % sizes.size()]);
      return by < 1 ? size <= planned && size >= planned * by * by : size >= planned && size <= planned * by * by;
    }
    void next_iteration() {
      following = known = by_end = true;
      whole = false;
      position = 0;
      scale = batch = 0;
      found.reset();
    }
    void larger(double by) {
      following = false;
      scale = by;
      if (++position == sizes.size()) next_iteration();
    }
    double other() const {
      if (off < 3 || off > 8) return 0;
      const std::vector<double> made(history.end() - static_cast<std::ptrdiff_t>(off), history.end());
      const double by = made[0] / static_cast<double>(sizes[position]);
      if (by * 32 < 1 || by > 32) return 0;
      int alike = 0;
      for (std::size_t i = 0; i < off; ++i) {
        if (!fits(made[i], position + i, by)) return 0;
        const double expected = by * static_cast<double>(sizes[(position + i) % sizes.size()]);
        alike += std::abs(made[i] - expected) <= expected / 64 ? 1 : 0;
      }
      return by != 1 && alike >= 2 && static_cast<std::size_t>(2 * alike) >= off ? by : 0;
    }
    bool ends_with(std::size_t last, std::size_t count) const {
      for (std::size_t back = 0; back < count; ++back) {
        const std::size_t planned = (last + 8 * sizes.size() - back) % sizes.size();
        if (back >= history.size() || history[history.size() - 1 - back] != sizes[planned]) return false;
      }
      return true;
    }
    Step back_at(std::size_t at) {
      following = true;
      by_end = whole = false;
      found = at;
      position = (at + 1) % sizes.size();
      if (position == 0) batch = 0;
      return Step::kRejoins;
    }
    bool ends() const {
      if (!ends_with(sizes.size() - 1, match)) return false;
      const std::size_t wanted = std::min<std::size_t>(match + end_doubts, LanePosition::kKnown);
      return wanted <= match || ((!known || wanted <= off + 1) && ends_with(sizes.size() - 1, wanted));
    }
    Step look() {
      if (ends()) {
        if (known) {
          back_at(sizes.size() - 1);
          by_end = true;
          return Step::kRejoins;
        }
        next_iteration();
        return Step::kOff;
      }
      if (!known) return Step::kOff;
      ++off;
      if (const double by = other(); by != 0) {
        batch = by;
        const std::size_t last = (position + off - 1) % sizes.size();
        if (by < 1) {
          back_at(last);
          scale = position != 0 ? by : 0;
          return Step::kRejoins;
        }
        position = last;
        larger(by);
        return Step::kOff;
      }
      for (std::size_t ahead = 0; ahead < sizes.size(); ++ahead) {
        std::size_t wanted = ahead == 0 && off <= 4 ? 1 : ahead <= 8 ? 2 : 4;
        wanted = std::min<std::size_t>(wanted + doubts, LanePosition::kKnown);
        if (wanted > off) break;
        const std::size_t at = (position + ahead) % sizes.size();
        if (ends_with(at, wanted)) return back_at(at);
      }
      return Step::kOff;
    }
    Step malloc(std::uint64_t size) {
      const auto bytes = static_cast<double>(size);
      if (following) {
        const double by = scale != 0 ? scale : batch;
        const bool exact = sizes[position] == size;
        if (exact || (by != 0 && by < 1 && fits(bytes, position, by))) {
          position = (position + 1) % sizes.size();
          if (!exact) scale = by;
          if (position == 0) {
            scale = batch = 0;
            found.reset();
            whole = true;
          }
          return Step::kFollows;
        }
      } else if (scale > 1 && fits(bytes, position, scale)) {
        larger(scale);
        return Step::kOff;
      } else {
        if (scale > 1) {
          scale = batch = 0;
          off = 0;
          history.clear();
        }
        history.push_back(size);
        return look();
      }
      const bool at_once = found && (position + sizes.size() - *found) % sizes.size() <= 2;
      doubts = at_once ? std::min<std::size_t>(doubts + 1, 8) : 0;
      if (whole && end_doubts != 0) {
        --end_doubts;
      } else if (!whole && by_end && position <= 2) {
        end_doubts = std::min<std::size_t>(end_doubts + 1, 8);
      }
      following = by_end = whole = false;
      history.clear();
      const double by = scale != 0 ? scale : batch;
      if (scale != 0) batch = 0;
      scale = 0;
      if (by > 1 && fits(bytes, position, by)) {
        larger(by);
        return Step::kLeaves;
      }
      for (std::size_t back = match; back != 0; --back) {
        history.push_back(sizes[(position + sizes.size() - back % sizes.size()) % sizes.size()]);
      }
      history.push_back(size);
      off = 1;
      if (end_doubts == 0 && ends_with(sizes.size() - 1, match)) next_iteration();
      return Step::kLeaves;
    }
  };
};

TEST_P(FollowerModel, AgreesWithALookAtTheWholeHistory) {
  std::mt19937 random(GetParam());
  std::size_t rejoined = 0, smaller = 0, larger = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint64_t> sizes(1 + random() % 24);
    const std::uint64_t kinds = 2 + random() % 8;
    for (std::uint64_t& size : sizes) size = 60 * (1 + random() % kinds);
    const auto match = static_cast<std::uint32_t>(1 + random() % sizes.size());
    FollowedPlan plan = plan_of(sizes, match);
    Thread thread(plan);
    Model model{sizes, match};
    std::size_t next = 0;     // of what the program makes
    std::uint64_t times = 6;  // sixths
    for (int step = 0; step < 400; ++step) {
      const auto kind = random() % 12;
      if (kind == 0) next += random() % 4;
      if (kind == 2 && random() % 4 == 0) times = std::vector<std::uint64_t>{2, 3, 6, 6, 9, 18}[random() % 6];
      const std::uint64_t size = kind == 1           ? 60 * (1 + random() % (kinds + 1))
                                 : random() % 4 == 0 ? sizes[next++ % sizes.size()]
                                                     : sizes[next++ % sizes.size()] * times / 6;
      const Step expected = model.malloc(size);
      ASSERT_EQ(thread.malloc(size), expected) << "round " << round << " step " << step;
      ASSERT_EQ(thread.at.following, model.following) << "round " << round << " step " << step;
      if (model.following) {
        ASSERT_EQ(thread.at.position, model.position) << "round " << round << " step " << step;
      }
      rejoined += expected == Step::kRejoins ? 1 : 0;
      smaller += model.scale != 0 && model.scale < 1 ? 1 : 0;
      larger += model.scale > 1 ? 1 : 0;
    }
  }
  EXPECT_GT(rejoined, 1000u);
  EXPECT_GT(smaller, 500u);
  EXPECT_GT(larger, 500u);
}
INSTANTIATE_TEST_SUITE_P(Seeds, FollowerModel, testing::Range(1u, 9u));

}  // namespace
}  // namespace memopt::agent
