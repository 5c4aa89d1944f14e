// Frameworks that keep device memory in a pool of their own, and the settings that make them leave it off, so that each
// allocation reaches the driver. Plain data and one rule; the agent's start, memoptctl's run, frameworks and doctor,
// and docs/frameworks.md derive from it.
//
// A setting that the user has made is never changed: a variable is only added, or gets one more item in its list.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shm/options.h"

namespace memopt::shm {

// Does the arena serve stream-ordered allocations (cuMemAllocAsync)? Else frameworks are told to use plain ones where
// they can.
inline constexpr bool kServesStreamOrdered = true;

// By which calls a framework is to allocate.
enum class Route {
  kNone,           // as it likes: the environment stays as it is
  kStreamOrdered,  // cudaMallocAsync: with the stream, legal while a graph is captured
  kPlain,          // cudaMalloc
};

// As the option has it.
constexpr std::string_view to_string(Route route) {
  return route == Route::kStreamOrdered ? "async" : route == Route::kPlain ? "plain" : "";
}

// What MEMOPT_FRAMEWORK_ENV means.
constexpr Route framework_route(std::string_view option) {
  if (option == "off") return Route::kNone;
  if (option == "async") return Route::kStreamOrdered;
  if (option == "plain") return Route::kPlain;
  return kServesStreamOrdered ? Route::kStreamOrdered : Route::kPlain;
}

enum class Sureness { kSeenOnGpu, kSeenSimulated, kRead, kUnverified };

constexpr std::string_view to_string(Sureness sureness) {
  switch (sureness) {
    case Sureness::kSeenOnGpu:
      return "seen on a GPU";
    case Sureness::kSeenSimulated:
      return "seen (simulated)";
    case Sureness::kRead:
      return "read";
    case Sureness::kUnverified:
      return "unverified";
  }
  return "unknown";
}

struct Framework {
  std::string_view name;
  std::string_view library;    // in the path of a loaded file that only this framework has; empty: not known
  bool pools;                  // keeps memory in a pool unless told otherwise
  std::string_view by_hand;    // what the user has to do where no variable does it; empty: nothing
  std::string_view cost;       // of the setting, without memopt
  std::string_view invisible;  // what stays out of sight all the same
  Sureness sureness;
};

// Position in kFrameworks.
enum class FrameworkId : std::size_t {
  kPyTorch,
  kJax,
  kTensorFlow,
  kCuPy,
  kOnnxRuntime,
  kTensorRt,
  kGgml,
  kNumba,
  kRmm
};

inline constexpr std::array<Framework, 9> kFrameworks{{
    {"PyTorch", "/libc10_cuda.so", true, "",
     "plain: each tensor is a cudaMalloc and a cudaFree, which waits for the device (a small ResNet: forward 5.5 to 16 "
     "ms, backward 11 to 60 ms); out of memory is no longer retried, statistics are zero, capturing graphs fails. "
     "async: little; tensors can't be shared between processes",
     "cuBLAS and cuDNN handles, modules, local memory; before 2.5 some workspaces with plain",
     Sureness::kSeenSimulated},
    {"JAX", "/xla_cuda_plugin.so", true, "",
     "each buffer is a cuMemAlloc and a cuMemFree; JAX's own pages call it very slow",
     "temporaries of one executable are one buffer", Sureness::kRead},
    {"TensorFlow", "/libtensorflow_framework.so", true, "",
     "async: little. plain: each tensor is a cudaMalloc; meant for debugging", "cuDNN and cuBLAS handles",
     Sureness::kRead},
    {"CuPy", "/cupy/cuda/memory.", true,
     "no variable does it (CUPY_GPU_MEMORY_LIMIT only bounds the pool): call cupy.cuda.set_allocator(None) first",
     "each array is a cudaMalloc and a cudaFree", "handles and plans of cuBLAS, cuFFT", Sureness::kRead},
    {"ONNX Runtime", "/libonnxruntime_providers_cuda.so", true,
     "a provider option, not a variable: arena_extend_strategy=kSameAsRequested keeps the arena small, but it stays",
     "", "what the arena does inside its blocks", Sureness::kUnverified},
    {"TensorRT", "/libnvinfer.so", true, "nothing: one arena for the activations of each context", "",
     "what lies inside that arena", Sureness::kUnverified},
    {"llama.cpp", "/libggml-cuda.so", true, "nothing: one block for each buffer, and a pool of its own on top of VMM",
     "", "what lies inside its buffers", Sureness::kUnverified},
    {"Numba", "", false, "", "", "", Sureness::kUnverified},
    {"RMM, cuDF", "/librmm.so", false, "leave its default, cudaMalloc; do not ask for a pool", "", "",
     Sureness::kUnverified},
}};

constexpr const Framework& framework(FrameworkId id) { return kFrameworks[static_cast<std::size_t>(id)]; }

enum class Merge {
  kAdd,     // if it is unset
  kAppend,  // one more item of the comma-separated list
};

struct FrameworkRecipe {
  FrameworkId framework;
  Route route;
  std::string_view variable;
  std::string_view value;
  Merge merge;
  std::string_view hides;  // a variable that would no longer be read: if that one is set, this one is not added
};

inline constexpr std::array<FrameworkRecipe, 7> kFrameworkRecipes{{
    // Newer versions read the first name, and the second only without it; older ones know the second alone.
    {FrameworkId::kPyTorch, Route::kStreamOrdered, "PYTORCH_ALLOC_CONF", "backend:cudaMallocAsync", Merge::kAppend,
     "PYTORCH_CUDA_ALLOC_CONF"},
    {FrameworkId::kPyTorch, Route::kStreamOrdered, "PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync", Merge::kAppend,
     ""},
    {FrameworkId::kPyTorch, Route::kPlain, "PYTORCH_NO_CUDA_MEMORY_CACHING", "1", Merge::kAdd, ""},
    {FrameworkId::kJax, Route::kStreamOrdered, "XLA_PYTHON_CLIENT_ALLOCATOR", "platform", Merge::kAdd, ""},
    {FrameworkId::kJax, Route::kPlain, "XLA_PYTHON_CLIENT_ALLOCATOR", "platform", Merge::kAdd, ""},
    {FrameworkId::kTensorFlow, Route::kStreamOrdered, "TF_GPU_ALLOCATOR", "cuda_malloc_async", Merge::kAdd, ""},
    {FrameworkId::kTensorFlow, Route::kPlain, "TF_GPU_ALLOCATOR", "cuda_malloc", Merge::kAdd, ""},
}};

// What the user may have chosen, and what it means; the first that fits counts, and the framework is left alone.
struct FrameworkChoice {
  enum class Fits { kItem, kItemWithAnyValue, kValue, kValueInAnyCase, kAnyValue };

  FrameworkId framework;
  std::string_view variable;
  Fits fits;
  std::string_view value;
  Route route;  // by which allocations reach the driver one by one; kNone: they do not
  std::string_view meaning;

  constexpr bool visible() const { return route != Route::kNone; }
};

inline constexpr std::array<FrameworkChoice, 14> kFrameworkChoices{{
    {FrameworkId::kPyTorch, "PYTORCH_NO_CUDA_MEMORY_CACHING", FrameworkChoice::Fits::kValue, "1", Route::kPlain,
     "no caching"},
    {FrameworkId::kPyTorch, "PYTORCH_NO_CUDA_MEMORY_CACHING", FrameworkChoice::Fits::kAnyValue, "", Route::kNone,
     "newer versions take 1 only for no caching, older ones any value"},
    {FrameworkId::kPyTorch, "PYTORCH_ALLOC_CONF", FrameworkChoice::Fits::kItem, "backend:cudaMallocAsync",
     Route::kStreamOrdered, "stream-ordered allocation"},
    {FrameworkId::kPyTorch, "PYTORCH_ALLOC_CONF", FrameworkChoice::Fits::kItemWithAnyValue, "backend", Route::kNone,
     "its caching allocator is on"},
    {FrameworkId::kPyTorch, "PYTORCH_ALLOC_CONF", FrameworkChoice::Fits::kItem, "expandable_segments:True",
     Route::kNone, "its caching allocator is on, with expandable segments"},
    {FrameworkId::kPyTorch, "PYTORCH_CUDA_ALLOC_CONF", FrameworkChoice::Fits::kItem, "backend:cudaMallocAsync",
     Route::kStreamOrdered, "stream-ordered allocation"},
    {FrameworkId::kPyTorch, "PYTORCH_CUDA_ALLOC_CONF", FrameworkChoice::Fits::kItemWithAnyValue, "backend",
     Route::kNone, "its caching allocator is on"},
    {FrameworkId::kPyTorch, "PYTORCH_CUDA_ALLOC_CONF", FrameworkChoice::Fits::kItem, "expandable_segments:True",
     Route::kNone, "its caching allocator is on, with expandable segments"},
    {FrameworkId::kJax, "XLA_PYTHON_CLIENT_ALLOCATOR", FrameworkChoice::Fits::kValueInAnyCase, "platform",
     Route::kPlain, "plain allocation"},
    {FrameworkId::kJax, "XLA_PYTHON_CLIENT_ALLOCATOR", FrameworkChoice::Fits::kValueInAnyCase, "cuda_async",
     Route::kStreamOrdered, "stream-ordered allocation"},
    {FrameworkId::kJax, "XLA_PYTHON_CLIENT_ALLOCATOR", FrameworkChoice::Fits::kAnyValue, "", Route::kNone,
     "its pool is on"},
    {FrameworkId::kTensorFlow, "TF_GPU_ALLOCATOR", FrameworkChoice::Fits::kValue, "cuda_malloc_async",
     Route::kStreamOrdered, "stream-ordered allocation"},
    {FrameworkId::kTensorFlow, "TF_GPU_ALLOCATOR", FrameworkChoice::Fits::kValue, "cuda_malloc", Route::kPlain,
     "plain allocation"},
    {FrameworkId::kTensorFlow, "TF_GPU_ALLOCATOR", FrameworkChoice::Fits::kAnyValue, "", Route::kNone,
     "its pool is on"},
}};

// Frameworks that memopt has set, by name, separated by commas: so that a child process knows who did it. Beside the
// settings in the environment; not an option.
inline constexpr std::string_view kFrameworkMark = "_MEMOPT_FRAMEWORKS";

// ---- the rule

inline std::optional<std::string_view> environment_value(const char* const* environment, std::string_view name) {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name)) {
      return entry.substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

namespace framework_detail {

// The items of a list such as "a:1,b:[256:1,512:2]", without blanks.
inline std::vector<std::string> items(std::string_view list) {
  std::vector<std::string> found(1);
  int depth = 0;
  for (const char letter : list) {
    if (letter == ' ' || letter == '\t' || letter == '\n') continue;
    depth += letter == '[' ? 1 : letter == ']' ? -1 : 0;
    if (letter == ',' && depth <= 0) {
      found.emplace_back();
    } else {
      found.back() += letter;
    }
  }
  std::erase(found, "");
  return found;
}

inline bool same_in_any_case(std::string_view a, std::string_view b) {
  const auto lower = [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

inline bool fits(const FrameworkChoice& choice, std::string_view value) {
  switch (choice.fits) {
    case FrameworkChoice::Fits::kItem:
    case FrameworkChoice::Fits::kItemWithAnyValue: {
      const bool any = choice.fits == FrameworkChoice::Fits::kItemWithAnyValue;
      const std::vector<std::string> all = items(value);
      return std::any_of(all.begin(), all.end(), [&](const std::string& item) {
        return any ? std::string_view(item).substr(0, item.find(':')) == choice.value : item == choice.value;
      });
    }
    case FrameworkChoice::Fits::kValue:
      return value == choice.value;
    case FrameworkChoice::Fits::kValueInAnyCase:
      return same_in_any_case(value, choice.value);
    case FrameworkChoice::Fits::kAnyValue:
      return true;
  }
  return false;
}

// `list` with one more item; what is there stays as it is, but for a comma at its end.
inline std::string append(std::string_view list, std::string_view item) {
  const std::size_t last = list.find_last_not_of(" ,\t\n");
  std::string merged(list.substr(0, last == std::string_view::npos ? 0 : last + 1));
  if (!merged.empty()) merged += ',';
  return merged.append(item);
}

}  // namespace framework_detail

struct FrameworkSetting {
  std::string_view variable;
  std::string value;
};

// What is to be done for one framework, or why nothing.
struct FrameworkOutcome {
  FrameworkId framework;
  std::vector<FrameworkSetting> settings;   // to be made; empty: none
  const FrameworkChoice* choice = nullptr;  // made by the user, or by memopt in a process above (by_memopt)
  std::string chosen;                       // "NAME=value"
  bool by_memopt = false;                   // `choice` was
  bool has_recipe = false;
};

inline bool is_marked(const char* const* environment, std::string_view name) {
  const std::vector<std::string> marked =
      framework_detail::items(environment_value(environment, kFrameworkMark).value_or(std::string_view()));
  return std::find(marked.begin(), marked.end(), name) != marked.end();
}

// May throw std::bad_alloc.
inline FrameworkOutcome framework_outcome(FrameworkId id, Route route, const char* const* environment) {
  FrameworkOutcome outcome{};
  outcome.framework = id;
  for (const FrameworkChoice& choice : kFrameworkChoices) {
    if (choice.framework != id) continue;
    const auto value = environment_value(environment, choice.variable);
    if (!value || !framework_detail::fits(choice, *value)) continue;
    outcome.choice = &choice;
    outcome.chosen = std::string(choice.variable) + "=" + std::string(*value);
    outcome.by_memopt = choice.visible() && is_marked(environment, framework(id).name);
    outcome.has_recipe = true;
    return outcome;
  }
  for (const FrameworkRecipe& recipe : kFrameworkRecipes) {
    if (recipe.framework != id) continue;
    outcome.has_recipe = true;
    if (recipe.route != route) continue;
    const auto present = environment_value(environment, recipe.variable);
    if (!present && !recipe.hides.empty() && environment_value(environment, recipe.hides)) continue;
    if (present && recipe.merge == Merge::kAdd) continue;
    outcome.settings.push_back({recipe.variable, recipe.merge == Merge::kAppend
                                                     ? framework_detail::append(present.value_or(""), recipe.value)
                                                     : std::string(recipe.value)});
  }
  return outcome;
}

// The route that these options ask for, as they stand in an environment; kNone where memopt leaves the program alone.
inline Route framework_route_of(const char* const* environment) {
  const auto value = [environment](OptionId id) {
    const Option& wanted = option(id);
    const auto found = environment_value(environment, wanted.name);
    return found && wanted.accepts(*found) ? *found : wanted.default_value;
  };
  const bool planned = value(OptionId::kPlan) == "1" || value(OptionId::kRecord) == "1";
  if (value(OptionId::kDisable) == "1" || !planned) return Route::kNone;
  return framework_route(value(OptionId::kFrameworkEnv));
}

// All settings to be made in this environment, the mark included if there is any. May throw std::bad_alloc.
inline std::vector<FrameworkSetting> framework_settings(Route route, const char* const* environment) {
  std::vector<FrameworkSetting> all;
  if (route == Route::kNone) return all;
  std::string mark(environment_value(environment, kFrameworkMark).value_or(std::string_view()));
  for (std::size_t i = 0; i < kFrameworks.size(); ++i) {
    FrameworkOutcome outcome = framework_outcome(static_cast<FrameworkId>(i), route, environment);
    if (outcome.settings.empty()) continue;
    if (!is_marked(environment, kFrameworks[i].name)) mark = framework_detail::append(mark, kFrameworks[i].name);
    for (FrameworkSetting& setting : outcome.settings) all.push_back(std::move(setting));
  }
  if (!all.empty()) all.push_back({kFrameworkMark, std::move(mark)});
  return all;
}

// "backend:cudaMallocAsync" for a list, "NAME=value" for the rest: how a setting is shown to people.
inline std::string shown(const FrameworkRecipe& recipe) {
  return recipe.merge == Merge::kAppend ? std::string(recipe.value)
                                        : std::string(recipe.variable) + "=" + std::string(recipe.value);
}

}  // namespace memopt::shm
