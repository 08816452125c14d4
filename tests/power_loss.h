// A model of what a machine that loses its power may leave of a folder: only what was synced is sure to stay. Everything else, data
// and names alike, may be there or not, in any mixture. Watches the operations of base/files through its seam, and takes what is
// there from the real folder, so that it knows nothing of who writes what.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>

#include "base/files.h"

namespace quell::testing {

class PowerLoss {
 public:
  // The power goes before operation `at` (from 0); until then all goes as it does. What is there now is synced.
  PowerLoss(const std::string& folder, int at) : folder_(folder), at_(at) {
    look(folder_);
    for (const auto& [path, node] : nodes_) sync(path);
    files::set_faults([this](const char* operation, const std::string& path) { return before(operation, path); });
  }
  ~PowerLoss() {
    files::set_faults({});
    for (const auto& [inode, descriptor] : kept_) ::close(descriptor);
  }
  PowerLoss(const PowerLoss&) = delete;
  PowerLoss& operator=(const PowerLoss&) = delete;

  bool is_off() const { return off_; }
  // To be called when the work has ended with the power on: what the last operation did counts.
  void settle() { finish_pending(); }

  enum class Unsynced { lost, kept, mixed };
  // Makes `to` what is left of the folder.
  void leave(const std::string& to, Unsynced unsynced, uint32_t seed) {
    finish_pending();
    files::set_faults({});
    look(folder_);
    draw_.seed(seed);
    unsynced_ = unsynced;
    leave_folder(inode_of(folder_), to);
  }

 private:
  using Inode = uint64_t;
  using Names = std::map<std::string, Inode>;
  struct Node {
    bool is_folder = false;
    Names names;        // of a folder
    std::string bytes;  // of a file
  };

  int before(const std::string& operation, const std::string& path) {
    if (off_) return EIO;
    finish_pending();
    if (count_++ == at_) {
      off_ = true;
      return EIO;
    }
    if (operation == "fsync") pending_ = path;
    return 0;
  }
  // A sync is known to have happened once the next operation begins: nothing came between.
  void finish_pending() {
    if (pending_.empty() || off_) return;
    look(folder_);
    sync(pending_);
    pending_.clear();
  }

  static Inode inode_of(const std::string& path) {
    struct stat found;
    return ::stat(path.c_str(), &found) == 0 ? found.st_ino : 0;
  }
  // Everything below as it is now. Whatever was once seen is held open, so that no inode's number is given away again.
  Inode look(const std::string& path) {
    const Inode inode = inode_of(path);
    Node node;
    node.is_folder = std::filesystem::is_directory(path);
    if (node.is_folder) {
      for (const auto& entry : std::filesystem::directory_iterator(path)) node.names[entry.path().filename()] = look(entry.path());
    } else {
      std::ifstream in(path, std::ios::binary);
      node.bytes.assign(std::istreambuf_iterator<char>(in), {});
    }
    if (!kept_.contains(inode)) kept_[inode] = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    now_[inode] = node;
    nodes_[path] = inode;
    return inode;
  }
  void sync(const std::string& path) {
    if (const Inode inode = inode_of(path); inode != 0) synced_[inode] = now_[inode];
  }

  bool kept() { return unsynced_ == Unsynced::kept || (unsynced_ == Unsynced::mixed && draw_() % 2 == 0); }

  void leave_folder(Inode inode, const std::string& to) {
    std::filesystem::create_directories(to);
    const Names &now = now_[inode].names, &synced = synced_[inode].names;
    std::map<std::string, int> all;
    for (const auto& [name, child] : now) all[name];
    for (const auto& [name, child] : synced) all[name];
    for (const auto& [name, nothing] : all) {
      const auto in_now = now.find(name), in_synced = synced.find(name);
      const bool same = in_now != now.end() && in_synced != synced.end() && in_now->second == in_synced->second;
      const auto& chosen = same || kept() ? in_now : in_synced;
      if (chosen == now.end() || chosen == synced.end()) continue;
      leave_node(chosen->second, to + "/" + name);
    }
  }
  void leave_node(Inode inode, const std::string& to) {
    if (now_[inode].is_folder) return leave_folder(inode, to);
    const std::string &now = now_[inode].bytes, &synced = synced_[inode].bytes;
    std::string bytes = now == synced || kept() ? now : synced;
    if (bytes != synced && unsynced_ == Unsynced::mixed && draw_() % 2 == 0) bytes.resize(draw_() % (bytes.size() + 1));
    std::ofstream(to, std::ios::binary) << bytes;
  }

  std::string folder_, pending_;
  int at_, count_ = 0;
  bool off_ = false;
  Unsynced unsynced_ = Unsynced::lost;
  std::mt19937 draw_;
  std::map<std::string, Inode> nodes_;
  std::map<Inode, int> kept_;
  std::map<Inode, Node> now_, synced_;
};

}  // namespace quell::testing
