// Serves one text to clients on this machine, by HTTP (Boost.Beast).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace memopt::tools {

// "127.0.0.1:9400", "[::1]:9400", "localhost:0". Port 0: one that is free.
struct ListenAddress {
  std::string host;
  std::uint16_t port = 0;
};

// What is wrong with the text as an address to listen at, which must be this machine's own (loopback); empty: nothing.
std::string parse_listen_address(const std::string& text, ListenAddress* address);

class HttpServer {
 public:
  struct Answer {
    std::string type, text;
  };
  using Ask = std::function<Answer()>;

  // Throws std::runtime_error where the address can't be listened at. `ask` is called in run(), for each
  // GET /metrics; other paths, methods, and names of hosts that are not this machine's are refused.
  HttpServer(const ListenAddress& address, Ask ask);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::string url() const;
  // Until SIGINT or SIGTERM. A client that is slow, or sends nothing, is left after ten seconds and keeps no other
  // waiting.
  void run();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace memopt::tools
