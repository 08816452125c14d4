# Enables the language CUDA for QUELL_CUDA=ON: finds nvcc, chooses architectures, and holds the toolkit against the wheel.
# Needs no GPU and no driver. The runtime that is linked is the wheel's own (LibTorch::cuda), so that the process has one.

# CMake looks along PATH only; NVIDIA's packages put nvcc elsewhere.
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(CMAKE_CUDA_COMPILER nvcc PATHS ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
  if(NOT CMAKE_CUDA_COMPILER)
    message(FATAL_ERROR "QUELL_CUDA needs nvcc 13, and there is none on the PATH or in /usr/local/cuda/bin: "
      "install the CUDA toolkit 13.0, name it by CUDACXX=/path/to/nvcc, or set QUELL_CUDA=OFF")
  endif()
endif()
# Machine code for A100 and H100 or H200, and an intermediate form that a driver translates for anything newer.
set(CMAKE_CUDA_ARCHITECTURES 80-real 90 CACHE STRING "CUDA architectures")
set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER} CACHE FILEPATH "The C++ compiler behind nvcc")
enable_language(CUDA)
# CMake 3.25 does not know that nvcc has C++20. Only after enable_language, whose own tests would fail with it.
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(CMAKE_CUDA_RUNTIME_LIBRARY None)
if(NOT CMAKE_CUDA_COMPILER_VERSION MATCHES "^13\\.")
  message(FATAL_ERROR "QUELL_CUDA needs nvcc 13, as the wheel's CUDA runtime is 13: "
    "${CMAKE_CUDA_COMPILER} is ${CMAKE_CUDA_COMPILER_VERSION}")
endif()
