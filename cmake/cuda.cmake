# SPDX-License-Identifier: Apache-2.0
# muster_cuda_object(VARIABLE FILE): compiles kernels by hand, because CMake 3.25 does not know that a newer nvcc speaks C++20.
# A100, H100 and H200, B200 (100) and B300 (103) where this nvcc knows them; others by the last one's PTX.
if(CUDAToolkit_NVCC_EXECUTABLE AND NOT DEFINED MUSTER_CUDA_ARCHITECTURES)
  execute_process(COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} --list-gpu-code OUTPUT_VARIABLE known ERROR_QUIET)
  set(chosen "")
  foreach(architecture 80 90 100 103)
    if(known MATCHES "sm_${architecture}([^0-9]|$)")
      list(APPEND chosen ${architecture})
    endif()
  endforeach()
  set(MUSTER_CUDA_ARCHITECTURES "${chosen}" CACHE STRING "compute capabilities that kernels are compiled for")
endif()
function(muster_cuda_object variable file)
  get_filename_component(name ${file} NAME_WE)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.cu.o)
  set(codes "")
  foreach(architecture ${MUSTER_CUDA_ARCHITECTURES})
    list(APPEND codes -gencode arch=compute_${architecture},code=sm_${architecture})
  endforeach()
  list(GET MUSTER_CUDA_ARCHITECTURES -1 last)
  list(APPEND codes -gencode arch=compute_${last},code=compute_${last})
  add_custom_command(OUTPUT ${object}
    COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} -std=c++20 -O3 -I${PROJECT_SOURCE_DIR} -Xcompiler -fPIC
            ${codes} -MD -MF ${object}.d
            -c -o ${object} ${CMAKE_CURRENT_SOURCE_DIR}/${file}
    DEPENDS ${file} DEPFILE ${object}.d VERBATIM)
  set(${variable} ${object} PARENT_SCOPE)
endfunction()
