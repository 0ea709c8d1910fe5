// SPDX-License-Identifier: Apache-2.0
#include "api/oidc/login_client.h"

#include "api/route.h"
#include "base/async/start.h"
#include "base/io/files.h"
#include "base/io/regular_file.h"
#include "base/json_input.h"
#include "base/json_members.h"
#include "base/json_output.h"
#include "base/printable.h"

#include <fmt/format.h>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace muster::api {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxLoginFileBytes = 1u << 20;
constexpr std::size_t kMaxCaBytes = 1u << 20;
constexpr std::size_t kMaxAnswerBytes = 256u << 10;
constexpr std::size_t kMaxDetailBytes = 4'000;
constexpr std::chrono::seconds kShortestPause{1}, kLongestPause{60};

std::chrono::seconds secondsOf(const json& object, const char* name,
                               std::chrono::seconds otherwise) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer()
             ? std::chrono::seconds(found->get<std::int64_t>())
             : otherwise;
}

/// Asks one server, one request after the other.
class LoginServer {
 public:
  static Result<LoginServer> of(const app::Options& options) {
    LoginServer out;
    TRY(origin, loginOrigin(options));
    if (options.server_ca.empty())
      return fail(ErrorCode::InvalidInput,
                  "name the certificate of the site's authority: --server-ca FILE "
                  "(MUSTER_SERVER_CA); it is ca/ca.crt in the server's state folder");
    io::TlsTrust trust;
    TRY(ca, io::readFile(options.server_ca, kMaxCaBytes));
    trust.ca_pem = std::move(ca);
    out.client_ = io::makeHttpClient(std::move(trust));
    out.origin_ = std::move(origin);
    return out;
  }
  const std::string& origin() const { return origin_; }

  /// Null where the answer has no body.
  Result<json> ask(const std::string& method, const std::string& resource, const std::string& body,
                   const std::string& token = {}) {
    io::HttpRequest request;
    request.method = method;
    TRY(url, io::Url::parse(origin_ + std::string(kBasePath) + resource));
    request.url = std::move(url);
    request.max_body_bytes = kMaxAnswerBytes;
    request.headers["Content-Type"] = "application/json";
    if (!token.empty()) request.headers["Authorization"] = "Bearer " + token;
    request.body = body;
    std::optional<Result<io::HttpResponse>> answer;
    std::exception_ptr thrown;
    async::start(*io_, async::answerInto(answer, client_->send(std::move(request))),
                 [&](std::exception_ptr broken) {
                   thrown = std::move(broken);
                   io_->stop();
                 });
    io_->restart();
    io_->run();
    if (thrown) std::rethrow_exception(thrown);
    if (!answer) return fail(ErrorCode::Internal, origin_ + " was not asked");
    if (!*answer)
      return std::unexpected(
          std::move(*answer).error().within("the server at " + origin_ + " did not answer"));
    const auto& response = **answer;
    if (response.status == 204) return json(nullptr);
    auto said = jsonOrNone(response.body, kServerJson);
    if (response.status / 100 == 2 && said.is_object()) return said;
    return fail(refusalOf(response.status, said));
  }

 private:
  Error refusalOf(int status, const json& problem) const {
    const auto detail = textOf(problem, "detail");
    if (detail.empty())
      return {ErrorCode::Unavailable,
              fmt::format("{} answers {} and not as a muster does; see what listens there", origin_,
                          status)};
    const auto advice = textOf(problem, "what_to_do");
    const auto code = textOf(problem, "code");
    return {code == "denied" || code == "unauthenticated" ? ErrorCode::Denied
            : code == "not-found"                         ? ErrorCode::NotFound
            : code == "unknown-resource"                  ? ErrorCode::NotFound
                                                          : ErrorCode::Unavailable,
            printable(detail).substr(0, kMaxDetailBytes) +
                (advice.empty() ? "" : "; " + printable(advice).substr(0, kMaxDetailBytes))};
  }

  std::unique_ptr<asio::io_context> io_ = std::make_unique<asio::io_context>();
  std::unique_ptr<io::HttpClient> client_;
  std::string origin_;
};

}  // namespace

Result<LoginFile> LoginFile::ofUser() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  if (config && *config == '/')
    return LoginFile(std::filesystem::path(config) / "muster/logins.json");
  if (home && *home == '/')
    return LoginFile(std::filesystem::path(home) / ".config/muster/logins.json");
  return fail(ErrorCode::InvalidInput,
              "there is no place to keep a login: set HOME or XDG_CONFIG_HOME");
}

Result<std::map<std::string, KeptLogin>> LoginFile::read() const {
  std::map<std::string, KeptLogin> out;
  struct stat found{};
  if (::stat(file_.c_str(), &found) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return out;
    return fail(ErrorCode::Unavailable, "cannot look at " + file_.string());
  }
  if ((found.st_mode & 077) != 0)
    return fail(ErrorCode::Denied,
                fmt::format("{} holds tokens, and others may read it: run chmod 600 {}, and muster "
                            "logout and login, for somebody may have read them",
                            file_.string(), file_.string()));
  TRY(text, io::readRegularFile(file_, kMaxLoginFileBytes));
  auto kept = parseJson(text, kFileJson);
  if (!kept || !kept->is_object())
    return fail(
        ErrorCode::Corrupt,
        fmt::format("{} is not as muster writes it; remove it, and log in again", file_.string()));
  for (const auto& [origin, each] : kept->items()) {
    const auto ends = parseWallTime(textOf(each, "expires_at"));
    if (ends) out[origin] = {textOf(each, "token"), textOf(each, "principal"), *ends};
  }
  return out;
}

Result<void> LoginFile::keep(const std::string& origin,
                             const std::optional<KeptLogin>& login) const {
  TRY(all, read());
  if (login)
    all[origin] = *login;
  else if (all.erase(origin) == 0)
    return {};
  auto out = json::object();
  for (const auto& [at, each] : all)
    out[at] = {{"token", each.token},
               {"principal", each.principal},
               {"expires_at", muster::toString(each.expires_at)}};
  TRY_OK(io::makeDirs(file_.parent_path(), 0700));
  return io::writeFileAtomic(file_, jsonText(out, 2) + "\n", 0600);
}

Result<std::string> loginOrigin(const app::Options& options) {
  const auto url = io::Url::parse(options.server);
  if (!url || url->scheme != "https")
    return fail(ErrorCode::InvalidInput,
                "name the server: --server https://HOST:PORT (MUSTER_SERVER); on its own host, the "
                "Unix socket needs no login");
  return url->origin();
}

Result<KeptLogin> logIn(const app::Options& options, const LoginFile& file,
                        const std::function<void(const LoginPrompt&)>& show) {
  TRY(server, LoginServer::of(options));
  TRY_OK(file.read());  // before somebody enters a code for nothing
  TRY(begun, server.ask("POST", "/login/device", "{}"));
  using std::chrono::seconds;
  const auto login = textOf(begun, "login");
  const LoginPrompt prompt{printable(textOf(begun, "user_code")),
                           printable(textOf(begun, "verification_uri")),
                           printable(textOf(begun, "verification_uri_complete")),
                           secondsOf(begun, "expires_in_s", seconds(600))};
  if (login.empty() || prompt.user_code.empty())
    return fail(ErrorCode::Corrupt, server.origin() + " answers without a code");
  show(prompt);
  const auto over_at = std::chrono::steady_clock::now() + prompt.expires_in;
  auto pause = secondsOf(begun, "interval_s", seconds(5));
  while (std::chrono::steady_clock::now() < over_at) {
    std::this_thread::sleep_for(std::clamp(pause, kShortestPause, kLongestPause));
    auto polled = server.ask("POST", "/login/device/poll", jsonText(json{{"login", login}}));
    if (!polled && polled.error().code() == ErrorCode::Unavailable) continue;
    if (!polled) return std::unexpected(std::move(polled).error());
    pause = secondsOf(*polled, "interval_s", pause);
    if (textOf(*polled, "state") != "done") continue;
    TRY(ends, parseWallTime(textOf(*polled, "expires_at")));
    KeptLogin out{textOf(*polled, "token"), textOf(*polled, "principal"), ends};
    TRY_OK(file.keep(server.origin(), out));
    return out;
  }
  return fail(ErrorCode::Timeout, "nobody entered the code in time; run muster login again");
}

Result<bool> logOut(const app::Options& options, const LoginFile& file) {
  TRY(origin, loginOrigin(options));
  TRY(all, file.read());
  const auto found = all.find(origin);
  if (found == all.end()) return false;
  TRY_OK(file.keep(origin, std::nullopt));
  if (found->second.expires_at <= SystemClock().now()) return true;
  TRY(server, LoginServer::of(options));
  auto ended = server.ask("DELETE", "/session", "", found->second.token);
  if (ended || ended.error().code() == ErrorCode::Denied) return true;
  return std::unexpected(std::move(ended).error().within(
      fmt::format("the login is forgotten here, and counts at the server until {}",
                  muster::toString(found->second.expires_at))));
}

}  // namespace muster::api
