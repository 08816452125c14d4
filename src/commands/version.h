// What `quell --version` says: our version, LibTorch's, and how this program was built.
#pragma once

#include <string>

namespace quell {

std::string version_text();

}  // namespace quell
