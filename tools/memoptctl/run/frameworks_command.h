// `memoptctl frameworks`: what memopt sets for which framework, for people and for the documentation.
#pragma once

namespace memopt::tools {

int frameworks(bool markdown);

}  // namespace memopt::tools
