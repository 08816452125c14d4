// Flash attention (Dao et al., 2022) for the CPU: blocks of 64 queries against blocks of 64 keys, with a running maximum and sum,
// so that no matrix of scores exists. Scores are kept transposed, S^T [keys, queries]: softmax then runs along the lanes without
// a sum across a register, and all seven products of both passes have a contiguous right factor. Blocks are walked in strips of 16,
// and what no query of a strip sees is not computed. All arithmetic is fp32.
#include "ops/flash_attention_cpu.h"

#include "ops/tile_product.h"

namespace quell::ops::QUELL_ISA {
namespace {

constexpr int64_t block = flash_block, strip = 16;
constexpr int64_t longest_sum = 32;  // terms in one chain of roundings: with 32 the scores are as accurate as the twin's

struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};
QUELL_INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
QUELL_INLINE int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

// Keys that some query of a range sees, and queries that see some key of a range.
Range keys_seen(const FlashAttention& a, Range queries) {
  return {larger(0, queries.begin - a.window + 1), a.causal ? queries.end : smaller(a.length, queries.end + a.window - 1)};
}
Range queries_seeing(const FlashAttention& a, Range keys) {
  return {a.causal ? keys.begin : larger(0, keys.begin - a.window + 1), smaller(a.length, keys.end + a.window - 1)};
}

// The strips of a block that overlap a range of positions, relative to the block and cut to its size.
Range strips_within(Range range, Range of_block) {
  const int64_t begin = larger(range.begin - of_block.begin, 0) / strip * strip;
  const int64_t end = (smaller(range.end, of_block.end) - of_block.begin + strip - 1) / strip * strip;
  return {begin, larger(begin, end)};
}

// Which queries of one block see a key.
struct Mask {
  const FlashAttention& a;
  const int32_t* document;  // [T] of the sample, or null
  Range queries;
  int32_t own[block];       // the queries' documents

  Mask(const FlashAttention& attention, int64_t b, Range of_block)
      : a(attention), document(a.document == nullptr ? nullptr : a.document + b * a.length), queries(of_block) {
    for (int64_t i = 0; i < block && document != nullptr; ++i) own[i] = i < queries.size() ? document[queries.begin + i] : -1;
  }
  // Whether some query of one range does not see some key of the other.
  bool needed(Range some, Range keys) const {
    const int64_t nearest = some.begin - (keys.end - 1), farthest = some.end - 1 - keys.begin;
    return document != nullptr || (a.causal && nearest < 0) || farthest >= a.window || -nearest >= a.window;
  }
  // The lanes' queries from the block's c-th on.
  QUELL_INLINE Ints sees(int64_t c, int64_t key) const {
    const Ints behind = lane_numbers() + static_cast<int32_t>(queries.begin + c - key);
    const int32_t window = static_cast<int32_t>(a.window);
    Ints seen = (behind < window) & (-behind < window);
    if (a.causal) seen &= behind >= 0;
    if (document == nullptr) return seen;
    Ints documents;
    std::memcpy(&documents, own + c, sizeof documents);
    return seen & (documents == document[key]);
  }
};

template <class T>
T* row_of(const HeadRows& rows, int64_t b, int64_t t, int64_t h) {
  return static_cast<T*>(rows.at) + b * rows.batch + t * rows.position + h * rows.head;
}

// A block of rows as fp32 with a width that is whole registers: as it lies where it is that already, else copied.
struct Block {
  const float* at;
  int64_t row;
};
template <class T>
Block block_of(const FlashAttention& a, const HeadRows& rows, int64_t b, Range t, int64_t h, float* room) {
  const T* from = row_of<T>(rows, b, t.begin, h);
  const int64_t padded = flash_padded(a.width);
  if constexpr (sizeof(T) == sizeof(float)) {
    if (a.width == padded) return {from, rows.position};
  }
  for (int64_t i = 0; i < t.size(); ++i) {
    float* to = room + i * padded;
    for (int64_t j = a.width / lanes * lanes; j < padded; j += lanes) store(to + j, Floats{}, Full{});
    blocks(a.width, [&](int64_t j, auto n) { store(to + j, load(from + i * rows.position + j, n), Full{}); });
  }
  return {room, padded};
}

// [width, block] from a block of rows; columns past its end are 0.
void transpose(const FlashAttention& a, Block from, int64_t count, float* to) {
  for (int64_t d = 0; d < a.width; ++d) {
    for (int64_t i = 0; i < count; ++i) to[d * block + i] = from.at[i * from.row + d];
    for (int64_t i = count; i < block; ++i) to[d * block + i] = 0;
  }
}

struct Scratch {
  float *scores, *slopes, *q_turned, *d_turned, *out, *rows[4], *maximum, *sum, *factor;
  Scratch(float* at, const FlashAttention& a, bool back) {
    const int64_t matrix = block * flash_padded(a.width), row_of_blocks = block * (back ? flash_whole_blocks(a.length) : block);
    const auto take = [&](int64_t count) { return at += count, at - count; };
    scores = take(row_of_blocks), slopes = take(row_of_blocks);
    q_turned = take(matrix), d_turned = take(matrix), out = take(matrix);
    for (float*& room : rows) room = take(matrix);
    maximum = take(block), sum = take(block), factor = take(block);
  }
};

// S^T of a block, unscaled, where some query of the strip sees some key of it. `right_turned` is [width, block].
void scores(const FlashAttention& a, Range queries, Range keys, Block left, const float* right_turned, float* to) {
  for (int64_t j = 0; j < keys.size(); j += strip) {
    const int64_t count = smaller(strip, keys.size() - j);
    const Range seeing = strips_within(queries_seeing(a, {keys.begin + j, keys.begin + j + count}), queries);
    float* at = to + j * block + seeing.begin;
    for (int64_t d = 0; d < a.width; d += longest_sum) {
      small_product(count, seeing.size(), smaller(longest_sum, a.width - d), {left.at + j * left.row + d, left.row, 1},
                    right_turned + d * block + seeing.begin, block, at, block, {d > 0 ? at : nullptr, block});
    }
  }
}

// f(c, seen, masked) for the lanes of queries from the block's c-th on: which of the block's keys they are computed for, and whether
// some of these are masked.
template <class F>
QUELL_INLINE void each_lanes(const FlashAttention& a, const Mask& mask, Range queries, Range keys, F&& f) {
  for (int64_t i = 0; i < queries.size(); i += strip) {
    const Range own{queries.begin + i, smaller(queries.begin + i + strip, queries.end)};
    Range seen = strips_within(keys_seen(a, own), keys);
    seen.end = smaller(seen.end, keys.size());
    const bool masked = mask.needed(own, {keys.begin + seen.begin, keys.begin + seen.end});
    for (int64_t c = i; c < i + strip; c += lanes) f(c, seen, masked);
  }
}

// One key block's part of the softmax: scores become weights, and the running maximum, sum and the factor by which what was
// summed so far shrinks are brought up to date.
void soft_max(const FlashAttention& a, const Mask& mask, Range queries, Range keys, Scratch& s) {
  constexpr float lowest = -__builtin_inff();
  each_lanes(a, mask, queries, keys, [&](int64_t c, Range seen, bool masked) {
    float* column = s.scores + c;
    const Floats before = load(s.maximum + c, Full{});
    Floats most = before;
    for (int64_t j = seen.begin; j < seen.end; ++j) {
      Floats x = a.scale * load(column + j * block, Full{});
      if (masked) x = mask.sees(c, keys.begin + j) ? x : all(lowest);
      store(column + j * block, x, Full{});
      most = x > most ? x : most;
    }
    const Floats shift = most == lowest ? Floats{} : most;  // no key seen yet: exp(-inf - 0) is 0
    Floats total{};
    for (int64_t j = seen.begin; j < seen.end; ++j) {
      const Floats weight = exp_below(load(column + j * block, Full{}) - shift);
      store(column + j * block, weight, Full{});
      total += weight;
    }
    const Floats shrink = exp_below(before - shift);
    store(s.sum + c, load(s.sum + c, Full{}) * shrink + total, Full{});
    store(s.factor + c, shrink, Full{});
    store(s.maximum + c, most, Full{});
  });
}

// to [queries, P] += (a block's matrix [keys, queries] turned) right [keys, P].
void add_over_keys(const FlashAttention& a, Range queries, Range keys, const float* matrix, Block right, float* to, int64_t to_row) {
  for (int64_t i = 0; i < queries.size(); i += strip) {
    const int64_t count = smaller(strip, queries.size() - i);
    const Range seen = strips_within(keys_seen(a, {queries.begin + i, queries.begin + i + count}), keys);
    const int64_t depth = smaller(seen.end, keys.size()) - seen.begin;
    small_product(count, flash_padded(a.width), depth, {matrix + seen.begin * block + i, 1, block}, right.at + seen.begin * right.row,
                  right.row, to + i * to_row, to_row, {to + i * to_row, to_row});
  }
}

// to [keys, P] += (a block's matrix [keys, queries]) right [queries, P].
void add_over_queries(const FlashAttention& a, Range queries, Range keys, const float* matrix, Block right, float* to, int64_t to_row) {
  for (int64_t j = 0; j < keys.size(); j += strip) {
    const int64_t count = smaller(strip, keys.size() - j);
    const Range seeing = strips_within(queries_seeing(a, {keys.begin + j, keys.begin + j + count}), queries);
    const int64_t depth = smaller(seeing.end, queries.size()) - seeing.begin;
    small_product(count, flash_padded(a.width), depth, {matrix + j * block + seeing.begin, block, 1}, right.at + seeing.begin * right.row,
                  right.row, to + j * to_row, to_row, {to + j * to_row, to_row});
  }
}

template <class T>
void finish(const FlashAttention& a, int64_t b, int64_t h, Range queries, const Scratch& s) {
  for (int64_t i = 0; i < queries.size(); ++i) {
    const float* from = s.out + i * flash_padded(a.width);
    T* to = row_of<T>(a.out, b, queries.begin + i, h);
    const float share = 1.0f / s.sum[i];
    blocks(a.width, [&](int64_t j, auto n) { store(to + j, load(from + j, Full{}) * share, n); });
    const int64_t row = (b * a.heads + h) * a.length + queries.begin + i;
    a.lse[row] = s.maximum[i] + __builtin_logf(s.sum[i]);
    a.largest[row] = s.maximum[i], a.sum[row] = s.sum[i];
  }
}

template <class T>
void forward_block(const FlashAttention& a, int64_t b, int64_t h, Range queries, Scratch& s) {
  const int64_t padded = flash_padded(a.width), g = h / a.group;
  const Mask mask(a, b, queries);
  transpose(a, block_of<T>(a, a.q, b, queries, h, s.rows[0]), queries.size(), s.q_turned);
  for (int64_t i = 0; i < block; ++i) s.maximum[i] = -__builtin_inff(), s.sum[i] = 0;
  for (int64_t i = 0; i < block * padded; ++i) s.out[i] = 0;
  const Range seen = keys_seen(a, queries);
  for (int64_t begin = seen.begin / block * block; begin < seen.end; begin += block) {
    const Range keys{begin, smaller(begin + block, a.length)};
    scores(a, queries, keys, block_of<T>(a, a.k, b, keys, g, s.rows[0]), s.q_turned, s.scores);
    soft_max(a, mask, queries, keys, s);
    for (int64_t i = 0; i < queries.size(); ++i) {
      if (s.factor[i] == 1.0f) continue;
      for (int64_t d = 0; d < padded; ++d) s.out[i * padded + d] *= s.factor[i];
    }
    add_over_keys(a, queries, keys, s.scores, block_of<T>(a, a.v, b, keys, g, s.rows[1]), s.out, padded);
  }
  finish<T>(a, b, h, queries, s);
}

// Scores of a key block become weights P^T = exp(S^T - maximum) / sum, rounded as the forward pass rounded them, and s.sum gains
// sum over keys of P dP. (dO . O is the same number, but rounds apart from dP, and where one weight is nearly 1 only their
// difference counts.)
void weigh(const FlashAttention& a, const Mask& mask, Range queries, Range keys, float* scores, const float* slopes, Scratch& s) {
  each_lanes(a, mask, queries, keys, [&](int64_t c, Range seen, bool masked) {
    const Floats most = load(s.maximum + c, Full{}), share = load(s.factor + c, Full{});
    Floats along{};
    for (int64_t j = seen.begin; j < seen.end; ++j) {
      float* at = scores + j * block + c;
      Floats p = exp_below(alone(a.scale * load(at, Full{})) - most) * share;
      if (masked) p = mask.sees(c, keys.begin + j) ? p : Floats{};
      store(at, p, Full{});
      along += p * load(slopes + j * block + c, Full{});
    }
    store(s.sum + c, load(s.sum + c, Full{}) + along, Full{});
  });
}

// dP^T becomes the gradient of the products q . k: scale P (dP - sum of P dP).
void slope(const FlashAttention& a, Range queries, Range keys, const float* weights, float* slopes, const Scratch& s) {
  for (int64_t j = 0; j < keys.size(); ++j) {
    const int64_t first = j / strip * strip + keys.begin;
    const Range seeing = strips_within(queries_seeing(a, {first, smaller(first + strip, keys.end)}), queries);
    for (int64_t c = seeing.begin; c < seeing.end; c += lanes) {
      float* at = slopes + j * block + c;
      store(at, a.scale * load(weights + j * block + c, Full{}) * (load(at, Full{}) - load(s.sum + c, Full{})), Full{});
    }
  }
}

// The gradients that a block of queries gives: its row of blocks of P^T and dP^T is kept until the sum of P dP is known.
template <class T>
void backward_block(const FlashAttention& a, int64_t b, int64_t h, Range queries, Scratch& s) {
  const int64_t g = h / a.group;
  const Mask mask(a, b, queries);
  const Block q = block_of<T>(a, a.q, b, queries, h, s.rows[0]), d_out = block_of<T>(a, a.d_out, b, queries, h, s.rows[1]);
  transpose(a, q, queries.size(), s.q_turned);
  transpose(a, d_out, queries.size(), s.d_turned);
  for (int64_t i = 0; i < block; ++i) s.maximum[i] = s.factor[i] = s.sum[i] = 0;
  for (int64_t i = 0; i < queries.size(); ++i) {
    const int64_t row = (b * a.heads + h) * a.length + queries.begin + i;
    s.maximum[i] = a.largest[row], s.factor[i] = 1.0f / a.sum[row];
  }
  const Range seen = keys_seen(a, queries);
  const auto each_block = [&](auto&& f) {
    for (int64_t begin = seen.begin / block * block; begin < seen.end; begin += block) {
      f(Range{begin, smaller(begin + block, a.length)}, s.scores + begin * block, s.slopes + begin * block);
    }
  };
  each_block([&](Range keys, float* weights, float* slopes) {
    scores(a, queries, keys, block_of<T>(a, a.k, b, keys, g, s.rows[2]), s.q_turned, weights);
    scores(a, queries, keys, block_of<T>(a, a.v, b, keys, g, s.rows[3]), s.d_turned, slopes);
    weigh(a, mask, queries, keys, weights, slopes, s);
  });
  each_block([&](Range keys, float* weights, float* slopes) {
    slope(a, queries, keys, weights, slopes, s);
    add_over_queries(a, queries, keys, weights, d_out, row_of<float>(a.dv, b, keys.begin, h), a.dv.position);
    add_over_queries(a, queries, keys, slopes, q, row_of<float>(a.dk, b, keys.begin, h), a.dk.position);
    add_over_keys(a, queries, keys, slopes, block_of<T>(a, a.k, b, keys, g, s.rows[2]), row_of<float>(a.dq, b, queries.begin, h),
                  a.dq.position);
  });
}

template <class T>
void backward_head(const FlashAttention& a, int64_t b, int64_t h, Scratch& s) {
  const HeadRows* const gradients[] = {&a.dq, &a.dk, &a.dv};
  for (const HeadRows* gradient : gradients) {
    for (int64_t t = 0; t < a.length; ++t) {
      for (int64_t d = 0; d < flash_padded(a.width); ++d) row_of<float>(*gradient, b, t, h)[d] = 0;
    }
  }
  for (int64_t first = 0; first < a.length; first += block) {
    backward_block<T>(a, b, h, {first, smaller(first + block, a.length)}, s);
  }
}

// The causal mask makes late queries dear: first, last, second, ... gives equal ranges of tasks equal work.
int64_t balanced(int64_t index, int64_t count) { return index % 2 == 0 ? index / 2 : count - 1 - index / 2; }

template <class T>
void forward(const FlashAttention& a, int64_t begin, int64_t end, Scratch& s) {
  const int64_t count = (a.length + block - 1) / block;
  for (int64_t task = begin; task < end; ++task) {
    const int64_t head = task / count, first = block * balanced(task % count, count);
    forward_block<T>(a, head / a.heads, head % a.heads, {first, smaller(first + block, a.length)}, s);
  }
}

void forward(const FlashAttention& a, int64_t begin, int64_t end, float* room) {
  Scratch s(room, a, false);
  return a.bf16 ? forward<Bf16>(a, begin, end, s) : forward<float>(a, begin, end, s);
}

void backward(const FlashAttention& a, int64_t begin, int64_t end, float* room) {
  Scratch s(room, a, true);
  for (int64_t head = begin; head < end; ++head) {
    const int64_t b = head / a.heads, h = head % a.heads;
    a.bf16 ? backward_head<Bf16>(a, b, h, s) : backward_head<float>(a, b, h, s);
  }
}

}  // namespace

extern const FlashKernels flash_kernels{forward, backward};

}  // namespace quell::ops::QUELL_ISA
