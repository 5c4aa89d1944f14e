// memoptctl with all commands.
#include "tools/memoptctl/main/line.h"

int main(int argc, char** argv) { return memopt::tools::run_line(argc, argv, {}); }
