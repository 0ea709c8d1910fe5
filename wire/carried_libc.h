// SPDX-License-Identifier: Apache-2.0
// Where muster's programs have their C library on nodes (docs/adr/0228). The image writer puts
// these files into agent.img; the agent copies them to the system that it installs.
//
//   /usr/lib/muster/ld.so    link to the loader that muster's programs name (PT_INTERP):
//                            glibc/ld-linux-x86-64.so.2 (of arm64
//                            glibc/ld-linux-aarch64.so.1), or the system's own where that is newer
//   /usr/lib/muster/glibc/   the C library of the machine that built muster
#pragma once

namespace muster::wire {

inline constexpr const char* kProgramFolder = "usr/lib/muster";
/// Not longer than the loaders of the processors (base/architecture.h), whose place in the programs
/// it takes.
inline constexpr const char* kProgramLoader = "/usr/lib/muster/ld.so";
inline constexpr const char* kProgramLoaderName = "ld.so";
inline constexpr const char* kCarriedLibcFolder = "glibc";
inline constexpr const char* kLibcName = "libc.so.6";

}  // namespace muster::wire
