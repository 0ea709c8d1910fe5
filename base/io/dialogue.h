// SPDX-License-Identifier: Apache-2.0
// Seam: a byte stream in both directions, to a program that is talked to for as long as it runs, or
// to a socket or a terminal device.
#pragma once

#include "base/io/process.h"

#include <memory>
#include <string>

namespace muster::io {

inline constexpr std::size_t kDialoguePieceBytes = 4096;

/// Nothing is read ahead: what is not asked for waits at its sender. One reader and one writer at a
/// time; destroying it ends it.
class Dialogue {
 public:
  virtual ~Dialogue() = default;
  /// The next piece, at most kDialoguePieceBytes; empty: the other end has closed.
  virtual Async<std::string> read() = 0;
  virtual Async<void> write(std::string bytes) = 0;
  /// No more will be written: a program sees the end of its input and ends in its own way. Then
  /// destroy it.
  virtual void hangUp() = 0;
};

/// How a program is told to end: most do at the end of their input.
enum class HangUp { EndOfInput, Terminate };
/// Standard input and output of a program; its errors come among its output. Killed with its group
/// when destroyed. Errors: NotFound (program), Internal
Result<std::unique_ptr<Dialogue>> startDialogue(asio::any_io_executor executor,
                                                const Command& command,
                                                HangUp hang_up = HangUp::EndOfInput);
/// A Unix socket that somebody listens on, or a terminal device, which is set raw.
/// Errors: Unavailable (nobody listens, or no such thing), Denied
Result<std::unique_ptr<Dialogue>> dialDialogue(asio::any_io_executor executor,
                                               const std::filesystem::path& path);

}  // namespace muster::io
