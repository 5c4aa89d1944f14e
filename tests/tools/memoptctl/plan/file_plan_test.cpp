// What plan_file() makes of recordings: the program's clock becomes nanoseconds, and what is not known is counted.
#include "tools/memoptctl/plan/file_plan.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/planner/recording/recorded_file.h"

namespace memopt::tools {
namespace {

using planner::test::Record;
using planner::test::RecordedFile;

// An allocation, two launches and a free, over and over, 1000 ticks apart; a nanosecond has four ticks, as two clock
// readings say, the second behind the iterations.
class Recorded {
 public:
  explicit Recorded(bool blind) {
    file_.writer.add_clock({0, 500});
    for (std::uint64_t block = 1; block <= 10; ++block) {
      file_.add(Record::malloc(block, 4096, 0x10000, 7));
      file_.add(Record::launch(1, {block}));
      Record second = Record::launch(2, {block});
      if (blind) second.flags(shm::kBlindLaunch);
      file_.add(second);
      file_.add(Record::free(block));
    }
    file_.writer.add_clock({400'000, 100'500});
    EXPECT_TRUE(file_.writer.finish());
  }

  std::string path() const { return file_.path(); }

 private:
  RecordedFile file_;
};

TEST(FilePlan, TimesOfARecordingAreNanoseconds) {
  const Recorded recorded(false);
  input::File file(recorded.path());
  const FilePlanning planning = plan_file(file, {.iteration = true});
  ASSERT_TRUE(planning.plan) << planning.note;
  EXPECT_TRUE(planning.recording);
  EXPECT_EQ(planning.blind_launches, 0u);
  const swap::Problem& problem = planning.plan->iteration->problem;
  EXPECT_EQ(problem.period, 1000);
  ASSERT_EQ(problem.operations.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(problem.operations[i].time, 250.0 * static_cast<double>(i));
}

TEST(FilePlan, LaunchesWhoseParametersWereNotReadAreCounted) {
  const Recorded recorded(true);
  input::File file(recorded.path());
  EXPECT_EQ(plan_file(file).blind_launches, 10u);
}

}  // namespace
}  // namespace memopt::tools
