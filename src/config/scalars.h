// Scalars as text, strictly: `010`, `0x10`, `yes`, `.nan` and `1.5` for an integer are complaints; `1e3`, `1_000`, and
// where a field asks for them `10G` and `23h45m` are not. Writing gives text that reads back as the same value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "config/describe.h"

namespace quell::config {

struct Complaint {
  std::string message;  // empty: just not a value of the type
  std::string note;
};
// `value` changes only where nothing is returned. Ranges are not looked at.
std::optional<Complaint> parse(std::string_view text, const FieldInfo& info, bool& value);
std::optional<Complaint> parse(std::string_view text, const FieldInfo& info, int64_t& value);
std::optional<Complaint> parse(std::string_view text, const FieldInfo& info, double& value);

// "too small", "too large", or "" where the value lies in the field's range.
std::string outside(const FieldInfo& info, long double value);

std::string write(bool value, const FieldInfo& info);
std::string write(int64_t value, const FieldInfo& info);
std::string write(double value, const FieldInfo& info);
// In double quotes only where a plain text would be read as something else, here or by another reader of YAML.
std::string write(const std::string& value, const FieldInfo& info);

// Quotes a text that equals the field's absent word: only the plain word stands for absence.
std::string write_present(const std::string& value, const FieldInfo& info);

}  // namespace quell::config
