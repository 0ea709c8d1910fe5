// SPDX-License-Identifier: Apache-2.0
#include "base/io/system_roots.h"

#include "base/io/files.h"

#include <array>

namespace muster::io {
namespace {

constexpr std::size_t kMaxRootsBytes = 4u << 20;
constexpr std::array kFiles{"/etc/ssl/certs/ca-certificates.crt",
                            "/etc/pki/tls/certs/ca-bundle.crt"};

}  // namespace

Result<std::string> systemRoots() {
  for (const char* file : kFiles)
    if (auto roots = readFile(file, kMaxRootsBytes)) return roots;
  return fail(ErrorCode::NotFound,
              "this host has no list of certificate authorities: apt install ca-certificates, or "
              "name the server's own");
}

}  // namespace muster::io
