// How the commands that answer a question print it: exit code 0 for yes, 1 for no.
#pragma once

#include <iostream>

#include "base/error.h"
#include "tools/checkpoints.h"

namespace quell {

inline int print(const Answer& answer, bool json) {
  std::cout << (json ? answer.json.dump(1) + "\n" : answer.text);
  return static_cast<int>(answer.yes ? Exit::finished : Exit::answer_is_no);
}

}  // namespace quell
