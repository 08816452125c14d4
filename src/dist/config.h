// What may be written under `parallel`.
#pragma once

#include <cstdint>

#include "config/describe.h"

namespace quell {

struct ParallelConfig {
  int64_t verify_every = 100;
};
template <class V>
void describe(V& v, ParallelConfig& c) {
  v.field("verify_every", c.verify_every, help("Steps between comparisons of all weights and moments between ranks; 0: never. One that differs "
                                               "ends the run: a fault of a machine.").unit("steps").at_least(0));
}

}  // namespace quell
