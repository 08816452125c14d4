#include "dist/rendezvous.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "base/error.h"
#include "base/text.h"
#include "dist/gloo.h"

namespace quell {
namespace {

// This machine's address on the way to `host`: no packet is sent, the kernel only chooses a route. "" where there is none.
std::string address_towards(const std::string& host, int port) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return "";
  std::string address;
  for (const addrinfo* at = found; at != nullptr && address.empty(); at = at->ai_next) {
    const int socket = ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    if (socket < 0) continue;
    sockaddr_storage own = {};
    socklen_t length = sizeof own;
    char text[NI_MAXHOST];
    const bool is_known = ::connect(socket, at->ai_addr, at->ai_addrlen) == 0 && ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &length) == 0 &&
                          ::getnameinfo(reinterpret_cast<sockaddr*>(&own), length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0;
    if (is_known) address = text;
    ::close(socket);
  }
  ::freeaddrinfo(found);
  return address;
}

bool is_loopback(const std::string& address) { return address == "::1" || address.starts_with("127."); }

// Of the first interface that is up and leads out of this machine; "" where there is none.
std::string outer_address() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return "";
  std::string address;
  for (const ifaddrs* at = all; at != nullptr && address.empty(); at = at->ifa_next) {
    const bool is_one = at->ifa_addr != nullptr && at->ifa_addr->sa_family == AF_INET && (at->ifa_flags & IFF_UP) != 0 && (at->ifa_flags & IFF_LOOPBACK) == 0;
    char text[NI_MAXHOST];
    if (is_one && ::getnameinfo(at->ifa_addr, sizeof(sockaddr_in), text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0) address = text;
  }
  ::freeifaddrs(all);
  return address;
}

std::string text_at(const Variables& variables, const char* name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

}  // namespace

Joined join_world(const Membership& m, const Variables& variables, std::chrono::milliseconds timeout,
                  const std::function<void(const std::string&)>& say) {
  if (m.size == 1) return {};
  const bool serves = m.rank == 0 && !m.agent_serves;
  GlooOptions options;
  options.store.host = m.host;
  options.store.port = m.port;
  options.store.serves = serves;
  options.prefix = cat("quell/", m.job, "/", m.restart, "/");
  options.interface = text_at(variables, "GLOO_SOCKET_IFNAME");
  options.timeout = timeout;
  options.say = say;
  if (const std::string socket = text_at(variables, "QUELL_STORE_FD"); serves && !socket.empty()) options.store.listening_fd = std::atoi(socket.c_str());
  if (!options.interface.empty() && ::if_nametoindex(options.interface.c_str()) == 0) {
    throw UsageError(cat("GLOO_SOCKET_IFNAME=", options.interface, ": this machine has no such network interface"));
  }
  if (options.interface.empty() && m.nodes == 1) options.interface = "lo";
  if (options.interface.empty()) {
    options.address = address_towards(m.host, m.port);
    // On the first node its own name often stands for the loopback, which the other nodes cannot reach.
    if (const std::string outer = is_loopback(options.address) ? outer_address() : ""; !outer.empty()) options.address = outer;
    if (options.address.empty()) throw PeerError(cat(m.host, ": no way there from this machine (an unknown name, or no network); it is the store's host"));
  }
  const std::string over = options.interface.empty() ? options.address : options.interface;
  return {World(m.rank, m.size, join_gloo(m.rank, m.size, options), m.local_size), "gloo over " + over};
}

}  // namespace quell
