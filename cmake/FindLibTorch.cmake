# Finds LibTorch inside the official Python wheel and makes imported targets, without running Python and without
# find_package(Torch): the wheel's own package files demand a CUDA toolkit even where only the CPU part is linked.
#
#   LibTorch::cpu    headers, libtorch_cpu, libc10 and the OpenMP runtime that libtorch_cpu itself loads
#   LibTorch::cuda   the above with libtorch_cuda and libc10_cuda; only where the full wheel is installed
#
# Input: QUELL_TORCH, the wheel's `torch` folder (default: .deps/torch, or .deps-cuda/torch when QUELL_CUDA is on).

set(_default .deps)
if(QUELL_CUDA)
  set(_default .deps-cuda)
endif()
set(QUELL_TORCH "${CMAKE_SOURCE_DIR}/${_default}/torch" CACHE PATH "The torch folder of an installed wheel")

find_library(LibTorch_CPU torch_cpu PATHS ${QUELL_TORCH}/lib NO_DEFAULT_PATH)
find_library(LibTorch_C10 c10 PATHS ${QUELL_TORCH}/lib NO_DEFAULT_PATH)
find_file(LibTorch_GOMP libgomp.so.1 PATHS ${QUELL_TORCH}/lib NO_DEFAULT_PATH)
find_path(LibTorch_INCLUDE ATen/ATen.h PATHS ${QUELL_TORCH}/include NO_DEFAULT_PATH)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_CPU LibTorch_C10 LibTorch_GOMP LibTorch_INCLUDE
  REASON_FAILURE_MESSAGE "no LibTorch in ${QUELL_TORCH}: run scripts/setup, or set QUELL_TORCH")

file(STRINGS ${LibTorch_INCLUDE}/torch/headeronly/version.h _version REGEX "define TORCH_VERSION ")
string(REGEX REPLACE ".*\"([^\"]*)\".*" "\\1" LibTorch_VERSION "${_version}")

add_library(LibTorch::cpu INTERFACE IMPORTED)
# -idirafter: the wheel carries fmt 12 and other packages' headers, which must not shadow the system's.
target_compile_options(LibTorch::cpu INTERFACE
  "SHELL:-idirafter ${LibTorch_INCLUDE}" "SHELL:-idirafter ${LibTorch_INCLUDE}/torch/csrc/api/include" -fopenmp)
target_link_libraries(LibTorch::cpu INTERFACE ${LibTorch_CPU} ${LibTorch_C10} ${LibTorch_GOMP})
target_link_options(LibTorch::cpu INTERFACE -Wl,-rpath,${QUELL_TORCH}/lib
  -Wl,-rpath-link,${QUELL_TORCH}/../nvidia/cu13/lib)

find_library(LibTorch_CUDA torch_cuda PATHS ${QUELL_TORCH}/lib NO_DEFAULT_PATH)
find_library(LibTorch_C10_CUDA c10_cuda PATHS ${QUELL_TORCH}/lib NO_DEFAULT_PATH)
if(QUELL_CUDA)
  add_library(LibTorch::cuda INTERFACE IMPORTED)
  # --no-as-needed: nothing refers to libtorch_cuda by symbol, and without it its operators are not registered.
  target_link_libraries(LibTorch::cuda INTERFACE LibTorch::cpu
    -Wl,--no-as-needed ${LibTorch_CUDA} ${LibTorch_C10_CUDA} -Wl,--as-needed)
endif()
mark_as_advanced(LibTorch_CPU LibTorch_C10 LibTorch_GOMP LibTorch_INCLUDE LibTorch_CUDA LibTorch_C10_CUDA)
