#include "dist/node_list.h"

#include <algorithm>
#include <charconv>

namespace quell {
namespace {

constexpr size_t most_hosts = 100'000;

std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_one = !text.empty() && text.front() != '-' && error == std::errc() && end == text.data() + text.size();
  return is_one ? std::optional(value) : std::nullopt;
}

// At commas outside of brackets.
std::optional<std::vector<std::string>> split(const std::string& list) {
  std::vector<std::string> parts(1);
  bool inside = false;
  for (const char c : list) {
    if (c == '[' || c == ']') {
      if (inside == (c == '[')) return std::nullopt;
      inside = c == '[';
    }
    if (c == ',' && !inside) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return inside ? std::nullopt : std::optional(parts);
}

// "1", "07" or "08-11", with as many digits as the first bound has.
bool add_range(const std::string& range, std::vector<std::string>& out) {
  const size_t dash = range.find('-');
  const std::string first = range.substr(0, dash), last = dash == std::string::npos ? first : range.substr(dash + 1);
  const auto begin = number(first), end = number(last);
  if (!begin || !end || *begin > *end || static_cast<size_t>(*end - *begin) >= most_hosts) return false;
  for (int i = *begin; i <= *end; ++i) {
    std::string digits = std::to_string(i);
    if (digits.size() < first.size()) digits.insert(0, first.size() - digits.size(), '0');
    out.push_back(digits);
  }
  return true;
}

// The names that one entry stands for; brackets may come several times ("rack[1-2]n[1-4]").
bool add_hosts(const std::string& entry, const std::string& before, std::vector<std::string>& out) {
  const size_t open = entry.find('[');
  if (open == std::string::npos) {
    if (before.empty() && entry.empty()) return false;
    out.push_back(before + entry);
    return out.size() <= most_hosts;
  }
  const size_t close = entry.find(']', open);
  const std::string ranges = entry.substr(open + 1, close - open - 1);
  std::vector<std::string> numbers;
  for (size_t at = 0; at <= ranges.size();) {
    const size_t comma = std::min(ranges.find(',', at), ranges.size());
    if (!add_range(ranges.substr(at, comma - at), numbers)) return false;
    at = comma + 1;
  }
  return std::all_of(numbers.begin(), numbers.end(), [&](const std::string& digits) {
    return add_hosts(entry.substr(close + 1), before + entry.substr(0, open) + digits, out);
  });
}

}  // namespace

std::optional<std::vector<std::string>> expand_hosts(const std::string& list) {
  const auto entries = split(list);
  if (!entries) return std::nullopt;
  std::vector<std::string> hosts;
  for (const std::string& entry : *entries) {
    if (!add_hosts(entry, "", hosts)) return std::nullopt;
  }
  return hosts;
}

std::optional<std::vector<int>> expand_counts(const std::string& list) {
  const auto entries = split(list);
  if (!entries) return std::nullopt;
  std::vector<int> counts;
  for (const std::string& entry : *entries) {
    const size_t times = entry.find("(x");
    const bool is_repeated = times != std::string::npos;
    if (is_repeated && !entry.ends_with(')')) return std::nullopt;
    const auto count = number(entry.substr(0, times));
    const auto repeat = is_repeated ? number(entry.substr(times + 2, entry.size() - times - 3)) : std::optional(1);
    if (!count || !repeat || *count < 1 || *repeat < 1 || counts.size() + static_cast<size_t>(*repeat) > most_hosts) return std::nullopt;
    counts.insert(counts.end(), static_cast<size_t>(*repeat), *count);
  }
  return counts;
}

}  // namespace quell
