// SPDX-License-Identifier: Apache-2.0
// Internal to base/io: how a server's answers go out.
#pragma once

#include "base/io/http_stream.h"

namespace muster::io {

/// How one answer is sent.
struct Reply {
  std::shared_ptr<Connection> connection;
  std::chrono::seconds idle_timeout{0};
  std::size_t min_rate = 1;  ///< bytes per second that the peer takes, beside one idle_timeout
  bool keep_alive = false;
  bool head_only = false;   ///< HEAD
  bool is_http_10 = false;  ///< the peer knows no chunks: a stream ends with its connection
  std::string range = {};
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  std::uint64_t sent_bytes = 0;

  /// The next piece must be taken within idle_timeout, and all until now at the lowest rate: both a
  /// stop and a trickle end.
  void armForNextPiece();
};

/// Errors: of the connection; then it cannot be used again
Task<error_code> writeReply(Reply* reply, ServerResponse response);

}  // namespace muster::io
