// `memoptctl options` and `memoptctl frameworks`: what can be set for memopt, and what memopt sets for frameworks; for
// people, and as the tables of the documentation.
#pragma once

namespace memopt::tools {

// The one table of environment variables.
int options(bool markdown);

int frameworks(bool markdown);

}  // namespace memopt::tools
