#include "shm/frameworks.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace memopt::shm {
namespace {

using Variables = std::map<std::string, std::string>;

// The array form of an environment.
class Environment {
 public:
  explicit Environment(const Variables& variables) {
    for (const auto& [name, value] : variables) entries_.push_back(name + "=" + value);
    for (const std::string& entry : entries_) pointers_.push_back(entry.c_str());
    pointers_.push_back(nullptr);
  }
  const char* const* get() const { return pointers_.data(); }

 private:
  std::vector<std::string> entries_;
  std::vector<const char*> pointers_;
};

Variables set_in(const Variables& variables, Route route) {
  const Environment environment(variables);
  Variables made;
  for (const FrameworkSetting& setting : framework_settings(route, environment.get())) {
    EXPECT_TRUE(made.emplace(setting.variable, setting.value).second) << setting.variable << " twice";
  }
  return made;
}

// Only what concerns PyTorch.
Variables pytorch(const Variables& variables, Route route = Route::kStreamOrdered) {
  Variables made = set_in(variables, route);
  std::erase_if(made, [](const auto& entry) { return !entry.first.starts_with("PYTORCH"); });
  return made;
}

constexpr const char* kNew = "PYTORCH_ALLOC_CONF";
constexpr const char* kOld = "PYTORCH_CUDA_ALLOC_CONF";
constexpr const char* kAsync = "backend:cudaMallocAsync";

TEST(Frameworks, NothingSetMeansBothNamesOfPyTorchsList) {
  EXPECT_EQ(pytorch({}), (Variables{{kNew, kAsync}, {kOld, kAsync}}));
  EXPECT_EQ(pytorch({}, Route::kPlain), (Variables{{"PYTORCH_NO_CUDA_MEMORY_CACHING", "1"}}));
}

TEST(Frameworks, AnItemIsAppendedToWhatTheUserHasSet) {
  // The newer name is read alone where it is set: adding it would hide the user's list.
  EXPECT_EQ(pytorch({{kOld, "max_split_size_mb:128"}}),
            (Variables{{kOld, "max_split_size_mb:128,backend:cudaMallocAsync"}}));
  EXPECT_EQ(pytorch({{kNew, "roundup_power2_divisions:[256:1,512:2]"}}),
            (Variables{{kNew, "roundup_power2_divisions:[256:1,512:2],backend:cudaMallocAsync"}, {kOld, kAsync}}));
  EXPECT_EQ(pytorch({{kNew, "a:1, "}, {kOld, ""}}), (Variables{{kNew, "a:1,backend:cudaMallocAsync"}, {kOld, kAsync}}));
  EXPECT_EQ(pytorch({{kOld, "expandable_segments:False"}}),
            (Variables{{kOld, "expandable_segments:False,backend:cudaMallocAsync"}}));
}

TEST(Frameworks, WhatTheUserHasChosenStays) {
  for (const Variables& chosen : std::vector<Variables>{{{kOld, "backend:native"}},
                                                        {{kNew, "a:1, backend : native"}},
                                                        {{kNew, "backend:cudaMallocAsync"}},
                                                        {{kOld, "expandable_segments:True"}},
                                                        {{kNew, "a:1"}, {kOld, "backend:native"}},
                                                        {{"PYTORCH_NO_CUDA_MEMORY_CACHING", "1"}},
                                                        {{"PYTORCH_NO_CUDA_MEMORY_CACHING", ""}}}) {
    for (const Route route : {Route::kStreamOrdered, Route::kPlain}) {
      EXPECT_EQ(pytorch(chosen, route), Variables{}) << chosen.begin()->first << "=" << chosen.begin()->second;
    }
  }
}

TEST(Frameworks, AnItemInsideBracketsIsNone) {
  EXPECT_EQ(pytorch({{kOld, "x:[backend:native]"}}), (Variables{{kOld, "x:[backend:native],backend:cudaMallocAsync"}}));
}

TEST(Frameworks, OneValueIsAddedOrLeft) {
  Variables made = set_in({{"TF_GPU_ALLOCATOR", "memory_guard"}}, Route::kStreamOrdered);
  EXPECT_EQ(made["XLA_PYTHON_CLIENT_ALLOCATOR"], "platform");
  EXPECT_EQ(made.count("TF_GPU_ALLOCATOR"), 0u);
  EXPECT_EQ(made[std::string(kFrameworkMark)], "PyTorch,JAX");
  EXPECT_EQ(set_in({}, Route::kStreamOrdered)["TF_GPU_ALLOCATOR"], "cuda_malloc_async");
  EXPECT_EQ(set_in({}, Route::kPlain)["TF_GPU_ALLOCATOR"], "cuda_malloc");
}

TEST(Frameworks, ASecondTimeNothingChanges) {
  for (const Route route : {Route::kStreamOrdered, Route::kPlain}) {
    const Variables made = set_in({{kOld, "a:1"}}, route);
    Variables after = {{kOld, "a:1"}};
    for (const auto& [name, value] : made) after[name] = value;
    for (const Route again : {Route::kStreamOrdered, Route::kPlain}) EXPECT_EQ(set_in(after, again), Variables{});
  }
}

TEST(Frameworks, WhoSetItIsKnown) {
  const Environment ours(Variables{{kOld, kAsync}, {std::string(kFrameworkMark), "JAX,PyTorch"}});
  EXPECT_TRUE(framework_outcome(FrameworkId::kPyTorch, Route::kPlain, ours.get()).by_memopt);
  const Environment theirs(Variables{{kOld, kAsync}, {std::string(kFrameworkMark), "JAX"}});
  const FrameworkOutcome outcome = framework_outcome(FrameworkId::kPyTorch, Route::kPlain, theirs.get());
  EXPECT_FALSE(outcome.by_memopt);
  ASSERT_NE(outcome.choice, nullptr);
  EXPECT_TRUE(outcome.choice->visible());
  EXPECT_EQ(outcome.chosen, "PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync");
}

TEST(Frameworks, OptionsDecide) {
  const auto route = [](const Variables& variables) { return framework_route_of(Environment(variables).get()); };
  const Route automatic = kServesStreamOrdered ? Route::kStreamOrdered : Route::kPlain;
  EXPECT_EQ(route({}), automatic);
  EXPECT_EQ(route({{"MEMOPT_FRAMEWORK_ENV", "bogus"}}), automatic);
  EXPECT_EQ(route({{"MEMOPT_FRAMEWORK_ENV", "async"}}), Route::kStreamOrdered);
  EXPECT_EQ(route({{"MEMOPT_FRAMEWORK_ENV", "plain"}}), Route::kPlain);
  EXPECT_EQ(route({{"MEMOPT_FRAMEWORK_ENV", "off"}}), Route::kNone);
  EXPECT_EQ(route({{"MEMOPT_DISABLE", "1"}}), Route::kNone);
  EXPECT_EQ(route({{"MEMOPT_PLAN", "0"}}), Route::kNone);
  EXPECT_EQ(route({{"MEMOPT_PLAN", "0"}, {"MEMOPT_RECORD", "1"}}), automatic);
  EXPECT_EQ(framework_route_of(nullptr), automatic);
}

TEST(Frameworks, TheTablesAgree) {
  for (const FrameworkRecipe& recipe : kFrameworkRecipes) {
    // What a recipe sets must be found as a choice that is seen one by one, or a child would do it again.
    const Environment environment(Variables{{std::string(recipe.variable), std::string(recipe.value)}});
    const FrameworkOutcome outcome = framework_outcome(recipe.framework, recipe.route, environment.get());
    ASSERT_NE(outcome.choice, nullptr) << recipe.variable;
    EXPECT_TRUE(outcome.choice->visible()) << recipe.variable;
  }
}

}  // namespace
}  // namespace memopt::shm
