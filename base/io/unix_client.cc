// SPDX-License-Identifier: Apache-2.0
#include "base/io/unix_client.h"

#include <fmt/format.h>

#include <sys/socket.h>
#include <sys/un.h>
#include <cerrno>
#include <cstring>

namespace muster::io {

Result<Fd> dialUnixSocket(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.string().size() >= sizeof address.sun_path)
    return fail(ErrorCode::InvalidInput, path.string() + " is too long a name for a socket");
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  Fd line(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                   0));  // a full queue must not hold up the control thread
  if (line.valid() &&
      ::connect(line.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
    return line;
  const int number = errno;
  Error error(number == EACCES || number == EPERM ? ErrorCode::Denied : ErrorCode::Unavailable,
              fmt::format("{}: {}", path.string(), std::strerror(number)));
  if (number == ENOENT || number == ENOTDIR || number == ECONNREFUSED)
    return fail(std::move(error).because(DialFailure::NobodyListens));
  return fail(std::move(error));
}

}  // namespace muster::io
