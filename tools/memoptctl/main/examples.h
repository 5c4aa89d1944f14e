// Lines to begin with, which --help of each command ends with.
#pragma once

#include <CLI/CLI.hpp>

namespace memopt::tools {

// To the help of memoptctl and of each of its commands. To be called when all of them are there.
void add_examples(CLI::App& app);

}  // namespace memopt::tools
