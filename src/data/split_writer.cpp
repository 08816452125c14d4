#include "data/split_writer.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/files.h"
#include "data/ids.h"

namespace quell {

SplitWriter::SplitWriter(std::string folder, std::string split, const Vocabulary& vocabulary, bool masked, Sizes sizes)
    : folder_(std::move(folder)), masked_(masked) {
  side_car_.split = std::move(split);
  side_car_.vocabulary = vocabulary;
  side_car_.type = vocabulary.size() <= 1 << 16 ? TokenType::uint16 : TokenType::uint32;
  side_car_.block_bytes = sizes.block_bytes;
  shard_tokens_ = std::max<int64_t>(1, sizes.shard_bytes / ids::width(side_car_.type));
  files::make_folders(folder_);
}

void SplitWriter::begin_document() { side_car_.documents.push_back(tokens_); }

void SplitWriter::append(std::span<const uint32_t> tokens, bool scored) {
  while (!tokens.empty()) {
    if (!ids_) open_shard();
    auto& shard = side_car_.shards.back();
    const auto now = static_cast<size_t>(std::min<int64_t>(shard_tokens_ - shard.tokens, static_cast<int64_t>(tokens.size())));
    const auto part = tokens.first(now);
    if (side_car_.type == TokenType::uint16) {
      const std::vector<uint16_t> narrow(part.begin(), part.end());
      ids_->write(narrow.data(), narrow.size() * sizeof(uint16_t));
    } else {
      ids_->write(part.data(), part.size_bytes());
    }
    if (scored_) scored_->write(std::string(now, scored ? '\1' : '\0').data(), now);
    side_car_.largest_id = std::max<int64_t>(side_car_.largest_id, *std::max_element(part.begin(), part.end()));
    shard.tokens += static_cast<int64_t>(now);
    tokens_ += static_cast<int64_t>(now);
    tokens = tokens.subspan(now);
    if (shard.tokens == shard_tokens_) close_shard();
  }
}

void SplitWriter::finish() {
  if (ids_) close_shard();
  files::write_atomically(folder_ + "/" + SideCar::file_name, to_json(side_car_).dump(1) + "\n");
}

void SplitWriter::open_shard() {
  char number[16];
  std::snprintf(number, sizeof number, "%05zu", side_car_.shards.size());
  ids_.emplace(folder_, std::string(number) + ".bin", side_car_.block_bytes);
  if (masked_) scored_.emplace(folder_, std::string(number) + ".scored", side_car_.block_bytes);
  side_car_.shards.emplace_back();
}

void SplitWriter::close_shard() {
  auto& shard = side_car_.shards.back();
  shard.ids = ids_->finish();
  ids_.reset();
  if (!scored_) return;
  shard.scored = scored_->finish();
  scored_.reset();
}

}  // namespace quell
