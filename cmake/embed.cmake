# SPDX-License-Identifier: Apache-2.0
# muster_embed(TARGET NAMESPACE n FUNCTION f FOLDER d FILES a b…): puts files into the binary, so that it needs no source tree.
# The target gets `std::span<const EmbeddedFile> n::f()` (base/embedded.h); the caller declares it. Editing a file rebuilds what embeds it.
if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  string(REPLACE "|" ";" files "${FILES}")
  set(body "// Made by cmake/embed.cmake. Do not edit.\n#include \"base/embedded.h\"\n\nnamespace ${NAMESPACE} {\n\nnamespace {\n")
  set(table "")
  set(number 0)
  foreach(file ${files})
    file(READ "${FOLDER}/${file}" content HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${content}")
    string(APPEND body "constexpr unsigned char kFile${number}[] = {${bytes}0};\n")
    string(APPEND table "    {\"${file}\", {reinterpret_cast<const char*>(kFile${number}), sizeof(kFile${number}) - 1}},\n")
    math(EXPR number "${number} + 1")
  endforeach()
  string(APPEND body "const EmbeddedFile kFiles[] = {\n${table}};\n}  // namespace\n\n")
  string(APPEND body "std::span<const EmbeddedFile> ${FUNCTION}() { return kFiles; }\n\n}  // namespace ${NAMESPACE}\n")
  file(WRITE "${OUT}" "${body}")
  return()
endif()

set(MUSTER_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
function(muster_embed target)
  cmake_parse_arguments(ARG "" "NAMESPACE;FUNCTION;FOLDER" "FILES" ${ARGN})
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${target}_${ARG_FUNCTION}.cc)
  set(depends ${ARG_FILES})
  list(TRANSFORM depends PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_FOLDER}/)
  string(REPLACE ";" "|" joined "${ARG_FILES}")
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DNAMESPACE=${ARG_NAMESPACE} -DFUNCTION=${ARG_FUNCTION} -DFOLDER=${CMAKE_CURRENT_SOURCE_DIR}/${ARG_FOLDER}
            "-DFILES=${joined}" -DOUT=${out} -P ${MUSTER_EMBED_SCRIPT}
    DEPENDS ${depends} ${MUSTER_EMBED_SCRIPT} VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()
