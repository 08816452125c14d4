// What the tests of saves share: a small state that is known by its step, saved as a run of one id would.
#pragma once

#include <ATen/ATen.h>
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "base/files.h"
#include "checkpoint/commit.h"
#include "checkpoint/folder.h"
#include "checkpoint/staging.h"

namespace quell::testing {

inline const std::string run_a(32, 'a'), run_b(32, 'b');

inline State state_of(double value) {
  State state;
  state.tensors["weights.matrix"] = at::full({5, 7}, value);
  state.tensors["weights.empty"] = at::zeros({0, 3});
  state.tensors["optimizer.first.matrix"] = at::full({5, 7}, -value, at::kDouble);
  state.integers["run.step"] = static_cast<int64_t>(value);
  state.numbers["report.seconds"] = value / 3;
  return state;
}

inline Manifest manifest_of(int64_t step, const std::string& run = run_a) {
  static int saves = 0;
  std::string save = std::to_string(++saves);
  Manifest manifest;
  manifest.step = step;
  manifest.save = std::string(32 - save.size(), '0') + save;
  manifest.run = run;
  manifest.config = "name: test\n";
  return manifest;
}

inline std::string save(const std::string& folder, Manifest manifest, const State& state, Verify verify = Verify::full) {
  manifest.integers = state.integers;
  manifest.numbers = state.numbers;
  Staging staging;
  return commit(folder, staging.take(state), manifest, verify);
}
inline std::string save(const std::string& folder, const Manifest& manifest, Verify verify = Verify::full) {
  return save(folder, manifest, state_of(static_cast<double>(manifest.step)), verify);
}
inline std::string save(const std::string& folder, int64_t step, Verify verify = Verify::full) {
  return save(folder, manifest_of(step), verify);
}

inline void ignore(const std::string&) {}

// The newest that is sound, and that it holds what was saved.
inline int64_t newest_step(const std::string& folder) {
  const auto newest = newest_sound(folder, run_a, ignore);
  if (!newest) return -1;
  const int64_t step = newest->manifest.step;
  const State wanted = state_of(static_cast<double>(step)), found = newest->state();
  CHECK(misfits(wanted, found).empty());
  for (const auto& [name, tensor] : wanted.tensors) CHECK(tensor.equal(found.tensors.at(name)));
  CHECK(found.integers == wanted.integers);
  CHECK(found.numbers == wanted.numbers);
  return step;
}

inline std::vector<int64_t> steps_in(const std::string& folder) {
  std::vector<int64_t> steps;
  for (const Entry& entry : list_checkpoints(folder)) steps.push_back(entry.step);
  return steps;
}

}  // namespace quell::testing
