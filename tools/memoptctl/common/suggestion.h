// What may have been meant by a name that is none.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace memopt::tools {

// Letters to insert, leave out, replace, or swap with their neighbour, to make one of the other (the optimal string
// alignment distance, a restricted form of Damerau's).
std::size_t edit_distance(std::string_view a, std::string_view b);

// The nearest of the names, the first of several; empty where none is near: a third of its letters wrong at most.
std::string nearest(std::string_view name, const std::vector<std::string>& names);

// What is said behind a name that is none: ", did you mean NAME?", or nothing.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& names);

}  // namespace memopt::tools
