// Prints how long this room's functions take beside LibTorch's for the same work, forward and backward: the ratio as the median
// of 15 interleaved pairs, so that a slow moment of the machine meets both, and the ratio of the shortest times, which foreign
// load disturbs least. Not a test: run it by hand on a quiet machine.
//   build/release/bench_ops [threads [filter]]
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include "base/clock.h"
#include "ops/activation.h"
#include "ops/attention.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/reference.h"
#include "ops/rotary.h"
#include "support.h"
#include "tensors/memory.h"

using namespace quell;
using quell::testing::random_tensor;

namespace {

// Milliseconds a call over about 5 ms of calls.
double time_of(const std::function<void()>& work, int calls) {
  const Timer timer;
  for (int i = 0; i < calls; ++i) work();
  return timer.seconds() * 1e3 / calls;
}

double median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + static_cast<long>(x.size()) / 2, x.end());
  return x[x.size() / 2];
}

std::string filter;

void compare(const std::string& name, const std::function<void()>& ours, const std::function<void()>& theirs) {
  if (name.find(filter) == std::string::npos) return;
  ours(), theirs();
  const int calls = std::max(1, static_cast<int>(5 / std::max(1e-3, time_of(theirs, 3))));
  std::vector<double> ratios, our_times, their_times;
  for (int pair = 0; pair < 15; ++pair) {
    our_times.push_back(time_of(ours, calls));
    their_times.push_back(time_of(theirs, calls));
    ratios.push_back(our_times.back() / their_times.back());
  }
  const auto least = [](const std::vector<double>& x) { return *std::min_element(x.begin(), x.end()); };
  std::printf("%-44s %9.3f %9.3f %7.2f %7.2f\n", name.c_str(), least(our_times), least(their_times), median(ratios),
              least(our_times) / least(their_times));
}

// f(inputs) and its backward with fixed cotangent. The first input's gradient is made anew, as inside a network; the others are
// parameters with bound gradients.
std::function<void()> pass(const testing::Function& f, std::vector<at::Tensor> inputs, size_t parameters_from) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    inputs[i] = inputs[i].detach().clone().requires_grad_(true);
    if (i < parameters_from) continue;
    inputs[i].set_grad_dtype(at::kFloat);
    inputs[i].mutable_grad() = at::zeros(inputs[i].sizes(), at::kFloat);
  }
  const at::Tensor cotangent = random_tensor(f(inputs).sizes(), 99, inputs[0].scalar_type());
  return [=] {
    f(inputs).backward(cotangent);
    for (size_t i = 0; i < parameters_from; ++i) inputs[i].mutable_grad() = at::Tensor();
  };
}

std::string label(const char* what, at::IntArrayRef shape, at::ScalarType type) {
  std::string text = std::string(what) + " [";
  for (const int64_t n : shape) text += std::to_string(n) + ",";
  text.back() = ']';
  return text + (type == at::kFloat ? " fp32" : " bf16");
}

void norms(at::ScalarType type) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{2, 1024, 12, 64}, {12, 64, 4, 32}, {2, 1024, 768}, {2, 1024, 12, 128}}) {
    const at::Tensor x = random_tensor(shape, 1, type), weight = at::ones({shape.back()}), bias = at::zeros({shape.back()});
    const auto theirs = pass([&](const auto& in) { return at::layer_norm(in[0], {shape.back()}, in[1], in[2], 1e-6); },
                             {x, weight.to(type), bias.to(type)}, 1);
    const auto ours = [](NormKind kind) {
      return [=](const auto& in) { return ops::norm(in[0], in[1], in.size() > 2 ? in[2] : at::Tensor(), {kind}); };
    };
    compare(label("rmsnorm / at::layer_norm", shape, type), pass(ours(NormKind::rmsnorm), {x, weight}, 1), theirs);
    compare(label("layernorm / at::layer_norm", shape, type), pass(ours(NormKind::layernorm), {x, weight, bias}, 1), theirs);
  }
}

void activations(at::ScalarType type) {
  const at::Tensor x = random_tensor({1024, 1536}, 2, type), up = random_tensor({1024, 1536}, 3, type);
  const auto one = [&](MlpKind kind, const testing::Function& theirs) {
    compare(label(name_of(kind), x.sizes(), type), pass([=](const auto& in) { return ops::activate(in[0], kind); }, {x}, 1),
            pass(theirs, {x}, 1));
  };
  one(MlpKind::gelu, [](const auto& in) { return at::gelu(in[0]); });
  one(MlpKind::gelu_tanh, [](const auto& in) { return at::gelu(in[0], "tanh"); });
  one(MlpKind::relu_squared, [](const auto& in) { return at::relu(in[0]).square(); });
  const auto two = [&](MlpKind kind, const testing::Function& theirs) {
    compare(label(name_of(kind), x.sizes(), type),
            pass([=](const auto& in) { return ops::gated(in[0], in[1], kind); }, {x, up}, 2), pass(theirs, {x, up}, 2));
  };
  two(MlpKind::swiglu, [](const auto& in) { return at::silu(in[0]) * in[1]; });
  two(MlpKind::geglu, [](const auto& in) { return at::gelu(in[0]) * in[1]; });
  two(MlpKind::geglu_tanh, [](const auto& in) { return at::gelu(in[0], "tanh") * in[1]; });
}

void rotations(at::ScalarType type) {
  const auto table = ops::rotary_table({10000, 64, RopePairing::halves, {}}, 1024, at::kFloat, at::kCPU);
  const at::Tensor x = random_tensor({2, 1024, 12, 64}, 4, type);
  for (const auto pairing : {RopePairing::halves, RopePairing::interleaved}) {
    const auto f = [&](Kernels kernels) {
      return [=](const auto& in) { return ops::rotate(in[0], table.cos_TR, table.sin_TR, pairing, kernels); };
    };
    compare(label((std::string("rotary ") + name_of(pairing) + " / twin").c_str(), x.sizes(), type),
            pass(f(Kernels::fused), {x}, 1), pass(f(Kernels::reference), {x}, 1));
  }
}

void products(at::ScalarType type) {
  const at::Tensor x = random_tensor({256, 768}, 5, type), weight = random_tensor({3072, 768}, 6, type),
                   bias = at::zeros({3072}, type);
  const auto bound = [&](Kernels kernels, int64_t vocabulary) {
    return [=](const auto& in) {
      return vocabulary > 0 ? ops::output_logits(in[0], in[1], kernels) : ops::linear(in[0], in[1], in[2], kernels);
    };
  };
  compare(label("linear with bias / at::linear", weight.sizes(), type), pass(bound(Kernels::fused, 0), {x, weight, bias}, 1),
          pass(bound(Kernels::reference, 0), {x, weight, bias}, 1));
  for (const std::vector<int64_t>& size : {std::vector<int64_t>{768, 128, 128}, {768, 512, 128}, {768, 128, 512}, {768, 352, 128},
                                           {768, 256, 256}, {8192, 128, 128}, {8192, 256, 64}, {8192, 64, 256}, {768, 768, 768}}) {
    const at::Tensor rows = random_tensor({size[0], size[2]}, 12, type), matrix = random_tensor({size[1], size[2]}, 13, type);
    const auto without_bias = [&](Kernels kernels) { return [=](const auto& in) { return ops::linear(in[0], in[1], {}, kernels); }; };
    compare(label("linear / at::linear", size, type), pass(without_bias(Kernels::fused), {rows, matrix}, 1),
            pass(without_bias(Kernels::reference), {rows, matrix}, 1));
  }
  const at::Tensor head = random_tensor({50257, 768}, 7, type);
  compare(label("output_logits / at::linear", head.sizes(), type), pass(bound(Kernels::fused, 1), {x, head}, 1),
          pass(bound(Kernels::reference, 1), {x, head}, 1));
  const at::Tensor tokens = (testing::uniform_tensor({1024}, 8, 0, 1).square() * 50257).to(at::kLong);
  const auto rows = [&](Kernels kernels) { return [=](const auto& in) { return ops::embedding(in[0], tokens, kernels); }; };
  compare(label("embedding / at::embedding", head.sizes(), type), pass(rows(Kernels::fused), {head}, 0),
          pass(rows(Kernels::reference), {head}, 0));
}

void attentions(at::ScalarType type) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{12, 64, 4, 32}, {4, 64, 12, 64}, {1, 1024, 12, 64}, {1, 1024, 8, 128}}) {
    const at::Tensor q = random_tensor(shape, 9, type), k = random_tensor(shape, 10, type), v = random_tensor(shape, 11, type);
    const double scale = 1 / std::sqrt(static_cast<double>(shape.back()));
    const auto theirs = [=](const auto& in) {
      const auto turned = [&](size_t i) { return in[i].transpose(1, 2); };
      return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(turned(0), turned(1), turned(2), 0, true, {}, scale))
          .transpose(1, 2);
    };
    const auto ours = [=](const auto& in) { return ops::attention(in[0], in[1], in[2], {.scale = scale}).out_BTHD; };
    compare(label("causal attention / LibTorch's flash", shape, type), pass(ours, {q, k, v}, 3), pass(theirs, {q, k, v}, 3));
  }
}

}  // namespace

int main(int count, char** arguments) {
  keep_step_memory();
  if (count > 2) filter = arguments[2];
  at::set_num_threads(count > 1 ? std::atoi(arguments[1]) : 1);
  std::printf("%d threads; ms forward and backward\n%-44s %9s %9s %7s %7s\n", at::get_num_threads(), "", "ours, min", "theirs",
              "ratio", "of min");
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    norms(type);
    activations(type);
    rotations(type);
    products(type);
    attentions(type);
  }
}
