#include "base/hash.h"

#include <xxhash.h>

namespace quell {
namespace {

void put_hex(std::string& out, uint64_t value) {
  for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[(value >> shift) & 15];
}

std::string hex(XXH64_hash_t hash) {
  std::string out;
  put_hex(out, hash);
  return out;
}

std::string hex(const XXH128_hash_t& hash) {
  std::string out;
  put_hex(out, hash.high64);
  put_hex(out, hash.low64);
  return out;
}

}  // namespace

uint64_t xxh3_64(std::string_view bytes, uint64_t seed) { return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed); }

std::string xxh3_64_hex(std::string_view bytes) { return hex(xxh3_64(bytes)); }

std::string xxh3_128_hex(std::string_view bytes) { return hex(XXH3_128bits(bytes.data(), bytes.size())); }

struct Xxh3::State {
  XXH3_state_t* state = XXH3_createState();
  ~State() { XXH3_freeState(state); }
};

Xxh3::Xxh3() : state_(std::make_unique<State>()) { XXH3_128bits_reset(state_->state); }
Xxh3::~Xxh3() = default;
void Xxh3::add(std::string_view bytes) { XXH3_128bits_update(state_->state, bytes.data(), bytes.size()); }
// XXH3's two widths are two ends of one state (xxhash.h: XXH3_128bits_update is XXH3_64bits_update); the test of pieces holds it.
std::string Xxh3::hex_64() const { return hex(XXH3_64bits_digest(state_->state)); }
std::string Xxh3::hex_128() const { return hex(XXH3_128bits_digest(state_->state)); }

}  // namespace quell
