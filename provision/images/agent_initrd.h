// SPDX-License-Identifier: Apache-2.0
// agent.img: the small initrd that brings muster-agent, and the shared libraries it needs, into the
// RAM OS.
//
// Libraries travel beside the agent (in /usr/lib/muster, found by its RPATH $ORIGIN), so neither
// the RAM OS nor an image has to have them. The C library and its loader travel too, in a folder of
// their own, and the programs name that loader: they run on systems with an older one
// (docs/adr/0228).
#pragma once

#include "base/architecture.h"
#include "base/result.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace muster::provision {

struct AgentFile {
  std::filesystem::path source;
  std::string target;  ///< "usr/lib/muster/muster-agent"
  /// A program: it is written so that the kernel starts it by the carried loader.
  bool program = false;
  std::string link;  ///< a symbolic link to this, without a source
};

/// The agent, the programs that it starts (muster-peer, muster-burn, muster-collective) where they
/// lie beside it, what the loader says they need, and the C library with its loader. CUDA's own
/// libraries come with the node's image. Errors: NotFound (the binary, or a library that is not
/// installed), InvalidInput (not linked with the RPATH)
/// Of another processor than this machine's, as `./run build arm64` leaves it: libraries lie beside
/// it, the C library in glibc/.
Result<std::vector<AgentFile>> agentFiles(const std::filesystem::path& agent_binary);
/// "…/muster-agent" of this machine's processor, "…/arm64/muster-agent" of another.
std::filesystem::path agentFor(const std::filesystem::path& agent_binary,
                               Architecture architecture);
/// Where the programs and parts may lie that go with the agent; they need not be there.
std::vector<std::filesystem::path> agentPrograms(const std::filesystem::path& agent_binary);
/// Libraries to carry but the C library's, from the text that ldd prints. Errors: NotFound
Result<std::vector<std::filesystem::path>> librariesToCarry(std::string_view ldd_output);
/// The program, started by /usr/lib/muster/ld.so: its PT_INTERP is written over, in its place.
/// Errors: InvalidInput (no ELF program, or the name of its loader is too short to be replaced)
Result<std::string> withCarriedLoader(std::string program);
/// SHA-256 over names and content.
Result<std::string> agentFilesDigest(const std::vector<AgentFile>& files);
/// A newc cpio archive, compressed with zstd.
Result<void> writeAgentInitrd(const std::vector<AgentFile>& files,
                              const std::filesystem::path& out);

}  // namespace muster::provision
