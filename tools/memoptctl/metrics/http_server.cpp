#include "tools/memoptctl/metrics/http_server.h"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <chrono>
#include <csignal>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "tools/memoptctl/common/printable.h"

namespace memopt::tools {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

constexpr std::chrono::seconds kPatience{10};
constexpr std::chrono::milliseconds kAfterFailure{100};
constexpr std::uint32_t kLongestHeader = 8192;
constexpr int kMostClients = 64;

// "host:port" or "host" or "[v6]:port", as in a Host field.
std::string_view without_port(std::string_view text) {
  if (text.starts_with('[')) return text.substr(1, text.find(']') == std::string_view::npos ? 0 : text.find(']') - 1);
  return text.substr(0, text.rfind(':'));
}

bool is_loopback(std::string_view host) {
  if (host == "localhost") return true;
  boost::system::error_code error;
  const auto address = asio::ip::make_address(std::string(host), error);
  return !error && address.is_loopback();
}

// One connection, from its request to the end of the answer.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket&& socket, const HttpServer::Ask& ask, int& clients)
      : stream_(std::move(socket)), ask_(ask), clients_(clients) {
    ++clients_;
    parser_.header_limit(kLongestHeader);
    parser_.body_limit(0);
  }
  ~Session() { --clients_; }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void start() {
    stream_.expires_after(kPatience);
    http::async_read(stream_, buffer_, parser_, [self = shared_from_this()](beast::error_code error, std::size_t) {
      if (!error) self->answer();
    });
  }

 private:
  void answer() {
    const auto& request = parser_.get();
    response_.version(request.version());
    response_.keep_alive(false);
    const beast::string_view host = request[http::field::host];
    const std::string_view target(request.target().data(), request.target().size());
    // A page in a browser that has a name of its own for this address must not read what runs here.
    if (!is_loopback(without_port({host.data(), host.size()}))) {
      refuse(http::status::forbidden, "expected a name of this machine as the host, such as localhost\n");
    } else if (request.method() != http::verb::get && request.method() != http::verb::head) {
      response_.set(http::field::allow, "GET, HEAD");
      refuse(http::status::method_not_allowed, "expected GET\n");
    } else if (target.substr(0, target.find('?')) != "/metrics") {
      refuse(http::status::not_found, "expected /metrics\n");
    } else {
      HttpServer::Answer found = ask_();
      response_.set(http::field::content_type, found.type);
      response_.body() = std::move(found.text);
    }
    response_.prepare_payload();
    if (request.method() == http::verb::head) response_.body().clear();
    stream_.expires_after(kPatience);
    http::async_write(stream_, response_, [self = shared_from_this()](beast::error_code, std::size_t) {
      beast::error_code ignored;
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    });
  }

  void refuse(http::status status, const char* why) {
    response_.result(status);
    response_.set(http::field::content_type, "text/plain; charset=utf-8");
    response_.body() = why;
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_{kLongestHeader};
  http::request_parser<http::empty_body> parser_;
  http::response<http::string_body> response_;
  const HttpServer::Ask& ask_;
  int& clients_;
};

}  // namespace

std::string parse_listen_address(const std::string& text, ListenAddress* address) {
  const std::string wrong =
      fmt::format("'{}': expected an address of this machine alone and a port, such as 127.0.0.1:9400 or [::1]:9400",
                  printable(text));
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return wrong;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, address->port);
  if (error != std::errc() || stop != end || colon + 1 == text.size()) return wrong;
  const std::string_view host = std::string_view(text).substr(0, colon);
  if (host.find(':') != std::string_view::npos && !(host.starts_with('[') && host.ends_with(']'))) return wrong;
  address->host = without_port(text);
  if (address->host == "localhost") address->host = "127.0.0.1";
  return is_loopback(address->host) ? "" : wrong;
}

class HttpServer::State {
 public:
  State(const ListenAddress& address, Ask ask) : ask_(std::move(ask)) {
    const tcp::endpoint endpoint(asio::ip::make_address(address.host), address.port);
    boost::system::error_code error;
    const auto must = [&](const char* what) {
      if (error)
        throw std::runtime_error(fmt::format("{}:{}: {}: {}", address.host, address.port, what, error.message()));
    };
    acceptor_.open(endpoint.protocol(), error);
    must("no socket");
    acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    acceptor_.bind(endpoint, error);
    must("can't be listened at");
    acceptor_.listen(asio::socket_base::max_listen_connections, error);
    must("can't be listened at");
  }

  std::string url() const {
    const tcp::endpoint here = acceptor_.local_endpoint();
    const std::string host = here.address().to_string();
    return fmt::format("http://{}:{}/metrics", here.address().is_v6() ? "[" + host + "]" : host, here.port());
  }

  void run() {
    asio::signal_set signals(context_, SIGINT, SIGTERM);
    signals.async_wait([&](boost::system::error_code, int) { context_.stop(); });
    accept();
    context_.run();
  }

 private:
  void accept() {
    acceptor_.async_accept([this](boost::system::error_code error, tcp::socket socket) {
      if (!error && clients_ < kMostClients) std::make_shared<Session>(std::move(socket), ask_, clients_)->start();
      if (!error) return accept();
      // No descriptors, for example: not at once again.
      pause_.expires_after(kAfterFailure);
      pause_.async_wait([this](boost::system::error_code) { accept(); });
    });
  }

  Ask ask_;
  int clients_ = 0;
  asio::io_context context_{1};
  tcp::acceptor acceptor_{context_};
  asio::steady_timer pause_{context_};
};

HttpServer::HttpServer(const ListenAddress& address, Ask ask)
    : state_(std::make_unique<State>(address, std::move(ask))) {}
HttpServer::~HttpServer() = default;
std::string HttpServer::url() const { return state_->url(); }
void HttpServer::run() { state_->run(); }

}  // namespace memopt::tools
