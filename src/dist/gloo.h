// Collectives over Gloo, as LibTorch ships it (c10d::ProcessGroupGloo), and the store through which ranks find each other. The only
// place that sees c10d.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "dist/collectives.h"

namespace quell {

struct StoreAddress {
  std::string host;
  int port = 0;
  bool serves = false;              // whether this rank holds the store, or connects to one
  std::optional<int> listening_fd;  // of a socket that is bound already, where this rank serves
};

struct GlooOptions {
  StoreAddress store;
  std::string prefix;     // of keys: another one at every restart, since a store may outlive the ranks
  std::string interface;  // a network interface ("lo"), or
  std::string address;    // a host name or address of this machine that the others can reach, where `interface` is ""
  std::chrono::milliseconds timeout{600'000};  // of a collective, and of finding each other
  std::function<void(const std::string&)> say = [](const std::string&) {};  // whom this rank waits for, while it does
};

// Returns when all ranks have found each other. Throws MachineError where the port is taken, UsageError where a rank is there twice or another
// size is meant elsewhere, PeerError where the others do not come, Stopped where a stop is asked for meanwhile.
std::shared_ptr<Collectives> join_gloo(int rank, int size, const GlooOptions& options);

}  // namespace quell
