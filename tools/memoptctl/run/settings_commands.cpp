#include "tools/memoptctl/run/settings_commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

#include "shm/frameworks.h"
#include "shm/options.h"
#include "tools/memoptctl/common/printable.h"

namespace memopt::tools {
namespace {

std::string_view or_dash(std::string_view text) { return text.empty() ? "-" : text; }

// What a route sets, as a person would write it.
std::string setting_of(shm::FrameworkId id, shm::Route route) {
  std::string text;
  for (const shm::FrameworkRecipe& recipe : shm::kFrameworkRecipes) {
    if (recipe.framework != id || recipe.route != route) continue;
    text += fmt::format("{}`{}{}{}`", text.empty() ? "" : ", ", recipe.variable,
                        recipe.merge == shm::Merge::kAppend ? "+=" : "=", recipe.value);
  }
  return text;
}

std::string_view fits_text(const shm::FrameworkChoice& choice) {
  switch (choice.fits) {
    case shm::FrameworkChoice::Fits::kItem:
      return "has the item ";
    case shm::FrameworkChoice::Fits::kItemWithAnyValue:
      return "has another item ";
    case shm::FrameworkChoice::Fits::kValue:
    case shm::FrameworkChoice::Fits::kValueInAnyCase:
      return "is ";
    case shm::FrameworkChoice::Fits::kAnyValue:
      return "is anything else";
  }
  return "";
}

void print_markdown() {
  fmt::print("| framework | `plain` | `async` | how sure |\n|---|---|---|---|\n");
  for (std::size_t i = 0; i < shm::kFrameworks.size(); ++i) {
    const shm::Framework& framework = shm::kFrameworks[i];
    const auto id = static_cast<shm::FrameworkId>(i);
    const std::string plain = setting_of(id, shm::Route::kPlain);
    const std::string async = setting_of(id, shm::Route::kStreamOrdered);
    const std::string_view none = framework.pools ? "nothing to set" : "no pool by default";
    fmt::print("| {} | {} | {} | {} |\n", framework.name, plain.empty() ? none : plain, async.empty() ? none : async,
               shm::to_string(framework.sureness));
  }
  fmt::print("\n`auto` is `{}` in this version.\n",
             shm::framework_route("auto") == shm::Route::kStreamOrdered ? "async" : "plain");
  fmt::print("\n| framework | what the setting costs without memopt | what stays out of sight | by hand |\n");
  fmt::print("|---|---|---|---|\n");
  for (const shm::Framework& framework : shm::kFrameworks) {
    fmt::print("| {} | {} | {} | {} |\n", framework.name, or_dash(framework.cost), or_dash(framework.invisible),
               or_dash(framework.by_hand));
  }
  fmt::print("\n| framework | left alone if | which means | allocations are seen one by one |\n|---|---|---|---|\n");
  for (const shm::FrameworkChoice& choice : shm::kFrameworkChoices) {
    fmt::print("| {} | `{}` {}{} | {} | {} |\n", shm::framework(choice.framework).name, choice.variable,
               fits_text(choice), choice.value.empty() ? "" : fmt::format("`{}`", choice.value), choice.meaning,
               choice.visible() ? "yes" : "no");
  }
}

// What would happen to a program that is started now, from here.
void print_here() {
  const shm::Route route = shm::framework_route_of(environ);
  if (route == shm::Route::kNone) {
    fmt::print("memopt leaves the environment alone: {}\n",
               "MEMOPT_FRAMEWORK_ENV=off, MEMOPT_PLAN=0 or MEMOPT_DISABLE=1 is set");
  }
  for (std::size_t i = 0; i < shm::kFrameworks.size(); ++i) {
    const shm::Framework& framework = shm::kFrameworks[i];
    const shm::FrameworkOutcome outcome = shm::framework_outcome(static_cast<shm::FrameworkId>(i), route, environ);
    std::string text;
    if (outcome.choice != nullptr) {
      text =
          fmt::format("left alone: {} is set ({}); allocations are {}", printable(outcome.chosen),
                      outcome.choice->meaning, outcome.choice->visible() ? "seen one by one" : "not seen one by one");
    } else if (!outcome.settings.empty()) {
      for (const shm::FrameworkSetting& setting : outcome.settings) {
        text += fmt::format("{}{}={}", text.empty() ? "sets " : ", ", setting.variable, printable(setting.value));
      }
    } else if (outcome.has_recipe) {
      text = "nothing is set; its pool stays on";
    } else {
      text = framework.by_hand.empty() ? "no pool by default" : std::string(framework.by_hand);
    }
    fmt::print("{:<13} {}\n", framework.name, text);
  }
}

}  // namespace

int options(bool markdown) {
  if (markdown) {
    fmt::print("| variable | in memopt.toml | values | default | meaning |\n|---|---|---|---|---|\n");
    for (const shm::Option& option : shm::kOptions) {
      const std::string key = option.files == shm::InFiles::kNone ? "no" : fmt::format("`{}`", shm::config_key(option));
      fmt::print("| `{}`{} | {}{} | {} | {} | {} |\n", option.name,
                 option.flag.empty() ? "" : fmt::format(", `{}`", option.flag), key,
                 option.files == shm::InFiles::kUsers ? ", the user's" : "", option.values,
                 option.default_value.empty() ? "none" : fmt::format("`{}`", option.default_value), option.help);
    }
    return 0;
  }
  std::size_t name_width = 0;
  for (const shm::Option& option : shm::kOptions) name_width = std::max(name_width, option.name.size());
  for (const shm::Option& option : shm::kOptions) {
    fmt::print("{:{}}  {}\n{:{}}  {}; default: {}\n", option.name, name_width, option.help, "", name_width,
               option.values, option.default_value.empty() ? "none" : option.default_value);
  }
  return 0;
}

int frameworks(bool markdown) {
  if (markdown) {
    print_markdown();
  } else {
    print_here();
  }
  return 0;
}

}  // namespace memopt::tools
