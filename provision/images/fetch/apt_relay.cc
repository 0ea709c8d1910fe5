// SPDX-License-Identifier: Apache-2.0
#include "provision/images/fetch/apt_relay.h"

#include "base/json_output.h"
#include "provision/images/fetch/apt_message.h"
#include "provision/images/fetch/fetch_socket.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <span>

namespace muster::provision {
namespace {

using std::chrono::duration_cast;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr std::size_t kPieceBytes = 64u << 10;
/// apt asks for ten files ahead; of those that it has been told are done it asks again.
constexpr std::size_t kMaxPending = 10'000;
constexpr std::string_view kSandboxUser = "APT::Sandbox::User=";

/// What an answer of the fetch unit may say besides the URI that it is about.
struct Answer {
  int number;
  const char* words;
  bool is_about_uri;
  std::span<const std::string_view> fields;
};
constexpr std::string_view kCapabilityFields[] = {"Version", "Pipeline", "Send-URI-Encoded",
                                                  "Single-Instance"};
constexpr std::string_view kMessageFields[] = {"Message"};
constexpr std::string_view kRedirectFields[] = {"New-URI", "UsedMirror"};
constexpr std::string_view kStartFields[] = {"Size", "Last-Modified", "Resume-Point"};
constexpr std::string_view kDoneFields[] = {"Last-Modified", "IMS-Hit"};
constexpr std::string_view kFailureFields[] = {"Message", "FailReason", "Transient-Failure"};
constexpr Answer kAnswers[] = {
    {apt::kCapabilities, "Capabilities", false, kCapabilityFields},
    {apt::kLog, "Log", false, kMessageFields},
    {apt::kStatus, "Status", false, kMessageFields},
    {apt::kRedirect, "Redirect", true, kRedirectFields},
    {apt::kWarning, "Warning", false, kMessageFields},
    {apt::kUriStart, "URI Start", true, kStartFields},
    {apt::kUriDone, "URI Done", true, kDoneFields},
    {apt::kUriFailure, "URI Failure", true, kFailureFields},
    {apt::kGeneralFailure, "General Failure", false, kMessageFields},
};

Result<void> becomeUser(const std::string& name) {
  if (::geteuid() != 0 || name.empty() || name == "root") return {};
  const auto* user = ::getpwnam(name.c_str());
  if (user == nullptr)
    return fail(ErrorCode::NotFound, fmt::format("this host has no user {}", name));
  const auto uid = user->pw_uid;
  const auto gid = user->pw_gid;
  if (::setgroups(1, &gid) != 0 || ::setresgid(gid, gid, gid) != 0 ||
      ::setresuid(uid, uid, uid) != 0)
    return fail(ErrorCode::Internal,
                fmt::format("cannot become user {}: {}", name, std::strerror(errno)));
  return {};
}

bool isFetchable(std::string_view uri) {
  return uri.starts_with("http://") || uri.starts_with("https://");
}

struct Asked {
  std::string file;
  FetchedSize size;
};

class Relay {
 public:
  explicit Relay(const AptRelay& relay) : relay_(relay) {}

  Result<void> run() {
    if (const auto dialed = dial(); !dialed) TRY_OK(giveUp(dialed.error().str()));
    while (true) {
      std::array<pollfd, 2> wait{pollfd{relay_.in, POLLIN, 0},
                                 {trouble_.empty() ? line_.get() : -1, POLLIN, 0}};
      const int ready = ::poll(wait.data(), wait.size(), untilSilence());
      if (ready == 0 && untilSilence() == 0)
        TRY_OK(
            giveUp(fmt::format("the fetch unit has said nothing for {} s; what it does: "
                               "journalctl -u 'muster-fetch@*'",
                               duration_cast<seconds>(relay_.silence_limit).count())));
      if (ready < 0) {
        if (errno == EINTR) continue;
        return fail(ErrorCode::Internal, fmt::format("cannot wait: {}", std::strerror(errno)));
      }
      if (wait[1].revents != 0) TRY_OK(fromUnit());
      if (wait[0].revents != 0) {
        TRY(goes_on, fromApt());
        if (!goes_on) return {};
      }
    }
  }

 private:
  /// Milliseconds for poll; -1: nothing is asked for.
  int untilSilence() const {
    return pending_.empty() ? -1 : millisecondsUntil(heard_ + relay_.silence_limit);
  }

  Result<void> dial() {
    TRY(line, dialFetchUnit(relay_.socket, relay_.owner));
    line_ = std::move(line);
    socket_ = FetchSocket(line_.get());
    return socket_.send(jsonText(nlohmann::json{{"apt", relay_.scheme}}) + "\n");
  }

  Result<void> tellApt(const AptMessage& message) const {
    const auto text = toText(message);
    std::string_view left = text;
    while (!left.empty()) {
      const auto done = ::write(relay_.out, left.data(), left.size());
      if (done < 0 && errno == EINTR) continue;
      if (done < 0)
        return fail(ErrorCode::Unavailable,
                    fmt::format("apt does not read any more: {}", std::strerror(errno)));
      left.remove_prefix(static_cast<std::size_t>(done));
    }
    return {};
  }

  Result<void> failUri(const std::string& uri, const std::string& why) const {
    return tellApt({apt::kUriFailure, "URI Failure", {{"URI", uri}, {"Message", why}}});
  }

  /// From now on nothing can be fetched.
  Result<void> giveUp(const std::string& why) {
    trouble_ = why;
    line_ = io::Fd();  // the unit ends, too
    if (!has_capabilities_)
      TRY_OK(
          tellApt({apt::kCapabilities,
                   "Capabilities",
                   {{"Version", "1.2"}, {"Send-Config", "true"}, {"Send-URI-Encoded", "true"}}}));
    has_capabilities_ = true;
    for (const auto& [uri, asked] : std::exchange(pending_, {})) TRY_OK(failUri(uri, why));
    return {};
  }

  /// False: apt has ended.
  Result<bool> fromApt() {
    std::array<char, kPieceBytes> piece;
    const auto got = ::read(relay_.in, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) return true;
    if (got <= 0) return false;
    asked_.add({piece.data(), static_cast<std::size_t>(got)});
    while (true) {
      TRY(message, asked_.next());
      if (!message) return true;
      if (message->number == apt::kConfiguration) TRY_OK(configured(*message));
      if (message->number == apt::kUriAcquire) TRY_OK(acquire(*message));
    }
  }

  Result<void> configured(const AptMessage& message) {
    for (const auto& [name, value] : message.fields)
      if (isSameAptName(name, "Config-Item") && value.starts_with(kSandboxUser))
        TRY_OK(becomeUser(aptUnquoted(value.substr(kSandboxUser.size()))));
    return tellUnit(message);
  }

  Result<void> acquire(const AptMessage& message) {
    const auto uri = message.field("URI"), file = message.field("Filename");
    if (!uri || !file || pending_.size() >= kMaxPending)
      return fail(ErrorCode::Corrupt, "apt asks for a URI without a file, or for too many");
    if (!trouble_.empty()) return failUri(*uri, trouble_);
    const auto expected = expectedSize(message);
    FetchedSize size;
    if (expected.most) size.most = std::min(size.most, *expected.most);
    if (expected.exact && *expected.exact <= size.most) size = {*expected.exact, *expected.exact};
    if (pending_.empty()) heard_ = steady_clock::now();
    pending_.emplace(*uri, Asked{*file, size});
    return tellUnit(message);
  }

  Result<void> tellUnit(const AptMessage& message) {
    if (!trouble_.empty()) return {};
    if (const auto sent = socket_.send(toText(message)); !sent) return unitEnded();
    return {};
  }

  Result<void> unitEnded() {
    return giveUp("the fetch unit has ended in the middle; why: journalctl -u 'muster-fetch@*'");
  }

  Result<void> fromUnit() {
    std::string bytes;
    const auto more = socket_.receive(bytes);
    heard_ = steady_clock::now();
    if (!more) return giveUp(more.error().str());
    if (!*more) return unitEnded();
    answers_.add(bytes);
    while (trouble_.empty()) {
      auto message = answers_.next();
      if (!message) return giveUp("the fetch unit: " + message.error().str());
      if (!*message) return {};
      TRY_OK(answer(**message));
    }
    return {};
  }

  Result<void> answer(const AptMessage& said) {
    const auto* known = std::ranges::find(kAnswers, said.number, &Answer::number);
    if (known == std::end(kAnswers))
      return giveUp(
          fmt::format("the fetch unit has answered {}, which no method does", said.number));
    AptMessage out{said.number, known->words, {}};
    if (known->is_about_uri) {
      const auto uri = said.field("URI").value_or("");
      const auto asked = pending_.find(uri);
      if (asked == pending_.end())
        return giveUp("the fetch unit has answered what nobody has asked for");
      out.fields.emplace_back("URI", uri);
      if (said.number == apt::kUriDone) {
        TRY(goes_on, finish(said, asked->second, out));
        if (!goes_on) return {};
      }
      if (said.number == apt::kRedirect && !isFetchable(said.field("New-URI").value_or("")))
        return giveUp("the fetch unit leads to something else than a web server");
      if (said.number != apt::kUriStart) pending_.erase(asked);
    }
    for (const auto name : known->fields)
      if (const auto value = said.field(name)) out.fields.emplace_back(std::string(name), *value);
    if (said.number == apt::kCapabilities) {
      if (std::exchange(has_capabilities_, true)) return {};
      out.fields.emplace_back("Send-Config", "true");
    }
    return tellApt(out);
  }

  /// Takes the file. False: the failure was said.
  Result<bool> finish(const AptMessage& said, const Asked& asked, AptMessage& out) {
    out.fields.emplace_back("Filename", asked.file);
    // What apt has is the newest: there is no file.
    if (isSameAptName(said.field("IMS-Hit").value_or(""), "true")) return true;
    const auto fetched = socket_.takeDescriptor();
    if (!fetched) {
      TRY_OK(giveUp("the fetch unit is done with a file that it did not hand over"));
      return false;
    }
    const auto copied = copyFetched(fetched->get(), asked.file, asked.size);
    if (!copied) {
      const auto uri = std::exchange(out.fields, {}).front().second;
      pending_.erase(pending_.find(uri));
      TRY_OK(failUri(uri, copied.error().str()));
      return false;
    }
    out.fields.emplace_back("Size", fmt::format("{}", *copied));
    return true;
  }

  const AptRelay& relay_;
  io::Fd line_;
  FetchSocket socket_{-1};
  AptMessageReader asked_, answers_;
  std::multimap<std::string, Asked> pending_;  ///< by URI
  steady_clock::time_point heard_{};           ///< of the unit, last
  bool has_capabilities_ = false;
  std::string trouble_;  ///< why nothing can be fetched
};

}  // namespace

Result<void> relayAptMethod(const AptRelay& relay) { return Relay(relay).run(); }

}  // namespace muster::provision
