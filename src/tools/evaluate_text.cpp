// How an evaluation is told: as JSON and as text.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/text.h"
#include "tools/evaluate.h"
#include "train/metrics.h"

namespace quell {
namespace {

constexpr size_t most_columns = 80;

std::string padded(const std::string& text, size_t width) {
  return text.size() >= width ? text : std::string(width - text.size(), ' ') + text;
}

std::string percent(double share) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%6.1f %%", 100 * share);
  return text.data();
}

double share(const SetReport& report, size_t target) {
  int64_t all = 0;
  for (const int64_t count : report.confusion[target]) all += count;
  return all == 0 ? 0 : static_cast<double>(report.confusion[target][target]) / static_cast<double>(all);
}

// Rows are true classes, columns predicted ones, both by number; names stand at the rows' ends where there is room.
std::string confusion_table(const SetReport& report) {
  const size_t classes = report.confusion.size();
  size_t width = std::to_string(classes - 1).size() + 1;
  for (const auto& row : report.confusion) {
    for (const int64_t count : row) width = std::max(width, std::to_string(count).size() + 1);
  }
  std::string text = "class";
  for (size_t j = 0; j < classes; ++j) text += padded(std::to_string(j), width);
  text += "   right\n";
  for (size_t i = 0; i < classes; ++i) {
    std::string line = padded(std::to_string(i), 5);
    for (const int64_t count : report.confusion[i]) line += padded(count == 0 ? "." : std::to_string(count), width);
    line += percent(share(report, i));
    const std::string& name = report.classes[i];
    if (name != std::to_string(i) && line.size() + 2 + name.size() <= most_columns) line += "  " + name;
    text += line + "\n";
  }
  return text;
}

// Where a table is too wide: the pairs that are confused most.
std::string worst_pairs(const SetReport& report) {
  struct Pair {
    size_t target, predicted;
    int64_t count;
  };
  std::vector<Pair> pairs;
  for (size_t i = 0; i < report.confusion.size(); ++i) {
    for (size_t j = 0; j < report.confusion.size(); ++j) {
      if (i != j && report.confusion[i][j] > 0) pairs.push_back({i, j, report.confusion[i][j]});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.count > b.count; });
  pairs.resize(std::min<size_t>(pairs.size(), 10));
  std::string text = "confused most often (true class, predicted class, times):\n";
  for (const Pair& pair : pairs) text += cat("  ", report.classes[pair.target], ", ", report.classes[pair.predicted], ", ", pair.count, "\n");
  return text;
}

}  // namespace

Json to_json(const SetReport& report) {
  const LossTotals& totals = report.evaluation.totals;
  const bool text = report.confusion.empty();
  Json json{{"name", report.evaluation.name}, {"data", report.path}, {"samples", report.samples},
            {"targets", static_cast<int64_t>(totals.targets())}, {"loss", number(totals.cross_entropy())},
            {"accuracy", number(totals.accuracy())}};
  if (text) json["perplexity"] = number(std::exp(totals.cross_entropy()));
  if (report.bits_per_byte) json["bits_per_byte"] = number(*report.bits_per_byte);
  if (report.evaluation.has_exact_match) json["exact_match"] = number(totals.exact_match());
  if (!text) {
    json["accuracy_top5"] = number(totals.top5());
    json["classes"] = report.classes;
    json["confusion"] = report.confusion;
  }
  if (!report.broken.empty()) json["broken"] = report.broken;
  add_health(json, "", report.evaluation.health);
  return json;
}

std::string to_text(const SetReport& report) {
  const LossTotals& totals = report.evaluation.totals;
  std::string text = cat(report.evaluation.name, ": loss ", significant(totals.cross_entropy(), 5));
  if (report.confusion.empty()) text += ", perplexity " + significant(std::exp(totals.cross_entropy()), 5);
  if (report.bits_per_byte) text += ", " + significant(*report.bits_per_byte, 5) + " bits per byte";
  text += ", accuracy " + significant(100 * totals.accuracy(), 4) + " %";
  if (report.evaluation.has_exact_match) text += ", copied exactly " + significant(100 * totals.exact_match(), 4) + " %";
  if (!report.confusion.empty()) text += ", among five " + significant(100 * totals.top5(), 4) + " %";
  text += cat("\n  ", static_cast<int64_t>(totals.targets()), " targets in ", report.samples, " samples of ", report.path, "\n");
  if (!report.broken.empty()) text += "  " + report.broken + "\n";
  if (report.confusion.empty()) return text;
  const std::string table = confusion_table(report);
  return text + "\n" + (table.find('\n') <= most_columns ? table : worst_pairs(report));
}

}  // namespace quell
