// Strict JSON on nlohmann-json: duplicate names, non-finite numbers, invalid UTF-8, depth over 64 and trailing text are
// errors.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace quell {

using Json = nlohmann::ordered_json;

// `name` is what an error calls the text (a path, "header of x.safetensors"). Throws DataError with line and column.
// `first_line`: where the text begins in its file, for files with an object a line.
Json parse_json(std::string_view text, const std::string& name, int64_t first_line = 1);

}  // namespace quell
