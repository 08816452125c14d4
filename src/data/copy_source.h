// The copy task: a random string, a separator, the same string again, of which only the copy is scored. Attention alone can solve
// it, and where it has to look is known, which makes it a measure of sharpness. Nothing is read; sample p is a pure function of
// (seed, p).
//   inputs   s0 s1 .. sn-1  #  s0 .. sn-2      n = length, # = the id `symbols`; 2 n positions
//   targets   -  -  ..   -  s0 s1 .. sn-1
#pragma once

#include <cstdint>

#include "config/describe.h"
#include "data/random_source.h"
#include "data/source.h"

namespace quell {

struct CopyData {
  static constexpr const char* kind_name = "copy";
  int64_t batch = 64;
  int64_t symbols = 32;
  int64_t length = 16;

  int64_t context() const { return 2 * length; }
  int64_t vocabulary() const { return symbols + 1; }
};
template <class V>
void describe(V& v, CopyData& c) {
  v.field("batch", c.batch, help("Samples of one optimiser step over the whole world.").unit("samples").at_least(1).at_most(1e9));
  v.field("symbols", c.symbols,
          help("How many symbols strings are made of; the separator is one token more.").at_least(1).at_most(1e9));
  v.field("length", c.length,
          help("Symbols of the string that is copied; model.context is twice that.").unit("tokens").at_least(1).at_most(5e6));
}

class CopySource {
 public:
  CopySource(uint64_t key, const CopyData& config) : key_(key), config_(config) {}
  // Samples [first, first + count). Pure and thread-safe.
  HostBatch read(int64_t first, int64_t count) const;
  const CopyData& config() const { return config_; }

 private:
  uint64_t key_;
  CopyData config_;
};

// A fixed set for evaluation: the first `count` samples of its own key, with `answers`: the position in the string of each symbol
// that is to be copied. (Where the same symbol stands elsewhere in the string, that answers too and is not counted.)
class FixedCopies {
 public:
  FixedCopies(CopySource source, int64_t count) : source_(source), count_(count) {}
  HostBatch read(int64_t first, int64_t count) const;
  int64_t samples() const { return count_; }
  const CopyData& config() const { return source_.config(); }

 private:
  CopySource source_;
  int64_t count_;
};

}  // namespace quell
