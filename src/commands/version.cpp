#include "commands/version.h"

#include "base/text.h"
#include "ops/device.h"
#include "tensors/switches.h"

namespace quell {

std::string version_text() {
  return cat("quell ", QUELL_VERSION, "\nlibtorch ", libtorch_description(), "\ncompiler ", __VERSION__, ", ", QUELL_BUILD,
             "\ndevices cpu; ", ops::cuda_description(ops::visible_cuda_devices()));
}

}  // namespace quell
