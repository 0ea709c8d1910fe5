// SPDX-License-Identifier: Apache-2.0
// The client's end of a Unix socket.
#pragma once

#include "base/io/files.h"
#include "base/io/http.h"
#include "base/result.h"

#include <filesystem>
#include <memory>

namespace muster::io {

/// Why a socket cannot be connected to, where somebody decides by it (Error::has).
enum class DialFailure { NobodyListens, NotBelieved };

/// Connected, and not blocking. Errors: Unavailable (nobody listens: DialFailure; its queue is
/// full), Denied (its mode), InvalidInput (a name that is too long)
Result<Fd> dialUnixSocket(const std::filesystem::path& path);

/// As makeHttpClient, to whoever listens on the socket, whatever a URL's host is. The server must
/// belong to `owner`s: others who could make such a file answer nothing here. Errors of a request:
/// also those of dialUnixSocket, Denied (somebody else's server)
struct UnixHttpOptions {
  std::filesystem::path socket;
  std::vector<uid_t> owners;  ///< empty: anybody
};
std::unique_ptr<HttpClient> makeUnixHttpClient(UnixHttpOptions options);

}  // namespace muster::io
