# SPDX-License-Identifier: Apache-2.0
# Kernels for AMD GPUs, by the compiler of everything else: clang knows these targets, and neither ROCm's headers nor its libraries are used
# (adr/0368). An architecture that it does not know is compiled by a newer clang that is installed beside it, with its lld: gfx950 needs clang
# 20 or later (adr/0398). MUSTER_HIP_ARCHITECTURES: those of Instinct that one of them knows; empty: no HIP back end.

# muster_hip_compiler(ARCHITECTURE VARIABLE): the first that makes a code object of it, or nothing.
function(muster_hip_compiler architecture variable)
  set(compilers "")
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    list(APPEND compilers ${CMAKE_CXX_COMPILER})
  endif()
  foreach(version 24 23 22 21 20)
    find_program(MUSTER_CLANG_${version} clang++-${version})
    mark_as_advanced(MUSTER_CLANG_${version})
    if(MUSTER_CLANG_${version})
      list(APPEND compilers ${MUSTER_CLANG_${version}})
    endif()
  endforeach()
  foreach(compiler IN LISTS compilers)
    execute_process(COMMAND ${compiler} -x hip --offload-arch=${architecture} --cuda-device-only --no-gpu-bundle-output -nogpuinc -nogpulib -c -o ${CMAKE_CURRENT_BINARY_DIR}/probe.co /dev/null
                    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(failed EQUAL 0)
      set(${variable} ${compiler} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${variable} "" PARENT_SCOPE)
endfunction()

if(NOT DEFINED MUSTER_HIP_ARCHITECTURES)
  set(known "")
  foreach(architecture gfx90a gfx942 gfx950)
    muster_hip_compiler(${architecture} compiler)
    if(compiler)
      list(APPEND known ${architecture})
    endif()
  endforeach()
  set(MUSTER_HIP_ARCHITECTURES "${known}" CACHE STRING "AMD GPUs that kernels are compiled for")
  message(STATUS "AMD GPUs that kernels are compiled for: ${known}")
endif()
foreach(architecture ${MUSTER_HIP_ARCHITECTURES})
  if(NOT MUSTER_HIP_COMPILER_${architecture})
    muster_hip_compiler(${architecture} compiler)
    if(NOT compiler)
      message(FATAL_ERROR "no clang here compiles kernels for ${architecture} (gfx950: clang-20 or later, with its lld)")
    endif()
    set(MUSTER_HIP_COMPILER_${architecture} ${compiler} CACHE INTERNAL "that compiles kernels for ${architecture}")
  endif()
endforeach()

# muster_hip_code(TARGET NAMESPACE FUNCTION FILE): compiles a file for each architecture and puts the code objects into the target, by the
# architecture's name: `std::span<const EmbeddedFile> NAMESPACE::FUNCTION()`.
function(muster_hip_code target namespace function file)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${function})
  file(MAKE_DIRECTORY ${folder})
  set(objects "")
  foreach(architecture ${MUSTER_HIP_ARCHITECTURES})
    add_custom_command(OUTPUT ${folder}/${architecture}
      COMMAND ${MUSTER_HIP_COMPILER_${architecture}} -x hip --offload-arch=${architecture} --cuda-device-only --no-gpu-bundle-output -nogpuinc -nogpulib -std=c++20 -O3
              -Wall -Wextra -I${PROJECT_SOURCE_DIR} -MD -MT ${folder}/${architecture} -MF ${folder}/${architecture}.d
              -c -o ${folder}/${architecture} ${CMAKE_CURRENT_SOURCE_DIR}/${file}
      DEPENDS ${file} DEPFILE ${folder}/${architecture}.d VERBATIM)
    list(APPEND objects ${folder}/${architecture})
  endforeach()
  string(REPLACE ";" "|" names "${MUSTER_HIP_ARCHITECTURES}")
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${target}_${function}.cc)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DNAMESPACE=${namespace} -DFUNCTION=${function} -DFOLDER=${folder} "-DFILES=${names}" -DOUT=${out} -P ${MUSTER_EMBED_SCRIPT}
    DEPENDS ${objects} ${MUSTER_EMBED_SCRIPT} VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()
