#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "planner/recompute/observed/know.h"
#include "planner/recompute/online/dtr.h"
#include "tests/planner/layout/sanitized.h"
#include "tests/planner/recompute/observed/contents.h"
#include "tests/planner/recompute/programs.h"

namespace memopt::recompute {
namespace {

using testing::Contents;
using testing::Program;
using testing::Truth;

using Blocks = std::vector<std::uint32_t>;

KernelList listed(const std::string& text) {
  input::File file = input::File::holding(text, "kernels.txt");
  return KernelList::read(file);
}

// A program as a recording shows it: launches name blocks.
class Recorded {
 public:
  Program program;

  // Of the kernel of this name.
  void launch(const std::string& kernel, const Blocks& blocks, double ns = 10) {
    Seen seen;
    seen.kind = Seen::Kind::kLaunch;
    seen.kernel = number(kernel);
    add(seen, {}, blocks, ns);
  }
  void blind(const Blocks& blocks) {
    Seen seen;
    seen.kind = Seen::Kind::kLaunch;
    seen.blind = true;
    add(seen, {}, blocks, 10);
  }
  void elsewhere(const std::string& kernel, const Blocks& blocks) {
    Seen seen;
    seen.kind = Seen::Kind::kLaunch;
    seen.kernel = number(kernel);
    seen.elsewhere = true;
    add(seen, {}, blocks, 10);
  }
  void copy(std::uint32_t to, const Blocks& from, std::uint64_t bytes) {
    Seen seen;
    seen.kind = Seen::Kind::kCopy;
    seen.from_host = from.empty();
    seen.bytes = bytes;
    add(seen, from, {to}, 10);
  }
  void memset(std::uint32_t to, std::uint64_t bytes) {
    Seen seen;
    seen.kind = Seen::Kind::kMemset;
    seen.bytes = bytes;
    add(seen, {}, {to}, 10);
  }

  Known know(const std::string& list = "", bool assume_reads = false) {
    mark_others();
    return know_recording(program.problem(), observation_, listed(list), assume_reads);
  }
  // Of know(), with what follows from it; its launches are those above, in order.
  testing::Iteration iteration(const std::string& list = "", bool assume_reads = false) {
    return testing::Iteration(know(list, assume_reads).problem);
  }

 private:
  std::uint32_t number(const std::string& kernel) {
    const auto found = std::find(observation_.kernels.begin(), observation_.kernels.end(), kernel);
    if (found == observation_.kernels.end()) observation_.kernels.push_back(kernel);
    return static_cast<std::uint32_t>(std::find(observation_.kernels.begin(), observation_.kernels.end(), kernel) -
                                      observation_.kernels.begin());
  }
  void add(const Seen& seen, const Blocks& reads, const Blocks& writes, double ns) {
    mark_others();
    observation_.operations.push_back(seen);
    program.launch(ns, reads, writes);
    observation_.ranks.resize(program.operations(), observation_.operations.size() - 1);
  }
  // Mallocs and frees.
  void mark_others() {
    while (observation_.ranks.size() < program.operations()) {
      observation_.ranks.push_back(observation_.operations.size());
      observation_.operations.emplace_back();
    }
  }

  Observation observation_;
};

TEST(KnowRecording, TheFirstToNameABlockMakesItAndMayChangeTheOthers) {
  Recorded recorded;
  const auto w = recorded.program.persistent(50);
  const auto x = recorded.program.allocate(100);
  const auto y = recorded.program.allocate(100);
  recorded.launch("fill", {x});
  recorded.launch("times", {y, x, w});
  recorded.program.release(x);
  recorded.program.release(y);
  const Known known = recorded.know();
  const testing::Iteration iteration(known.problem);
  ASSERT_EQ(iteration.graph.launches.size(), 2u);
  EXPECT_EQ(iteration.graph.launches[0].reads, std::vector<Use>{});
  EXPECT_EQ(iteration.graph.launches[0].writes, (std::vector<Use>{{x, 1}}));
  EXPECT_EQ(iteration.graph.launches[1].reads, (std::vector<Use>{{x, 1}, {w, 0}}));
  EXPECT_EQ(iteration.graph.launches[1].writes, (std::vector<Use>{{y, 1}, {x, 2}, {w, 1}}));
  EXPECT_EQ(iteration.graph.launches[1].ns, 10);
  EXPECT_EQ(iteration.graph.launches[1].valid_until, 0u);
  EXPECT_EQ(known.problem.blocks.size(), 3u);
  const Doubts doubts = find_doubts(known, iteration.liveness, iteration.graph);
  EXPECT_EQ(doubts.writing, 2u);
  EXPECT_EQ(doubts.replayed, 0u);  // x is not as it was made
  EXPECT_EQ(doubts.bytes, 200u);
  EXPECT_EQ(doubts.lasting_blocks, 0u);
  ASSERT_EQ(doubts.causes.size(), 1u);
  EXPECT_EQ(doubts.causes[0].doubt, Doubt::kMayChange);
  EXPECT_EQ(doubts.causes[0].kernel, 1u);
  EXPECT_EQ(doubts.causes[0].bytes, 200u);
}

TEST(KnowRecording, TheListSaysWhatOnlyReads) {
  Recorded recorded;
  const auto w = recorded.program.persistent(50);
  const auto x = recorded.program.allocate(100);
  recorded.launch("times<float>", {x, w});
  recorded.launch("times<float>", {x, w});  // makes nothing: which of them it changes is not known
  const auto y = recorded.program.allocate(100);
  recorded.launch("random", {y});
  const auto z = recorded.program.allocate(100);
  recorded.launch("plus", {z, y, x});
  for (const auto b : {x, y, z}) recorded.program.release(b);
  const auto reads_of = [&](const std::string& list, bool assume, std::size_t launch) {
    return recorded.iteration(list, assume).graph.launches[launch];
  };
  EXPECT_EQ(reads_of("times*: reads", false, 0).reads, (std::vector<Use>{{w, 0}}));
  EXPECT_EQ(reads_of("times*: reads", false, 0).writes, (std::vector<Use>{{x, 1}}));
  EXPECT_EQ(reads_of("times*: reads", false, 1).writes, (std::vector<Use>{{x, 2}, {w, 1}}));
  EXPECT_EQ(reads_of("", true, 0).writes, (std::vector<Use>{{x, 1}}));
  EXPECT_EQ(reads_of("times*: changes", true, 0).writes, (std::vector<Use>{{x, 1}, {w, 1}}));
  // By the order in which they are named.
  const Launch plus = reads_of("plus: w c r", false, 3);
  EXPECT_EQ(plus.reads, (std::vector<Use>{{y, 1}, {x, 2}}));
  EXPECT_EQ(plus.writes, (std::vector<Use>{{z, 1}, {y, 2}}));
  // Not as many: whatever the list means, it is something else.
  const Known other = recorded.know("plus: w r");
  EXPECT_EQ(testing::Iteration(other.problem).graph.launches[3].writes.size(), 3u);
  EXPECT_EQ(other.origins.back().doubt, Doubt::kNoDoubt);  // of a free
  EXPECT_EQ(other.origins[testing::Iteration(other.problem).graph.launches[3].first].doubt, Doubt::kPositions);
  EXPECT_EQ(other.rules, std::vector<std::uint64_t>{1});
  EXPECT_EQ(reads_of("plus: w c r r", false, 3).writes.size(), 3u);
  // The last one is that of all that follow, also of none.
  EXPECT_EQ(reads_of("plus: w r*", false, 3).writes, (std::vector<Use>{{z, 1}}));
  EXPECT_EQ(reads_of("plus: w r r r*", false, 3).writes, (std::vector<Use>{{z, 1}}));
  EXPECT_EQ(reads_of("plus: w r r r r*", false, 3).writes.size(), 3u);
  // What is there already may be read by the same address.
  EXPECT_EQ(reads_of("times*: w r*", false, 1).reads, (std::vector<Use>{{x, 1}, {w, 0}}));
  EXPECT_EQ(reads_of("times*: w r*", false, 1).writes, (std::vector<Use>{{x, 2}}));
  EXPECT_EQ(reads_of("times*: w r", false, 1).reads, (std::vector<Use>{{w, 0}}));
}

TEST(KnowRecording, WhatIsNeverReplayedChangesWhatIsNotSeen) {
  for (const std::string cause : {"never", "host", "elsewhere", "escaped"}) {
    Recorded recorded;
    const auto x = recorded.program.allocate(100);
    Doubt doubt = Doubt::kNoDoubt;
    if (cause == "never") {
      recorded.launch("noise", {x});
      doubt = Doubt::kNever;
    } else if (cause == "host") {
      recorded.copy(x, {}, 100);
      doubt = Doubt::kFromHost;
    } else if (cause == "elsewhere") {
      recorded.elsewhere("noise", {x});
      doubt = Doubt::kElsewhere;
    } else {
      const auto table = recorded.program.persistent(8);
      recorded.program.problem().blocks[table].pinned = true;
      recorded.launch("noise_of_table", {x, table});
      doubt = Doubt::kEscaped;
    }
    const auto y = recorded.program.allocate(10);
    recorded.launch("plus", {y, x});
    recorded.program.release(x);
    recorded.program.release(y);
    const Known known = recorded.know("plus: w r\nnoise_*: reads\nnoise: never");
    const testing::Iteration iteration(known.problem);
    EXPECT_TRUE(known.problem.blocks.back().persistent && known.problem.blocks.back().pinned) << cause;
    EXPECT_EQ(known.problem.blocks.back().bytes, 1u) << cause;
    EXPECT_EQ(iteration.graph.launches[0].valid_until, 0u) << cause;
    EXPECT_FALSE(iteration.graph.may_be_dropped(x, iteration.graph.launches[1].first)) << cause;
    EXPECT_NE(iteration.graph.launches[1].valid_until, 0u) << cause;
    const Doubts doubts = find_doubts(known, iteration.liveness, iteration.graph);
    ASSERT_FALSE(doubts.causes.empty()) << cause;
    EXPECT_EQ(doubts.causes[0].doubt, doubt) << cause;
    EXPECT_EQ(doubts.causes[0].bytes, 100u) << cause;
  }
}

// A change in place is no way around it.
TEST(KnowRecording, WhatIsChangedByWhatIsNeverReplayedIsNotMadeAgainBehindThat) {
  Recorded recorded;
  const auto x = recorded.program.allocate(100);
  recorded.memset(x, 100);
  recorded.copy(x, {}, 50);
  const auto y = recorded.program.allocate(10);
  recorded.launch("plus", {y, x});
  recorded.program.release(x);
  recorded.program.release(y);
  const testing::Iteration iteration = recorded.iteration("plus: w r");
  EXPECT_EQ(iteration.graph.makers[x], (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(iteration.graph.made_until[x], 0u);
}

TEST(KnowRecording, CopiesAndMemsetsSayWhatTheyDo) {
  Recorded recorded;
  const auto source = recorded.program.persistent(100);
  const auto kept = recorded.program.persistent(100);
  const auto x = recorded.program.allocate(100);
  recorded.copy(x, {source}, 60);  // the rest of a new block is nothing
  recorded.copy(x, {source}, 60);  // a part is changed
  recorded.copy(kept, {x}, 100);   // all of it is written anew
  recorded.memset(kept, 99);
  recorded.memset(kept, 100);
  recorded.copy(x, {}, 0);
  recorded.program.release(x);
  const Graph graph = recorded.iteration().graph;
  ASSERT_EQ(graph.launches.size(), 6u);
  EXPECT_EQ(graph.launches[0].reads, (std::vector<Use>{{source, 0}}));
  EXPECT_EQ(graph.launches[0].writes, (std::vector<Use>{{x, 1}}));
  EXPECT_EQ(graph.launches[1].reads, (std::vector<Use>{{source, 0}, {x, 1}}));
  EXPECT_EQ(graph.launches[2].reads, (std::vector<Use>{{x, 2}}));
  EXPECT_EQ(graph.launches[2].writes, (std::vector<Use>{{kept, 1}}));
  EXPECT_EQ(graph.launches[3].reads, (std::vector<Use>{{kept, 1}}));
  EXPECT_EQ(graph.launches[4].reads, std::vector<Use>{});
}

TEST(KnowRecording, WithinABlockACopyReadsWhatItWrites) {
  Recorded recorded;
  const auto x = recorded.program.allocate(100);
  recorded.memset(x, 100);
  recorded.copy(x, {x}, 100);
  recorded.program.release(x);
  // The store has one access of a block that is both.
  swap::Problem& problem = recorded.program.problem();
  const Graph graph = recorded.iteration().graph;
  EXPECT_EQ(graph.launches[1].reads, (std::vector<Use>{{x, 1}}));
  EXPECT_EQ(graph.launches[1].writes, (std::vector<Use>{{x, 2}}));
  EXPECT_EQ(problem.blocks.size(), 1u);
}

TEST(KnowRecording, AllThatLivesWhileABlindLaunchRunsStays) {
  Recorded recorded;
  const auto w = recorded.program.persistent(5);
  const auto before = recorded.program.allocate(10);
  recorded.memset(before, 10);
  const auto across = recorded.program.allocate(10);
  recorded.memset(across, 10);
  recorded.program.release(before);
  recorded.blind({});
  const auto behind = recorded.program.allocate(10);
  recorded.memset(behind, 10);
  recorded.launch("plus", {w, across, behind});
  recorded.program.release(across);
  recorded.program.release(behind);
  const Known known = recorded.know("plus: c r r");
  EXPECT_EQ(known.blind, 1u);
  EXPECT_EQ(known.kept, 2u);
  EXPECT_TRUE(known.problem.blocks[w].pinned);
  EXPECT_TRUE(known.problem.blocks[across].pinned);
  EXPECT_FALSE(known.problem.blocks[before].pinned);
  EXPECT_FALSE(known.problem.blocks[behind].pinned);
  const testing::Iteration iteration(known.problem);
  const Doubts doubts = find_doubts(known, iteration.liveness, iteration.graph);
  ASSERT_EQ(doubts.causes.size(), 1u);
  EXPECT_EQ(doubts.causes[0].doubt, Doubt::kKept);
}

TEST(KnowRecording, WhatLivesOnIntoTheNextIterationStays) {
  // Allocated in one iteration, and freed in the next, where it is seen first: by what makes it.
  swap::Problem problem;
  problem.machine = {1, 1, 0, 0};
  problem.layout = false;
  problem.limit = 0;
  problem.blocks = {{.id = 0, .bytes = 100}, {.id = 1, .bytes = 10}};
  using swap::Kind;
  problem.operations = {{Kind::kWrite, 0, 0, 1}, {Kind::kMalloc, 1, 10},  {Kind::kWrite, 0, 10, 1},
                        {Kind::kWrite, 1, 10},   {Kind::kFree, 0, 20, 1}, {Kind::kFree, 1, 20},
                        {Kind::kMalloc, 0, 20}};
  problem.operations[3].continues = true;
  problem.period = 30;
  Observation seen;
  seen.operations.resize(6);
  seen.operations[0].kind = seen.operations[2].kind = Seen::Kind::kLaunch;
  seen.ranks = {0, 1, 2, 2, 3, 4, 5};
  const Known known = know_recording(problem, seen, {}, true);
  EXPECT_EQ(known.problem.operations[0].kind, Kind::kWrite);
  EXPECT_EQ(known.problem.operations[2].kind, Kind::kRead);
  EXPECT_EQ(known.problem.operations[2].age, 1u);
  const testing::Iteration iteration(known.problem);
  EXPECT_FALSE(iteration.graph.can_be_made(0));
  const Doubts doubts = find_doubts(known, iteration.liveness, iteration.graph);
  EXPECT_EQ(doubts.blocks, 1u);
  ASSERT_EQ(doubts.causes.size(), 1u);
  EXPECT_EQ(doubts.causes[0].doubt, Doubt::kLivesOn);
}

// ---- whatever the list says that is true, launches find what they found ------------------------------------------

struct RandomProgram {
  Recorded recorded;
  std::vector<std::vector<Truth>> truths;  // by launch
  std::string list;                        // nothing in it is wrong
  bool may_assume = true;                  // launches that make a block only read the others
};

class Generator {
 public:
  explicit Generator(std::mt19937_64& random) : random_(random) {}

  RandomProgram make(int launches) {
    for (int k = 0; k < 3; ++k) {
      alive_.push_back({result_.recorded.program.persistent(20 * some(1, 3)), true, true, false});
      if (chance(20)) {
        alive_.back().escaped = true;
        result_.recorded.program.problem().blocks[alive_.back().block].pinned = true;
      }
    }
    for (int l = 0; l < launches; ++l) {
      for (std::uint64_t k = chance(4) ? 0 : some(1, 2); k > 0; --k) {
        alive_.push_back({result_.recorded.program.allocate(10 * some(1, 9)), false, false, false});
      }
      launch("k" + std::to_string(l));
      while (alive_.size() > 9 || chance(4)) release();
    }
    while (alive_.size() > 3) release();
    return std::move(result_);
  }

 private:
  struct Alive {
    std::uint32_t block;
    bool named, written;
    bool escaped;  // may be touched by launches that don't name it, but another that escaped
  };

  bool chance(std::uint64_t one_in) { return random_() % one_in == 0; }
  std::uint64_t some(std::uint64_t from, std::uint64_t to) { return from + random_() % (to - from + 1); }

  void release() {
    if (alive_.size() == 3) return;
    const std::size_t k = 3 + random_() % (alive_.size() - 3);
    result_.recorded.program.release(alive_[k].block);
    alive_.erase(alive_.begin() + static_cast<std::ptrdiff_t>(k));
  }

  void launch(const std::string& kernel) {
    std::vector<std::size_t> named;
    for (std::size_t k = 0; k < alive_.size(); ++k) {
      if (alive_[k].named ? chance(4) : !chance(5)) named.push_back(k);
    }
    std::shuffle(named.begin(), named.end(), random_);
    const std::uint64_t kind = random_() % 24;
    if (kind == 2 && !named.empty()) {
      Alive& to = alive_[named.front()];
      to.named = to.written = true;
      result_.recorded.copy(to.block, {}, 1000);
      result_.truths.push_back({Truth{{}, {to.block}, true}});
      return;
    }
    Truth truth;
    // By a table of addresses that is one of those that it names: the recorder does not see that.
    const bool by_table = std::any_of(named.begin(), named.end(), [&](std::size_t k) { return alive_[k].escaped; });
    for (const Alive& one : alive_) {
      if (by_table && one.escaped && chance(2)) truth.writes.push_back(one.block);
    }
    Blocks blocks;
    std::string roles;
    bool makes = false, changes_older = false;
    for (const std::size_t k : named) {
      Alive& one = alive_[k];
      const bool reads = one.written && chance(2);
      const bool writes = one.named ? chance(12) : !chance(8);
      if (reads) truth.reads.push_back(one.block);
      if (writes) truth.writes.push_back(one.block);
      makes = makes || !one.named;
      changes_older = changes_older || (one.named && writes);
      // Less may be known than is true.
      roles += writes ? (reads || chance(3) ? " c" : " w") : chance(12) ? " c" : " r";
      one.written = one.written || writes;
      one.named = true;
      blocks.push_back(one.block);
    }
    if (kind == 0) {  // it may do anything
      truth.varies = true;
      for (Alive& one : alive_) {
        if (one.written && chance(2)) truth.reads.push_back(one.block);
        if (one.written && chance(2)) truth.writes.push_back(one.block);
      }
      result_.recorded.blind(blocks);
    } else if (kind == 1) {
      truth.varies = true;
      result_.recorded.elsewhere(kernel, blocks);
      if (makes && changes_older) result_.may_assume = false;
    } else {
      truth.varies = kind == 3;
      result_.recorded.launch(kernel, blocks, static_cast<double>(some(1, 20)));
      std::string use;
      if (truth.varies || chance(20)) {
        use = " never";
      } else if ((!makes || !changes_older) && chance(2)) {
        use = " reads";
      } else if (!chance(4) && !roles.empty()) {
        use = roles;
        // What is said of the last may be of more, and of fewer.
        while (use.size() >= 4 && use.ends_with(use.substr(use.size() - 4, 2)) && chance(2)) use.resize(use.size() - 2);
        if (use.size() < roles.size() || chance(4)) use += '*';
      }
      if (!use.empty()) result_.list += kernel + ":" + use + "\n";
      if (use.empty() && makes && changes_older) result_.may_assume = false;
    }
    result_.truths.push_back({truth});
  }

  std::mt19937_64& random_;
  RandomProgram result_;
  std::vector<Alive> alive_;  // the first three persist
};

struct Tried {
  std::uint64_t replays = 0, wrong = 0;
};

void try_plans(const testing::Iteration& iteration, const std::vector<std::vector<Truth>>& truths, Tried& tried) {
  Contents contents(iteration.problem, iteration.graph, truths);
  const auto expected = contents.found({});
  for (const Heuristic heuristic : {Heuristic::kDtr, Heuristic::kLru}) {
    for (const std::uint64_t percent : {50, 65, 80, 95}) {
      const auto policy = make_dtr(iteration.problem, iteration.graph, heuristic);
      const auto steps = run_online(iteration.problem, iteration.liveness, iteration.graph,
                                    iteration.liveness.peak * percent / 100, *policy, 1e6);
      if (!steps) continue;
      const auto cost = iteration.cost(steps);
      ASSERT_EQ(cost->fault, std::nullopt);
      tried.replays += cost->replays;
      tried.wrong += contents.found(*steps) != expected ? 1 : 0;
    }
  }
}

TEST(KnowRecording, LaunchesFindWhatTheyFoundWhateverOfTheTruthIsListed) {
  std::mt19937_64 random(11);
  Tried tried;
  std::uint64_t assumed = 0;
  const int programs = layout::kSanitized ? 400 : 2000;
  for (int k = 0; k < programs; ++k) {
    RandomProgram program = Generator(random).make(6 + k % 12);
    const bool assume = program.may_assume && k % 2 == 0;
    assumed += assume ? 1 : 0;
    const testing::Iteration iteration = program.recorded.iteration(program.list, assume);
    ASSERT_EQ(iteration.graph.launches.size(), program.truths.size());
    try_plans(iteration, program.truths, tried);
    ASSERT_EQ(tried.wrong, 0u) << k << "\n" << program.list;
  }
  EXPECT_GT(tried.replays, static_cast<std::uint64_t>(programs) / 10);
  EXPECT_GT(assumed, static_cast<std::uint64_t>(programs) / 20);
}

// So that the test above can fail.
TEST(KnowRecording, AListThatIsWrongShows) {
  std::mt19937_64 random(13);
  Tried tried;
  for (int k = 0; k < 600; ++k) {
    RandomProgram program = Generator(random).make(6 + k % 12);
    try_plans(program.recorded.iteration("*: reads"), program.truths, tried);
  }
  EXPECT_GT(tried.replays, 100u);
  EXPECT_GT(tried.wrong, 10u);
}

}  // namespace
}  // namespace memopt::recompute
