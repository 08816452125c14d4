// A socket that listens for the store, opened before the ranks start and inherited by rank 0: nobody can take its port meanwhile.
#pragma once

namespace quell {

class StoreSocket {
 public:
  // port 0: a free one. `local`: only for this machine. Throws MachineError.
  StoreSocket(int port, bool local);
  ~StoreSocket();
  StoreSocket(const StoreSocket&) = delete;
  StoreSocket& operator=(const StoreSocket&) = delete;
  int fd() const { return socket_; }  // closed in what is started, unless it is told to keep it
  int port() const { return port_; }

 private:
  int socket_ = -1, port_ = 0;
};

}  // namespace quell
