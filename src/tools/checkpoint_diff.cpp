// Two checkpoints, tensor by tensor and key by key.
#include <ATen/ATen.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/text.h"
#include "config/load.h"
#include "tools/checkpoints.h"
#include "train/changes.h"

namespace quell {
namespace {

// The place of a number among all numbers of its type, so that neighbours differ by 1. Meaningless for NaN.
template <class Float, class Int>
int64_t rank_of(Float x) {
  Int bits;
  static_assert(sizeof bits == sizeof x);
  std::memcpy(&bits, &x, sizeof x);
  return bits >= 0 ? static_cast<int64_t>(bits) : static_cast<int64_t>(std::numeric_limits<Int>::min()) - static_cast<int64_t>(bits);
}

struct TensorDifference {
  int64_t count = 0, first = -1;  // elements that differ, by their bits; where the first is, in order of rows
  double largest = 0;
  int64_t ulp = 0;  // the largest; -1 where it is not counted (fp64 may overflow it, NaN has none)
};

template <class Float, class Int>
TensorDifference compare(const at::Tensor& a, const at::Tensor& b) {
  TensorDifference d;
  const Float *x = a.const_data_ptr<Float>(), *y = b.const_data_ptr<Float>();
  for (int64_t i = 0; i < a.numel(); ++i) {
    if (std::memcmp(x + i, y + i, sizeof(Float)) == 0) continue;
    if (d.count++ == 0) d.first = i;
    const double difference = std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i]));
    if (std::isnan(difference)) {
      d.largest = difference;
      d.ulp = -1;
    } else if (!std::isnan(d.largest)) {
      d.largest = std::max(d.largest, difference);
      int64_t apart = 0;
      const bool counted = d.ulp >= 0 && !__builtin_sub_overflow(rank_of<Float, Int>(x[i]), rank_of<Float, Int>(y[i]), &apart);
      d.ulp = counted ? std::max(d.ulp, std::abs(apart)) : -1;
    }
  }
  return d;
}

TensorDifference compare(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() == at::kDouble) return compare<double, int64_t>(a, b);
  if (a.scalar_type() == at::kFloat) return compare<float, int32_t>(a, b);
  return compare<float, int32_t>(a.to(at::kFloat), b.to(at::kFloat));
}

// "[3, 17]" of element 3 * columns + 17.
std::string place_of(int64_t element, at::IntArrayRef shape) {
  std::vector<std::string> at(shape.size());
  for (size_t i = shape.size(); i-- > 0; element /= shape[i]) at[i] = std::to_string(element % shape[i]);
  return "[" + join(at, ", ") + "]";
}

template <class T>
void diff_scalars(Answer& answer, const std::map<std::string, T>& a, const std::map<std::string, T>& b) {
  const auto text_of = [](const std::map<std::string, T>& all, const std::string& name) { return all.contains(name) ? cat(all.at(name)) : "not there"; };
  std::map<std::string, T> all = a;
  all.insert(b.begin(), b.end());
  for (const auto& [name, value] : all) {
    const std::string before = text_of(a, name), after = text_of(b, name);
    // Clocks and the length of what was logged differ between any two runs.
    if (before == after || name == "report.seconds" || name == "report.metrics_bytes") continue;
    answer.text += cat("  ", name, ": ", before, " | ", after, "\n");
    answer.json["scalars"][name] = {before, after};
    answer.yes = false;
  }
}

void diff_tensors(Answer& answer, const State& a, const State& b) {
  std::map<std::string, at::Tensor> all = a.tensors;
  all.insert(b.tensors.begin(), b.tensors.end());
  for (const auto& [name, any] : all) {
    std::string told;
    if (!a.tensors.contains(name) || !b.tensors.contains(name)) {
      told = a.tensors.contains(name) ? "only in the first" : "only in the second";
    } else if (const at::Tensor &x = a.tensors.at(name), &y = b.tensors.at(name); x.sizes() != y.sizes() || x.scalar_type() != y.scalar_type()) {
      told = cat(x.scalar_type(), " ", x.sizes(), " | ", y.scalar_type(), " ", y.sizes());
    } else if (const TensorDifference d = compare(x, y); d.count > 0) {
      told = cat(d.count, " of ", x.numel(), " differ, by ", significant(d.largest, 3), d.ulp >= 0 ? cat(" = ", d.ulp, " ulp") : std::string(),
                 " at most; first ", place_of(d.first, x.sizes()));
      answer.json["tensors"][name] = {{"differ", d.count}, {"of", x.numel()}, {"largest", d.largest}, {"ulp", d.ulp}, {"first", d.first}};
    } else {
      continue;
    }
    if (!answer.json["tensors"].contains(name)) answer.json["tensors"][name] = told;
    answer.text += cat("  ", name, ": ", told, "\n");
    answer.yes = false;
  }
}

}  // namespace

Answer diff_checkpoints(const std::string& first, const std::string& second) {
  const Checkpoint a = checkpoint_at(first), b = checkpoint_at(second);
  Answer answer{"", Json{{"a", a.path}, {"b", b.path}, {"tensors", Json::object()}, {"scalars", Json::object()}, {"config", Json::object()}}};
  diff_scalars(answer, a.manifest.integers, b.manifest.integers);
  diff_scalars(answer, a.manifest.numbers, b.manifest.numbers);
  diff_tensors(answer, a.state(), b.state());
  const auto config_of = [](const Checkpoint& c) { return config::load<RunConfig>(config::Source::from_text(c.manifest.config, cat(c.path, "/", manifest_name))); };
  for (const Change& change : changes(config_of(a), config_of(b))) {
    answer.text += cat("  ", change.key, ": ", change.before, " | ", change.after, "\n");
    answer.json["config"][change.key] = {change.before, change.after};
    answer.yes = false;
  }
  answer.text = cat(a.path, " | ", b.path, answer.yes ? ": the same\n" : " differ:\n", answer.text);
  answer.json["same"] = answer.yes;
  return answer;
}

}  // namespace quell
