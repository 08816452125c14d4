// A folder with a run of 40 steps in runs/straight, and what a run beside it that is stopped or killed must end as.
#pragma once

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "child.h"
#include "image_support.h"
#include "run_place.h"
#include "tiny_images.h"

namespace quell::testing {

// Of what has state: accumulation, an average, evaluations, epochs that end inside.
inline const std::string decoder_run =
    "name: straight\nsteps: 40\nthreads: 1\nmodel: {context: 32, width: 32, layers: 2, heads: 2, mlp: {width: 64}}\n"
    "data: {kind: tokens, train: text/train, batch: 8}\noptimizer: {schedule: {warmup: 5}}\nmicro_batches: 2\nema: 0.9\n"
    "evaluate: {sets: [{name: valid, data: text/valid}], every: 8, batches: all, sample: 20}\nreport: {every: 1}\n"
    "checkpoint: {every: 5}\n";
// Its images are so large that decoding takes about as long as a step.
inline const std::string vision_run =
    "name: straight\nsteps: 40\nthreads: 1\nmodel: {kind: vit, image: 12, channels: 1, patch: 4, width: 32, layers: 2, heads: 2, mlp: {width: 64}}\n"
    "data: {kind: images, train: images, batch: 8, augment: {flip: true, crop_padding: 2}}\noptimizer: {schedule: {warmup: 5}}\n"
    "micro_batches: 2\nema: 0.9\nevaluate: {sets: [{name: test, data: images}], every: 8, batches: all}\nreport: {every: 1}\n"
    "checkpoint: {every: 5}\n";

class StopPlace : public RunPlace {
 public:
  explicit StopPlace(const std::string& run_file = decoder_run) : RunPlace(run_file) {
    write_images();
    const Outcome straight = run("train run.yaml");
    INFO(straight.err);
    REQUIRE(straight.code == 0);
    rows_ = rows("straight");
    weights_ = slurp(*this / "runs/straight/weights.safetensors");
  }

  static std::vector<std::string> training(const std::string& name, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"train", "run.yaml", "--run", "runs/" + name, "resume=auto"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  // The run's rows without the clock.
  std::string rows(const std::string& name) const {
    std::istringstream lines(slurp(*this / ("runs/" + name + "/metrics.jsonl")));
    std::string all;
    for (std::string line; std::getline(lines, line);) {
      Json row = parse_json(line, name);
      for (const char* clock : {"time", "tokens_per_s", "images_per_s"}) row.erase(clock);
      all += row.dump() + "\n";
    }
    return all;
  }

  // That the run can be gone on with until its end and is then the straight one.
  void ends_as_if_nothing_had_been(const std::string& name) const {
    const Outcome outcome = run(cat("train run.yaml --run runs/", name, " resume=auto"));
    INFO(outcome.err);
    CHECK(outcome.code == 0);
    CHECK(rows(name) == rows_);
    // Not a comparison of texts, which would print them.
    const bool same = slurp(*this / ("runs/" + name + "/weights.safetensors")) == weights_;
    CHECK(same);
    for (const std::string& entry : files::list(*this / ("runs/" + name + "/checkpoints"))) CHECK_FALSE(entry.starts_with("."));
  }

  bool has_begun(const std::string& name) const { return files::exists(*this / ("runs/" + name + "/log.txt")); }

 private:
  void write_images() const {
    constexpr uint32_t larger = 24;
    for (uint32_t i = 0; i < 24; ++i) {
      const std::vector<uint8_t> small = tiny_image(i);
      std::vector<uint8_t> grey;
      for (uint32_t at = 0; at < tiny_side * larger * tiny_side * larger; ++at) {
        const uint32_t row = at / (tiny_side * larger) / larger, column = at % (tiny_side * larger) / larger;
        grey.push_back(small[row * tiny_side + column]);
      }
      write_file(cat(*this / "images/", i % 3, "/", i, ".png"), png_grey(tiny_side * larger, tiny_side * larger, grey));
    }
  }
  std::string rows_, weights_;
};

inline size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Asks by SIGQUIT until the program says that it is in `phase`.
inline bool reaches(Child& child, const std::string& phase) {
  return child.wait_for([&] {
    child.signal(SIGQUIT);
    return child.said().find(", " + phase + "\n") != std::string::npos;
  });
}

}  // namespace quell::testing
