# SPDX-License-Identifier: Apache-2.0
# What is installed where (docs/adr/0300). All programs lie in one folder, as in a build folder, because they look for each other beside
# themselves; what a person types is a link into it.
set(MUSTER_PROGRAM_FOLDER lib/muster)
set(muster_programs "")
foreach(program muster muster-signer muster-fetch muster-agent muster-peer muster-burn muster-collective muster-pkeys muster-ibnetdisc muster-switchfw muster-vbmc muster-fleet)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${MUSTER_PROGRAM_FOLDER})
    list(APPEND muster_programs ${program})
  endif()
endforeach()
# CUDA's parts: beside muster-burn and muster-collective.
foreach(library muster-burn-cuda muster-collective-nccl)
  if(TARGET ${library})
    install(TARGETS ${library} LIBRARY DESTINATION ${MUSTER_PROGRAM_FOLDER})
    list(APPEND muster_programs ${library})
  endif()
endforeach()
# The simulated NVML of the twin's nodes: a file that is copied to them, under its name there.
install(FILES $<TARGET_FILE:muster_sim_nvml> DESTINATION ${MUSTER_PROGRAM_FOLDER}/lab RENAME libnvidia-ml.so.1)
install(PROGRAMS $<TARGET_FILE:muster_sim_nvidia_smi> DESTINATION ${MUSTER_PROGRAM_FOLDER}/lab)
list(APPEND muster_programs muster_sim_nvml muster_sim_nvidia_smi)
install(CODE [[
  file(MAKE_DIRECTORY "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/bin")
  file(CREATE_LINK ../lib/muster/muster "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/bin/muster" SYMBOLIC)
]])

# Manual pages and completion scripts are the command tree's: the program prints them.
set(MUSTER_MANUAL ${CMAKE_BINARY_DIR}/manual)
add_custom_command(OUTPUT ${MUSTER_MANUAL}/made
  COMMAND ${PROJECT_SOURCE_DIR}/packaging/make-manual $<TARGET_FILE:muster> ${MUSTER_MANUAL}
  DEPENDS muster ${PROJECT_SOURCE_DIR}/packaging/make-manual VERBATIM)
add_custom_target(muster_manual DEPENDS ${MUSTER_MANUAL}/made)
install(DIRECTORY ${MUSTER_MANUAL}/man1 DESTINATION share/man FILES_MATCHING PATTERN "*.1")
install(FILES ${MUSTER_MANUAL}/muster.bash DESTINATION share/bash-completion/completions RENAME muster)
install(FILES ${MUSTER_MANUAL}/muster.zsh DESTINATION share/zsh/vendor-completions RENAME _muster)
install(FILES ${MUSTER_MANUAL}/muster.fish DESTINATION share/fish/vendor_completions.d)

install(FILES packaging/systemd/muster-server.service packaging/systemd/muster-monitor.service packaging/systemd/muster-build.socket packaging/systemd/muster-build@.service packaging/systemd/muster-fetch.socket packaging/systemd/muster-fetch@.service packaging/systemd/muster-dnsmasq.socket packaging/systemd/muster-dnsmasq.service
  packaging/systemd/muster-subnet-manager.socket packaging/systemd/muster-subnet-manager.service packaging/systemd/muster-signer.socket packaging/systemd/muster-signer.service DESTINATION lib/systemd/system)
install(PROGRAMS packaging/systemd/own-state DESTINATION ${MUSTER_PROGRAM_FOLDER})
install(FILES packaging/systemd/60-muster-fabric.rules DESTINATION lib/udev/rules.d)
install(FILES packaging/systemd/muster.sysusers DESTINATION lib/sysusers.d RENAME muster.conf)
install(FILES packaging/systemd/muster.tmpfiles DESTINATION lib/tmpfiles.d RENAME muster.conf)
install(FILES packaging/examples/cluster.yaml packaging/examples/muster.conf DESTINATION share/doc/muster/examples)
install(FILES packaging/monitoring/muster.rules.yml packaging/monitoring/muster.rules_test.yml packaging/monitoring/muster-dashboard.json DESTINATION share/muster/monitoring)
install(DIRECTORY examples/lab DESTINATION share/doc/muster-lab/examples)
# As in the tree, so that links between pages hold.
install(DIRECTORY docs DESTINATION share/doc/muster-doc/pages FILES_MATCHING PATTERN "*.md" PATTERN "*.json")
install(FILES README.md CHANGELOG.md SECURITY.md CONTRIBUTING.md DESTINATION share/doc/muster-doc/pages)

# All that `cmake --install` wants to find.
add_custom_target(muster_package DEPENDS ${muster_programs} muster_manual)
