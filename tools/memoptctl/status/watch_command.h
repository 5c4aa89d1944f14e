// `memoptctl status --watch`: the table again and again, one below the other, so that it can go through a pipe or into
// a file. `memoptctl top` is for looking at.
#pragma once

#include "tools/memoptctl/status/status_command.h"

namespace memopt::tools {

inline constexpr double kUsualWatch = 2;  // seconds, where none are given

// Looks every `options.watch` seconds until it is interrupted, its reader goes away, or, with a pid, that process has
// ended: 0 then. With a pid that was never there: kExitNone. As JSON, one object a line.
int watch(const StatusOptions& options);

}  // namespace memopt::tools
