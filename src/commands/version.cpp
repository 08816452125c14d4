#include "commands/version.h"

#include "base/text.h"
#include "tensors/switches.h"

namespace quell {

std::string version_text() {
  return cat("quell ", QUELL_VERSION, "\nlibtorch ", libtorch_description(), "\ncompiler ", __VERSION__, ", ", QUELL_BUILD);
}

}  // namespace quell
