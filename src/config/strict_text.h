// What must hold of a text before any YAML is looked for: valid UTF-8, no control characters, no tabs in indentation,
// no directives. yaml-cpp accepts or misreads all of these.
#pragma once

#include <string>
#include <vector>

#include "config/mistake.h"

namespace quell::config {

constexpr size_t largest_file = 1 << 20;
constexpr int largest_depth = 32;

// Whether the text may be parsed. `text` is the index of places; columns count from `content`'s beginning.
bool is_strict_text(const std::string& content, int text, Mistakes& mistakes);

}  // namespace quell::config
