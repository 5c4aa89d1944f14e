// `memoptctl options`: the one table of environment variables, for people and for the documentation.
#pragma once

namespace memopt::tools {

int options(bool markdown);

}  // namespace memopt::tools
