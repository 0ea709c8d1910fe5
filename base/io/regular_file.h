// SPDX-License-Identifier: Apache-2.0
// Reading what somebody else has named: only a regular file, and no more of it than is wanted.
#pragma once

#include "base/result.h"

#include <filesystem>
#include <string>

namespace muster::io {

/// A regular file whole. A FIFO would hold the reader up for ever, a device may act on being opened
/// or never end. Shape:  path × limit → content Units:  bytes Errors: NotFound, Denied,
/// InvalidInput (a FIFO, device, socket or folder; larger than the limit). No text names any of the
/// content. Source: open(2) O_NONBLOCK does not wait for a FIFO's writer; fstat(2) of what was
/// opened, so that nobody changes it in between
Result<std::string> readRegularFile(const std::filesystem::path& path, std::size_t max_bytes);

/// "a FIFO", "a device", "a socket", "a folder"; empty: a regular file, or nothing is there.
std::string irregularKind(const std::filesystem::path& path);

}  // namespace muster::io
