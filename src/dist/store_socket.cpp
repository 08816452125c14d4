#include "dist/store_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace quell {
namespace {

template <class Address>
bool listens(int socket, Address address) {
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  return ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 && ::listen(socket, 1024) == 0;
}

// By either protocol, as clients come; -1 where this machine has none of version 6.
int listen_to_all(int port) {
  const int socket = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return -1;
  const int no = 0;
  ::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(static_cast<uint16_t>(port));
  address.sin6_addr = in6addr_any;
  if (listens(socket, address)) return socket;
  const int problem = errno;
  ::close(socket);
  errno = problem;
  return -1;
}

int listen_by_version_4(int port, bool local) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return -1;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(local ? INADDR_LOOPBACK : INADDR_ANY);
  if (listens(socket, address)) return socket;
  const int problem = errno;
  ::close(socket);
  errno = problem;
  return -1;
}

}  // namespace

StoreSocket::StoreSocket(int port, bool local) {
  if (!local) socket_ = listen_to_all(port);
  if (socket_ < 0) socket_ = listen_by_version_4(port, local);
  if (socket_ < 0) throw MachineError(cat("port ", port, ": cannot listen there: ", std::strerror(errno), "; choose another by --master-port"));
  sockaddr_storage address = {};
  socklen_t length = sizeof address;
  ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length);
  port_ = ntohs(address.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in*>(&address)->sin_port : reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port);
}

StoreSocket::~StoreSocket() { ::close(socket_); }

}  // namespace quell
