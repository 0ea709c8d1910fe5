# SPDX-License-Identifier: Apache-2.0
# One static library per folder, one precompiled header for all of them.

include(${CMAKE_CURRENT_LIST_DIR}/batches.cmake)

add_library(muster_flags INTERFACE)
# -fPIC also for executables: the precompiled header is shared by all targets and must be built alike.
target_compile_options(muster_flags INTERFACE -fPIC)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(muster_flags INTERFACE -Wall -Wextra -Wpedantic -Wno-missing-field-initializers -Wno-psabi -Wno-mismatched-new-delete -fpch-preprocess)
  # The compiler's own garbage collection costs a tenth of a build; these translation units fit into memory without it.
  target_compile_options(muster_flags INTERFACE --param ggc-min-heapsize=600000)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # A header's time stamp in the precompiled header would spoil the compiler cache.
  target_compile_options(muster_flags INTERFACE -Wall -Wextra -Wpedantic -Wno-missing-field-initializers -Xclang -fno-pch-timestamp
    -Wno-deprecated-declarations)  # libstdc++ 12's own std::stable_sort calls what C++17 deprecated

endif()
if(MUSTER_WERROR)
  target_compile_options(muster_flags INTERFACE -Werror)
endif()
# Hardening of everything that ships; tools/check-hardening looks at the binaries (tests/hardening). Executables are position independent (-pie).
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)
# operator[] past the end, front() of something empty: what the sanitizers cannot see either.
target_compile_definitions(muster_flags INTERFACE _GLIBCXX_ASSERTIONS)
set(hardening_compile -fstack-protector-strong -fstack-clash-protection)
# Returns and jumps only to where they belong, as far as the processor has it.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL aarch64)
  list(APPEND hardening_compile -mbranch-protection=standard)
else()
  list(APPEND hardening_compile -fcf-protection)
endif()
# glibc checks calls only in code that is optimized, and warns in other code (preset dev); tests/hardening proves the flags on a probe.
set(hardening_fortify -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
if(NOT CMAKE_CXX_FLAGS MATCHES "-O0")
  foreach(flag ${hardening_fortify})
    list(APPEND hardening_compile $<$<NOT:$<BOOL:$<TARGET_PROPERTY:MUSTER_IS_TEST>>>:${flag}>)
  endforeach()
endif()
set(hardening_link -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
if(NOT MUSTER_SANITIZE)
  target_compile_options(muster_flags INTERFACE ${hardening_compile})
endif()
target_link_options(muster_flags INTERFACE ${hardening_link})
# The same alone, for programs that sanitizers stay out of and that do without the flags of the others.
add_library(muster_hardening INTERFACE)
target_compile_definitions(muster_hardening INTERFACE _GLIBCXX_ASSERTIONS)
target_compile_options(muster_hardening INTERFACE ${hardening_compile})
target_link_options(muster_hardening INTERFACE ${hardening_link})
if(MUSTER_SANITIZE)
  target_compile_options(muster_flags INTERFACE -fsanitize=${MUSTER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)  # its manual says it: with sanitizers this warning is often wrong (here on std::regex's own variables)
    target_compile_options(muster_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
  if(MUSTER_SANITIZE MATCHES undefined AND CMAKE_CXX_COMPILER_ID MATCHES Clang)  # libraries loaded at run time have types of their own for what we declare
    target_compile_options(muster_flags INTERFACE -fno-sanitize=function)
  endif()
  if(MUSTER_SANITIZE MATCHES thread)  # it does not know fences; Asio's own queues have mutexes too
    target_compile_definitions(muster_flags INTERFACE BOOST_ASIO_DISABLE_FENCED_BLOCK)
  endif()
  target_link_options(muster_flags INTERFACE -fsanitize=${MUSTER_SANITIZE})
endif()
target_compile_definitions(muster_flags INTERFACE BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_DISABLE_BOOST_DATE_TIME)
target_include_directories(muster_flags INTERFACE ${PROJECT_SOURCE_DIR})

# Without optimization, half of what a compiler makes of a file are copies of what headers define inline. Clang can make the code of a
# precompiled header once, in an object of its own: every program links that, optimized (docs/adr/0422).
if(CMAKE_CXX_COMPILER_ID MATCHES Clang AND CMAKE_CXX_FLAGS MATCHES "-O0" AND NOT MUSTER_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  set(MUSTER_PCH_CODE ON)
else()
  set(MUSTER_PCH_CODE OFF)
endif()

# muster_pch_code(PCH HEADERS OPTIONS...): the library PCH_code with the code of the precompiled header of target PCH, into which HEADERS go too:
# what they instantiate no other file does.
function(muster_pch_code pch headers)
  add_library(${pch}_code INTERFACE)
  if(NOT MUSTER_PCH_CODE)
    return()
  endif()
  target_precompile_headers(${pch} PRIVATE ${headers})
  target_compile_options(${pch} PRIVATE "SHELL:-Xclang -fmodules-codegen")
  set(header ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${pch}.dir/cmake_pch.hxx.pch)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${pch}_code.o)
  set(archive ${CMAKE_CURRENT_BINARY_DIR}/lib${pch}_code.a)
  add_custom_command(OUTPUT ${archive} BYPRODUCTS ${object}
    COMMAND ${CMAKE_CXX_COMPILER} ${ARGN} -g1 -fPIC -ffunction-sections ${hardening_compile} -c ${header} -o ${object}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
    COMMAND ${CMAKE_AR} qc ${archive} ${object}
    DEPENDS ${header} VERBATIM)
  # By its path: a target would have to be made before anything that is linked with it is compiled. Among the options, which come first: of a
  # template that several objects hold, the linker keeps the first.
  add_custom_target(${pch}_code_archive ALL DEPENDS ${archive})
  set_property(TARGET ${pch}_code PROPERTY INTERFACE_LINK_DEPENDS ${archive})
  # What no program needs may name what the standard library keeps to itself. A shared library would keep it, if it exported it.
  target_link_options(${pch}_code INTERFACE ${archive} -Wl,--gc-sections -Wl,--exclude-libs=lib${pch}_code.a)
endfunction()

# muster_library(NAME [OPTIMIZED] SOURCES... LINKS...): static library muster_NAME, alias muster::NAME. OPTIMIZED: in every build, for what
# measures and would be measured itself (preset dev), and for what simulations and crash sweeps of the tests spend their time in.
function(muster_library name)
  cmake_parse_arguments(ARG "OPTIMIZED" "" "SOURCES;LINKS" ${ARGN})
  if(MUSTER_BATCHES)
    muster_in_batches(ARG_SOURCES ${name} 16 ${ARG_SOURCES})
  endif()
  add_library(muster_${name} STATIC ${ARG_SOURCES})
  add_library(muster::${name} ALIAS muster_${name})
  target_link_libraries(muster_${name} PUBLIC muster_flags ${ARG_LINKS})
  if(ARG_OPTIMIZED AND NOT MUSTER_SANITIZE)
    target_compile_options(muster_${name} PRIVATE -O2)
    muster_use_pch(muster_${name} muster_pch_optimized)
  else()
    muster_use_pch(muster_${name})
  endif()
endfunction()

# Linked first into each program: of templates that many objects hold, the linker keeps the first. The code of the precompiled header has them.
set(MUSTER_OPTIMIZED_TEMPLATES "")
if(NOT MUSTER_SANITIZE AND NOT MUSTER_PCH_CODE)
  set(MUSTER_OPTIMIZED_TEMPLATES $<TARGET_OBJECTS:muster_optimized_templates>)
endif()

function(muster_executable name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  if(MUSTER_BATCHES)
    muster_in_batches(ARG_SOURCES ${name} 16 ${ARG_SOURCES})
  endif()
  add_executable(${name} ${MUSTER_OPTIMIZED_TEMPLATES} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE muster_flags ${ARG_LINKS})
  muster_use_pch(${name})
endfunction()

# muster_carried(TARGET): a program that the image writer brings to nodes (docs/adr/0228). Libraries are found beside it, and the C library in
# glibc/ there, by an RPATH, which unlike a RUNPATH holds for libraries of libraries. The parts of the C library that are empty since glibc 2.34
# are named all the same: a library of the node that asks for them must get those that fit, not an older system's.
function(muster_carried target)
  target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
  set_target_properties(${target} PROPERTIES BUILD_RPATH "\$ORIGIN:\$ORIGIN/glibc" INSTALL_RPATH "\$ORIGIN:\$ORIGIN/glibc")
  target_link_libraries(${target} PRIVATE -Wl,--push-state,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 -l:librt.so.1 -Wl,--pop-state)
endfunction()

# muster_test(NAME [WHOLE] [APART] SOURCES... LINKS... [LABELS unit|system|lab|gpu] [TIMEOUT s]): one GoogleTest executable per folder,
# found by ctest. WHOLE: one test to ctest, for a program whose tests share something that is dear to start. APART: tests with daemons that
# may run beside each other, because each has a namespace and a folder of its own.
function(muster_test name)
  cmake_parse_arguments(ARG "WHOLE;APART" "TIMEOUT" "SOURCES;LINKS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)  # a guard against hanging only: on a busy machine a test may take minutes
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)  # an empty value would swallow the property after it
  endif()
  if(MUSTER_BATCHES)
    muster_in_batches(ARG_SOURCES ${name}_test 24 ${ARG_SOURCES})
  endif()
  add_executable(${name}_test ${MUSTER_OPTIMIZED_TEMPLATES} ${ARG_SOURCES})
  target_link_libraries(${name}_test PRIVATE muster_flags muster_test_support ${ARG_LINKS} GTest::gmock GTest::gtest_main)
  muster_use_pch(${name}_test muster_test_pch)
  muster_compile_as_test(${name}_test)
  if(ARG_WHOLE)
    add_test(NAME ${name} COMMAND ${name}_test)
    set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABELS} TIMEOUT ${ARG_TIMEOUT})
    return()
  endif()
  set(lock "")
  if(NOT ARG_LABELS STREQUAL unit AND NOT ARG_APART)
    set(lock RESOURCE_LOCK ${name})  # tests with daemons run one at a time in their executable, beside those of another
  endif()
  gtest_discover_tests(${name}_test PROPERTIES LABELS ${ARG_LABELS} ${lock} TIMEOUT ${ARG_TIMEOUT} DISCOVERY_TIMEOUT 60)
endfunction()

# Tests are compiled for a fast build (preset dev: without optimization, which halves their compile time); what they test keeps its flags.
function(muster_compile_as_test target)
  set_target_properties(${target} PROPERTIES MUSTER_IS_TEST ON)
  target_compile_options(${target} PRIVATE ${MUSTER_TEST_FLAGS})
endfunction()

function(muster_use_pch target)
  set(pch muster_pch)
  if(ARGC GREATER 1)
    set(pch ${ARGV1})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${pch})
  target_link_libraries(${target} PRIVATE muster_pch_code)
  if(pch STREQUAL muster_test_pch)
    target_link_libraries(${target} PRIVATE muster_test_pch_code)
  endif()
  target_link_libraries(${target} PRIVATE Threads::Threads)
endfunction()
