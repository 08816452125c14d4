// From who a process is to the world that it trains in: finds the other ranks, over Gloo.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "dist/environment.h"
#include "dist/world.h"

namespace quell {

struct Joined {
  World world;
  std::string text;  // how the ranks reach each other: "gloo over lo"; "" in a world of one
};

// A world of one without asking anybody where the membership is that of one. Variables beside the launcher's: GLOO_SOCKET_IFNAME names the
// interface; QUELL_STORE_FD a socket that is bound to the store's port and listens, inherited by rank 0. Throws PeerError, MachineError.
// As join_gloo() else. `say` is told whom it waits for.
Joined join_world(const Membership& membership, const Variables& variables, std::chrono::milliseconds timeout = std::chrono::minutes(10),
                  const std::function<void(const std::string&)>& say = [](const std::string&) {});

}  // namespace quell
