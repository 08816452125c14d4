// A model's values out of and into one file. Everything is compared before the first value is changed.
#include "checkpoint/weights.h"

#include <set>

#include "base/error.h"
#include "base/text.h"

namespace quell {

namespace {

std::string text_of(const std::vector<int64_t>& shape) { return cat(at::IntArrayRef(shape)); }

at::Tensor fitted(const SafetensorsFile& file, const Parameter& parameter, const Refit& refit) {
  const at::Tensor saved = file.read(parameter.name);
  if (file.shape(parameter.name) == parameter.shape) return saved;
  return refit ? refit(parameter.name, saved, parameter.shape) : at::Tensor();
}

std::vector<std::string> problems_of(const SafetensorsFile& file, const ParameterList& parameters, const Refit& refit) {
  std::vector<std::string> problems;
  std::set<std::string> wanted;
  for (const Parameter& parameter : parameters) {
    const std::string& name = parameter.name;
    wanted.insert(name);
    if (!file.has(name)) {
      problems.push_back(cat("missing: ", name, " ", text_of(parameter.shape)));
    } else if (file.shape(name) != parameter.shape && !fitted(file, parameter, refit).defined()) {
      problems.push_back(cat("shape: ", name, " is ", text_of(file.shape(name)), " in the file, ",
                             text_of(parameter.shape), " in the model"));
    } else if (!at::isFloatingType(file.type(name))) {
      problems.push_back(cat("type: ", name, " is ", file.type(name), ", not a floating-point type"));
    }
  }
  for (const std::string& name : file.names()) {
    if (!wanted.contains(name)) problems.push_back(cat("extra: ", name, " ", text_of(file.shape(name))));
  }
  return problems;
}

}  // namespace

void save_weights(const std::string& path, const ParameterList& parameters, const Metadata& metadata) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (const Parameter& parameter : parameters) tensors.emplace_back(parameter.name, parameter.value);
  write_safetensors(path, tensors, metadata);
}

void load_weights(const std::string& path, ParameterList& parameters, Arena& arena, const Refit& refit) {
  const SafetensorsFile file(path);
  const std::vector<std::string> problems = problems_of(file, parameters, refit);
  if (!problems.empty()) {
    throw CheckpointError(cat(path, ": does not fit the model:\n  ", join(problems, "\n  ")));
  }
  std::vector<std::string> broken;
  for (const Parameter& parameter : parameters) {
    if (!at::isfinite(file.read(parameter.name)).all().item<bool>()) broken.push_back(parameter.name);
  }
  if (!broken.empty()) throw CheckpointError(cat(path, ": holds numbers that are not finite in ", join(broken, ", ")));
  for (Parameter& parameter : parameters) parameter.value.detach().copy_(fitted(file, parameter, refit));
  arena.refresh_compute();
}

}  // namespace quell
