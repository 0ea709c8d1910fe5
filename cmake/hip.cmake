# SPDX-License-Identifier: Apache-2.0
# Kernels for AMD GPUs, by the compiler of everything else: clang knows these targets, and neither ROCm's headers nor its libraries are used
# (adr/0368). MUSTER_HIP_ARCHITECTURES: those of Instinct that this clang knows; empty: no HIP back end.
if(NOT DEFINED MUSTER_HIP_ARCHITECTURES)
  set(known "")
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    foreach(architecture gfx90a gfx942 gfx950)
      execute_process(COMMAND ${CMAKE_CXX_COMPILER} -x hip --offload-arch=${architecture} --cuda-device-only -nogpuinc -nogpulib -c -o ${CMAKE_CURRENT_BINARY_DIR}/probe.co /dev/null
                      RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
      if(failed EQUAL 0)
        list(APPEND known ${architecture})
      endif()
    endforeach()
  endif()
  set(MUSTER_HIP_ARCHITECTURES "${known}" CACHE STRING "AMD GPUs that kernels are compiled for")
  message(STATUS "AMD GPUs that kernels are compiled for: ${known}")
endif()

# muster_hip_code(TARGET NAMESPACE FUNCTION FILE): compiles a file for each architecture and puts the code objects into the target, by the
# architecture's name: `std::span<const EmbeddedFile> NAMESPACE::FUNCTION()`.
function(muster_hip_code target namespace function file)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${function})
  file(MAKE_DIRECTORY ${folder})
  set(objects "")
  foreach(architecture ${MUSTER_HIP_ARCHITECTURES})
    add_custom_command(OUTPUT ${folder}/${architecture}
      COMMAND ${CMAKE_CXX_COMPILER} -x hip --offload-arch=${architecture} --cuda-device-only --no-gpu-bundle-output -nogpuinc -nogpulib -std=c++20 -O3
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
