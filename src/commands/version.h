// What `quell --version` says: our version, LibTorch's, how this program was built, and the devices it sees.
#pragma once

#include <string>

namespace quell {

std::string version_text();

}  // namespace quell
