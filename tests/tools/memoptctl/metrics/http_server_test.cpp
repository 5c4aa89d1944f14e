#include "tools/memoptctl/metrics/http_server.h"

#include <gtest/gtest.h>

#include <string>

namespace memopt::tools {
namespace {

TEST(ListenAddress, IsOfThisMachine) {
  const std::tuple<const char*, const char*, int> good[] = {{"127.0.0.1:9400", "127.0.0.1", 9400},
                                                            {"127.8.9.1:0", "127.8.9.1", 0},
                                                            {"[::1]:65535", "::1", 65535},
                                                            {"localhost:80", "127.0.0.1", 80}};
  for (const auto& [text, host, port] : good) {
    ListenAddress address;
    EXPECT_EQ(parse_listen_address(text, &address), "") << text;
    EXPECT_EQ(address.host, host);
    EXPECT_EQ(address.port, port);
  }
  for (const char* const text : {"", ":", "9400", ":9400", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
                                 "127.0.0.1:9400x", "0.0.0.0:9400", "192.168.1.1:9400", "[::]:9400", "::1:9400",
                                 "example.org:9400", "[::1:9400", "[]:1", "127.1:9400:9400", "\x1b[2J:1"}) {
    ListenAddress address;
    const std::string fault = parse_listen_address(text, &address);
    EXPECT_NE(fault.find("expected an address of this machine alone and a port"), std::string::npos) << text;
    EXPECT_EQ(fault.find('\x1b'), std::string::npos);
  }
}

}  // namespace
}  // namespace memopt::tools
