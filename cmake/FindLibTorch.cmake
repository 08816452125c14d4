# Finds LibTorch inside the official Python wheel and makes imported targets, without running Python and without
# find_package(Torch): the wheel's own package files demand a CUDA toolkit even where only the CPU part is linked.
#
#   LibTorch::cpu    headers, libtorch_cpu, libc10 and the OpenMP runtime that libtorch_cpu itself loads
#   LibTorch::cuda   the above with libtorch_cuda, libc10_cuda and the wheel's CUDA runtime; only with QUELL_CUDA, which needs
#                    the full wheel (the driver is not linked: the program also starts where there is none)
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
# For C++ only: .cu files take raw pointers and include no torch header, which would cost nvcc 19 s a file.
# -idirafter: the wheel carries fmt 12 and other packages' headers, which must not shadow the system's.
target_compile_options(LibTorch::cpu INTERFACE
  "SHELL:$<$<COMPILE_LANGUAGE:CXX>:-idirafter ${LibTorch_INCLUDE}>"
  "SHELL:$<$<COMPILE_LANGUAGE:CXX>:-idirafter ${LibTorch_INCLUDE}/torch/csrc/api/include>"
  -fopenmp)
target_link_libraries(LibTorch::cpu INTERFACE ${LibTorch_CPU} ${LibTorch_C10} ${LibTorch_GOMP})
target_link_options(LibTorch::cpu INTERFACE -Wl,-rpath,${QUELL_TORCH}/lib
  -Wl,-rpath-link,${QUELL_TORCH}/../nvidia/cu13/lib)

if(QUELL_CUDA)
  set(_cuda ${QUELL_TORCH}/../nvidia/cu13/lib)
  find_library(LibTorch_CUDA torch_cuda PATHS ${QUELL_TORCH}/lib NO_DEFAULT_PATH)
  find_library(LibTorch_C10_CUDA c10_cuda PATHS ${QUELL_TORCH}/lib NO_DEFAULT_PATH)
  find_file(LibTorch_CUDART libcudart.so.13 PATHS ${_cuda} NO_DEFAULT_PATH)
  # libtorch_cuda lies in .deps too, but cannot be loaded there: what it needs is missing, cuBLAS for one.
  find_file(LibTorch_CUBLAS libcublas.so.13 PATHS ${_cuda} NO_DEFAULT_PATH)
  if(NOT LibTorch_CUDA OR NOT LibTorch_C10_CUDA OR NOT LibTorch_CUDART OR NOT LibTorch_CUBLAS)
    message(FATAL_ERROR "the wheel in ${QUELL_TORCH} lacks its CUDA part: run scripts/setup --cuda, or set QUELL_CUDA=OFF")
  endif()
  add_library(LibTorch::cuda INTERFACE IMPORTED)
  # --no-as-needed: nothing refers to libtorch_cuda by symbol, and without it its operators are not registered. One item, or
  # CMake may move a library out from between the flags.
  target_link_libraries(LibTorch::cuda INTERFACE LibTorch::cpu
    "-Wl,--push-state,--no-as-needed,${LibTorch_CUDA},${LibTorch_C10_CUDA},--pop-state" ${LibTorch_CUDART})
endif()
mark_as_advanced(LibTorch_CPU LibTorch_C10 LibTorch_GOMP LibTorch_INCLUDE LibTorch_CUDA LibTorch_C10_CUDA LibTorch_CUDART
  LibTorch_CUBLAS)
