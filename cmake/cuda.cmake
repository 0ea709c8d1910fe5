# SPDX-License-Identifier: Apache-2.0
# muster_cuda_object(VARIABLE FILE): compiles kernels by hand, because CMake 3.25 does not know that a newer nvcc speaks C++20.
# A100, H100 and H200; others by the last one's PTX.
function(muster_cuda_object variable file)
  get_filename_component(name ${file} NAME_WE)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.cu.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} -std=c++20 -O3 -I${PROJECT_SOURCE_DIR} -Xcompiler -fPIC
            -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90] -MD -MF ${object}.d
            -c -o ${object} ${CMAKE_CURRENT_SOURCE_DIR}/${file}
    DEPENDS ${file} DEPFILE ${object}.d VERBATIM)
  set(${variable} ${object} PARENT_SCOPE)
endfunction()
