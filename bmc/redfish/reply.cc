// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/reply.h"

#include "base/utf8.h"
#include "bmc/quirks.h"

#include <algorithm>
#include <charconv>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr auto kFirstBusyWait = 1000ms;
constexpr auto kMaxBusyWait = 30s;
constexpr std::size_t kShownLinkBytes = 200;
constexpr std::string_view kAlreadyCommitted =
    "SYS011";  ///< iDRAC: what is staged has a job, and nothing can be added

}  // namespace

std::chrono::milliseconds busyWait(const RedfishReply& reply, int attempt) {
  std::chrono::milliseconds wait = kFirstBusyWait * (1 << std::min(attempt, 5));
  const std::string after = reply.header("Retry-After");
  int seconds = 0;
  auto [end, error] = std::from_chars(after.data(), after.data() + after.size(), seconds);
  if (error == std::errc() && end == after.data() + after.size() && seconds > 0)
    wait = std::chrono::seconds(seconds);
  return std::min<std::chrono::milliseconds>(wait, kMaxBusyWait);
}

bool saysLater(const RedfishReply& reply) {
  if (reply.status == 429 || reply.status == 503) return true;
  if (reply.ok()) return false;
  auto later = tryLaterMessages();
  return std::any_of(later.begin(), later.end(),
                     [&](std::string_view id) { return hasMessageId(reply.body, id); });
}

std::string pathOnly(const std::string& link) {
  if (link.empty() || link.front() == '/') return link;
  auto url = io::Url::parse(link);
  return url ? url->target : std::string();
}

Result<io::Url> urlOfLink(const std::string& base_url, const std::string& link) {
  if (link.empty() || link.front() == '/') return io::Url::parse(base_url + link);
  TRY(own, io::Url::parse(base_url));
  const auto absolute = io::Url::parse(link);
  if (absolute && absolute->origin() == own.origin()) return *absolute;
  return fail(
      ErrorCode::Corrupt,
      fmt::format("the BMC at {} answered with {}: {}, which is not followed", base_url,
                  absolute ? "an address of another host" : "a link that is no path of its own",
                  cutToBytes(link, kShownLinkBytes)));
}

std::string RedfishReply::header(const std::string& name) const {
  auto it = headers.find(name);
  return it == headers.end() ? std::string() : it->second;
}

std::string RedfishReply::etag() const {
  auto tag = header("ETag");
  return tag.empty() ? textAt(body, "@odata.etag") : tag;
}

Error errorOf(const RedfishReply& reply, const std::string& what) {
  const std::string words = serviceMessage(reply.body);
  std::string text = fmt::format("{}: the BMC answered {}{}{}", what, reply.status,
                                 words.empty() ? "" : ": ", words);
  switch (reply.status) {
    case 401:
    case 403:
      return Error(ErrorCode::Denied, std::move(text));
    case 404:
    case 410:
      return Error(ErrorCode::NotFound, std::move(text));
    case 409:
    case 412:
    case 428:
      return Error(ErrorCode::Conflict, std::move(text));
    case 408:
    case 429:
      return Error(ErrorCode::Unavailable, std::move(text));
    default:
      break;
  }
  if (hasMessageId(reply.body, kAlreadyCommitted))
    return Error(ErrorCode::Conflict, std::move(text));
  if (reply.status >= 500 || saysLater(reply))
    return Error(ErrorCode::Unavailable, std::move(text));
  return Error(ErrorCode::InvalidInput, std::move(text));
}

}  // namespace muster::bmc
