// `memoptctl top`: a full screen of the processes under memopt, until it is left.
#pragma once

namespace memopt::tools {

struct TopOptions {
  double interval = 2;  // seconds between two samples
};

inline constexpr double kLeastInterval = 0.1, kMostInterval = 3600;

// 0 when it was left; 1 with a sentence on standard error where there is no terminal for it.
int top(const TopOptions& options);

}  // namespace memopt::tools
