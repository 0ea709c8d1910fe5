// SPDX-License-Identifier: Apache-2.0
#include "provision/images/fetch/fetch_unit.h"

#include "base/io/json_lines.h"
#include "base/io/peer_credentials.h"
#include "base/json_input.h"
#include "base/json_members.h"
#include "base/json_output.h"
#include "base/log.h"
#include "provision/images/fetch/apt_fetcher.h"
#include "provision/images/fetch/dnf_fetch.h"
#include "provision/images/fetch/proxy_environment.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <poll.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace muster::provision {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kMaxRequestBytes = 1u << 20;

/// A folder that goes with the request.
class RequestFolder {
 public:
  static Result<RequestFolder> make(const fs::path& above) {
    auto name = (above / "fetch-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      return fail(ErrorCode::Internal, fmt::format("cannot make a folder in {}: {}", above.string(),
                                                   std::strerror(errno)));
    return RequestFolder(name);
  }
  RequestFolder(RequestFolder&& other) noexcept : path(std::exchange(other.path, {})) {}
  RequestFolder& operator=(RequestFolder&&) = delete;
  ~RequestFolder() {
    if (path.empty()) return;
    std::error_code error;
    fs::remove_all(path, error);
    if (error) logWarning("image", "cannot remove {}: {}", path.string(), error.message());
  }
  fs::path path;

 private:
  explicit RequestFolder(fs::path made) : path(std::move(made)) {}
};

/// The first line; what has come after it stays in `rest`.
Result<json> readRequest(FetchSocket& socket, std::string& rest, std::chrono::milliseconds limit) {
  using std::chrono::steady_clock;
  const auto until = steady_clock::now() + limit;
  while (true) {
    if (const auto end = rest.find('\n'); end != std::string::npos) {
      const auto line = rest.substr(0, end);
      rest.erase(0, end + 1);
      return parseJson(line, kRequestJson);
    }
    if (rest.size() > kMaxRequestBytes)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("a request has more than {} bytes", kMaxRequestBytes));
    pollfd wait{socket.fd(), POLLIN, 0};
    const int left = millisecondsUntil(until);
    if (left == 0 || ::poll(&wait, 1, left) == 0)
      return fail(ErrorCode::Timeout, "nothing was asked for");
    TRY(more, socket.receive(rest));
    if (!more) return fail(ErrorCode::Unavailable, "who asked has gone");
  }
}

Result<void> fetchFiles(FetchSocket& socket, const json& asked, const fs::path& folder) {
  const auto dnf = asked.find("dnf");
  if (dnf == asked.end() || !dnf->is_object())
    return fail(ErrorCode::InvalidInput,
                R"(files are asked for as {"apt": "http"}, {"apt": "https"} or {"dnf": …})");
  TRY(request, parseDnfRequest(*dnf));
  TRY_OK(downloadForDnf(socket, request, folder, proxyEnvironment()));
  return handOverDnfCache(socket, folder);
}

}  // namespace

Result<void> serveFetchRequest(int connection, const FetchUnit& unit) {
  TRY(peer, io::peerCredentials(connection));
  if (peer.uid != unit.asker)
    return fail(ErrorCode::Denied, fmt::format("user with uid {} may not ask", peer.uid));
  // What is over LimitFSIZE fails as a full disk does, and does not end the program that writes.
  std::signal(SIGXFSZ, SIG_IGN);
  FetchSocket socket(connection);
  std::string rest;
  TRY(folder, RequestFolder::make(unit.folder));
  auto asked = readRequest(socket, rest, unit.request_limit);
  if (asked)
    if (const auto scheme = textOf(*asked, "apt"); scheme == "http" || scheme == "https")
      return fetchForApt(
          socket, std::move(rest),
          {unit.methods / scheme, folder.path, proxyEnvironment(), unit.sign_interval});
  auto done = asked ? fetchFiles(socket, *asked, folder.path)
                    : Result<void>(std::unexpected(std::move(asked).error()));
  if (done) return done;
  const json said = {{"error", std::string(toString(done.error().code()))},
                     {"text", done.error().str()}};
  (void)socket.send(jsonText(said) + "\n");
  return done;
}

}  // namespace muster::provision
