// The kernels of one instruction set, gathered (compiled once for each of them, as the kernels are).
#include "ops/isa.h"

#define QUELL_NAME_OF(isa) #isa
#define QUELL_NAME(isa) QUELL_NAME_OF(isa)

namespace quell::ops::QUELL_ISA {

extern const NormKernels norm_kernels;
extern const ActivationKernels activation_kernels;
extern const RotaryKernels rotary_kernels;
extern const LossKernels loss_kernels;
extern const FlashKernels flash_kernels;
extern const ProductKernels product_kernels;

extern const CpuKernels kernel_set{QUELL_NAME(QUELL_ISA), norm_kernels, activation_kernels, rotary_kernels, loss_kernels,
                                   flash_kernels, product_kernels};

}  // namespace quell::ops::QUELL_ISA
