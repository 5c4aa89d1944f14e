// Messages over the SOCK_SEQPACKET socket between agent and planner: one datagram is one message, header and body, with
// at most one descriptor beside it (channel.h). What is received is hostile: its length agrees with its header when it
// comes out of here, nothing else is known of it. Nothing throws, nothing blocks, no SIGPIPE.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "shm/channel.h"
#include "shm/sealed_memory.h"

namespace memopt::shm {

struct AbstractAddress {
  sockaddr_un address{};
  socklen_t length = 0;  // 0: the name is too long

  explicit AbstractAddress(std::string_view name) {
    address.sun_family = AF_UNIX;
    if (name.size() + 1 > sizeof(address.sun_path)) return;
    std::memcpy(address.sun_path + 1, name.data(), name.size());  // behind a leading NUL byte: abstract
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

// The user and process at the other end as of connect() or listen(); false if unknown.
inline bool read_peer(int socket, ucred* peer) {
  socklen_t size = sizeof(*peer);
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, peer, &size) == 0 && size == sizeof(*peer);
}

// 0, or the errno; EAGAIN if the other end does not read.
inline int send_message(int socket, MessageKind kind, std::span<const std::byte> body, int descriptor = -1) {
  MessageHeader header{static_cast<std::uint32_t>(kind), static_cast<std::uint32_t>(body.size())};
  if (sizeof(header) + body.size() > kMaxMessageBytes) return EMSGSIZE;
  iovec parts[2] = {{&header, sizeof(header)}, {const_cast<std::byte*>(body.data()), body.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof(descriptor));
  }
  ssize_t sent;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? errno : 0;
}

template <typename Body>
int send_message(int socket, MessageKind kind, const Body& body, int descriptor = -1) {
  static_assert(std::is_trivially_copyable_v<Body>);
  return send_message(socket, kind, std::as_bytes(std::span(&body, 1)), descriptor);
}
inline int send_text(int socket, MessageKind kind, std::string_view text) {
  return send_message(socket, kind, std::as_bytes(std::span(text.substr(0, kMaxMessageBytes - sizeof(MessageHeader)))));
}

struct ReceivedMessage {
  enum class State { kMessage, kNothing, kClosed, kMalformed };

  State state = State::kNothing;
  MessageKind kind{};
  std::array<std::byte, kMaxMessageBytes> buffer;
  std::size_t body_bytes = 0;
  Descriptor descriptor;

  std::span<const std::byte> body() const { return std::span(buffer).subspan(sizeof(MessageHeader), body_bytes); }
  std::string_view text() const { return {reinterpret_cast<const char*>(body().data()), body_bytes}; }
  // False unless the body is exactly one of this type.
  template <typename Body>
  bool read(Body* value) const {
    static_assert(std::is_trivially_copyable_v<Body>);
    if (body_bytes != sizeof(Body)) return false;
    std::memcpy(value, body().data(), sizeof(Body));
    return true;
  }
};

// The next message, if one is there.
inline void receive_message(int socket, ReceivedMessage& received) {
  received.state = ReceivedMessage::State::kClosed;
  received.descriptor.reset();
  received.body_bytes = 0;
  iovec part{received.buffer.data(), received.buffer.size()};
  constexpr std::size_t kMostDescriptors = 8;
  alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t got;
  // ECONNRESET, told once: the other end closed without having read everything. What it sent is there still.
  int resets = 0;
  do {
    got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && (errno == EINTR || (errno == ECONNRESET && resets++ == 0)));
  if (got < 0) {
    if (errno == EAGAIN) received.state = ReceivedMessage::State::kNothing;
    return;
  }
  bool too_many = false;
  for (cmsghdr* part_of = CMSG_FIRSTHDR(&message); part_of != nullptr; part_of = CMSG_NXTHDR(&message, part_of)) {
    if (part_of->cmsg_level != SOL_SOCKET || part_of->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part_of->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number;
      std::memcpy(&number, CMSG_DATA(part_of) + i * sizeof(int), sizeof(int));
      Descriptor descriptor(number);  // closed unless it is kept
      if (received.descriptor) {
        too_many = true;
      } else {
        received.descriptor = std::move(descriptor);
      }
    }
  }
  // An empty datagram and the end look alike; neither is a message.
  if (got == 0 && !received.descriptor) return;
  received.state = ReceivedMessage::State::kMalformed;
  MessageHeader header;
  if (too_many || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 ||
      static_cast<std::size_t>(got) < sizeof(header)) {
    return;
  }
  std::memcpy(&header, received.buffer.data(), sizeof(header));
  if (header.bytes != static_cast<std::size_t>(got) - sizeof(header)) return;
  received.kind = static_cast<MessageKind>(header.kind);
  received.body_bytes = header.bytes;
  received.state = ReceivedMessage::State::kMessage;
}

}  // namespace memopt::shm
