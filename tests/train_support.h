// A tiny run for tests of room train: real text prepared by our own data room, a model of a few thousand parameters.
#pragma once

#include <fstream>
#include <string>

#include "data/prepare.h"
#include "temporary.h"
#include "train/run.h"

namespace quell::testing {

// A folder with `text/train` and `text/valid`: 12,000 characters of a repeating but not periodic text.
class TinyText {
 public:
  TinyText() {
    std::ofstream out(folder_ / "text.txt");
    for (int i = 0; i < 400; ++i) out << "line " << i * i % 97 << " of the tiny text,\n" << (i % 3 == 0 ? "a b c\n" : "cab\n");
    out.close();
    prepare_tokens({.files = {folder_ / "text.txt"}, .out = folder_ / "text", .tokenizer = "char", .valid = 0.1}, {});
  }
  std::string train() const { return folder_ / "text/train"; }
  std::string valid() const { return folder_ / "text/valid"; }
  const TemporaryFolder& folder() const { return folder_; }

 private:
  TemporaryFolder folder_;
};

inline RunConfig tiny_config(const TinyText& text) {
  RunConfig config;
  config.name = "tiny";
  config.steps = 4;
  DecoderConfig model;
  model.context = 16;
  model.width = 32;
  model.layers = 2;
  model.heads = 2;
  model.mlp.width = 48;
  model.init.head = InitHead::as_matrix;  // a zero head would make the first step's gradients of everything else zero
  config.model = model;
  config.data = TokenData{.train = text.train(), .batch = 8};
  config.evaluate.sets = {{"valid", text.valid()}};
  config.evaluate.every = 0;
  config.evaluate.batches = 2;
  config.optimizer.lr = 1e-2;
  config.report.every = 1;
  return config;
}

inline DecoderConfig& model_of(RunConfig& config) { return std::get<DecoderConfig>(config.model); }
inline TokenData& data_of(RunConfig& config) { return std::get<TokenData>(config.data); }

}  // namespace quell::testing
