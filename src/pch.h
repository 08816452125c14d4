// The one precompiled header of all torch-using rooms. It holds ATen and the base class of autograd functions, not
// torch/torch.h: Quell owns its parameters (tensors/parameter.h), so the C++ frontend's modules are not needed.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>
