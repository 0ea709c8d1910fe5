// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/virtual_media.h"

#include "bmc/withheld_words.h"

#include <algorithm>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMaxDrives = 32;
constexpr int kMaxReads = 60;
constexpr auto kReadAgainAfter = 1000ms;
constexpr const char *kInsert = "InsertMedia", *kEject = "EjectMedia";
constexpr const char* kProtocol = "TransferProtocolType";

bool takes(const Json& drive, std::initializer_list<std::string_view> wanted) {
  const auto types = textsAt(drive, "MediaTypes");
  return std::ranges::any_of(types, [&](const std::string& type) {
    return std::ranges::find(wanted, type) != wanted.end();
  });
}
bool takesCd(const Json& drive) { return takes(drive, {"CD", "DVD"}); }
bool takesUsb(const Json& drive) { return takes(drive, {"USBStick"}); }

bool isInserted(const Json& drive) { return boolAt(drive, "Inserted").value_or(false); }

/// Lenovo has ten drives, and its EXT ones take URLs (redfish mockup; XCC's guide).
int score(const Json& drive) {
  return (isInserted(drive) ? 0 : 2) + (textAt(drive, "Id").starts_with("EXT") ? 1 : 0);
}

std::string schemeOf(const std::string& url) { return url.substr(0, url.find("://")); }

/// "HTTPS" of an image that is read so; "": leave it to the BMC. Source: DSP2046 VirtualMedia
std::string protocolOf(const std::string& url) {
  const auto scheme = schemeOf(url);
  return scheme == "http"    ? "HTTP"
         : scheme == "https" ? "HTTPS"
         : scheme == "nfs"   ? "NFS"
         : scheme == "smb"   ? "CIFS"
                             : "";
}

bool hasWord(std::string_view words, std::string_view word) {
  for (std::size_t at = 0; at < words.size();) {
    const auto end = std::min(words.find(' ', at), words.size());
    if (words.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

VirtualMedium mediumOf(const std::string& uri, const Json& drive) {
  return {lastSegment(uri), isInserted(drive) ? imageWithoutSecrets(textAt(drive, "Image")) : "",
          isInserted(drive), takesCd(drive) ? BootTarget::Cd : BootTarget::Usb};
}

}  // namespace

Async<std::vector<RedfishVirtualMedia::Drive>> RedfishVirtualMedia::drives() {
  CO_TRY(at, co_await resources_.uris());
  std::vector<Drive> out;
  // Of the system where it has any (DSP2046 since VirtualMedia 1.5), else of the manager.
  for (const auto& owner : {at.system, at.manager}) {
    if (!out.empty()) break;
    CO_TRY(resource, co_await resources_.session().get(owner));
    const auto collection = linkAt(resource.body, "VirtualMedia");
    if (collection.empty()) continue;
    auto found = co_await resources_.members(collection, kMaxDrives);
    if (!found && found.error().code() == ErrorCode::NotFound) continue;
    if (!found) co_return fail(std::move(found.error()));
    for (Member& drive : found->found)
      if (takesCd(drive.json) || takesUsb(drive.json))
        out.push_back({std::move(drive.uri), std::move(drive.json)});
  }
  if (std::ranges::any_of(out, [](const Drive& drive) { return takesCd(drive.json); }))
    std::erase_if(out, [](const Drive& drive) { return !takesCd(drive.json); });
  if (out.empty())
    co_return fail(ErrorCode::NotFound,
                   "the BMC at " + resources_.address() + " offers no virtual CD");
  std::ranges::stable_sort(out, std::ranges::greater(),
                           [](const Drive& drive) { return score(drive.json); });
  co_return out;
}

Async<std::vector<VirtualMedium>> RedfishVirtualMedia::read() {
  CO_TRY(found, co_await drives());
  std::vector<VirtualMedium> out;
  for (const Drive& drive : found) out.push_back(mediumOf(drive.uri, drive.json));
  co_return out;
}

/// By the action; services from before it are written to.
Async<void> RedfishVirtualMedia::order(const Drive& drive, std::string_view action, Json parameters,
                                       Json patch) {
  const auto target = textAt(drive.json, fmt::format("Actions/#VirtualMedia.{}/target", action));
  if (!target.empty()) {
    CO_TRY_OK(co_await resources_.session().post(target, std::move(parameters)));
    co_return Result<void>();
  }
  CO_TRY_OK(co_await resources_.session().patch(drive.uri, std::move(patch),
                                                textAt(drive.json, "@odata.etag")));
  co_return Result<void>();
}

/// What the action says itself, or its ActionInfo. Empty: it does not say. Source: DSP0266 "Action
/// info"
Async<std::vector<std::string>> RedfishVirtualMedia::allowedProtocols(const Drive& drive) {
  const auto action = fmt::format("Actions/#VirtualMedia.{}", kInsert);
  auto allowed =
      textsAt(drive.json, fmt::format("{}/{}@Redfish.AllowableValues", action, kProtocol));
  const auto info = textAt(drive.json, action + "/@Redfish.ActionInfo");
  if (!allowed.empty() || info.empty()) co_return allowed;
  const auto read = co_await resources_.session().get(info);
  if (!read) co_return allowed;  // it only says more
  if (const auto* parameters = find(read->body, "Parameters"); parameters && parameters->is_array())
    for (const auto& parameter : *parameters)
      if (textAt(parameter, "Name") == kProtocol) allowed = textsAt(parameter, "AllowableValues");
  co_return allowed;
}

Async<std::vector<std::string>> RedfishVirtualMedia::readable(std::vector<std::string> urls,
                                                              std::vector<std::string> allowed) {
  CO_TRY(at, co_await resources_.uris());
  const auto asked_for = urls;
  std::erase_if(urls, [&](const std::string& url) {
    const auto& schemes = at.quirks.media_schemes;
    return (!schemes.empty() && !hasWord(schemes, schemeOf(url))) ||
           (!allowed.empty() && std::ranges::find(allowed, protocolOf(url)) == allowed.end());
  });
  if (urls.empty())
    co_return fail(ErrorCode::InvalidInput,
                   fmt::format("the BMC at {} cannot read {}: it reads by {}", resources_.address(),
                               asked_for.empty() ? "nothing" : asked_for.front(),
                               allowed.empty() ? at.quirks.media_schemes
                                               : fmt::format("{}", fmt::join(allowed, ", "))));
  co_return urls;
}

/// Inserted and WriteProtected are true where nothing is said (DSP2046), and some services refuse
/// them (Supermicro X11, X12: OpenStack's sushy, virtual_media.py); where the drive is written to,
/// nothing is inserted without them (Lenovo SD530: the same).
Async<void> RedfishVirtualMedia::insertBy(const Drive& drive, std::string url,
                                          bool names_protocol) {
  CO_TRY(at, co_await resources_.uris());
  Json parameters = Json::object(), patch = Json::object();
  parameters["Image"] = url;
  if (names_protocol) parameters[kProtocol] = protocolOf(url);
  if (!at.quirks.media_user.empty()) {
    parameters["UserName"] = at.quirks.media_user;
    parameters["Password"] = at.quirks.media_user;
  }
  patch["Image"] = url;
  patch["Inserted"] = true;
  patch["WriteProtected"] = true;
  co_return co_await order(drive, kInsert, std::move(parameters), std::move(patch));
}

Async<VirtualMedium> RedfishVirtualMedia::insert(std::vector<std::string> urls) {
  CO_TRY(found, co_await drives());
  for (const Drive& drive : found)
    if (isInserted(drive.json) &&
        std::ranges::find(urls, textAt(drive.json, "Image")) != urls.end())
      co_return mediumOf(drive.uri, drive.json);
  const Drive drive = found.front();
  if (isInserted(drive.json))
    co_return fail(
        ErrorCode::Conflict,
        fmt::format("every virtual CD of {} has an image; eject it first", resources_.address()));
  // A BMC that lists its protocols wants one named.
  CO_TRY(allowed, co_await allowedProtocols(drive));
  CO_TRY(usable, co_await readable(std::move(urls), allowed));
  Result<void> done;
  std::string taken;
  for (const auto& url : usable) {
    taken = url;
    // … and some want one and do not list them.
    for (const bool named : {!allowed.empty(), true}) {
      done = co_await insertBy(drive, url, named && !protocolOf(url).empty());
      if (done || done.error().code() != ErrorCode::InvalidInput || !allowed.empty()) break;
    }
    if (done || done.error().code() != ErrorCode::InvalidInput) break;
  }
  if (!done) co_return fail(std::move(done.error()));
  CO_TRY_OK(co_await waitFor(drive.uri, taken));
  auto medium = mediumOf(drive.uri, drive.json);
  medium.image = taken;
  medium.inserted = true;
  co_return medium;
}

Async<void> RedfishVirtualMedia::eject(std::string drive_id) {
  CO_TRY(found, co_await drives());
  for (const Drive& drive : found) {
    if (!drive_id.empty() && lastSegment(drive.uri) != drive_id) continue;
    if (!isInserted(drive.json)) continue;
    Json patch = Json::object();
    patch["Image"] = nullptr;
    patch["Inserted"] = false;
    CO_TRY_OK(co_await order(drive, kEject, Json::object(), std::move(patch)));
    CO_TRY_OK(co_await waitFor(drive.uri, ""));
  }
  co_return Result<void>();
}

/// "": nothing is in it. Some BMCs show the image's name, or nothing, in the place of its URL.
Async<void> RedfishVirtualMedia::waitFor(std::string uri, std::string url) {
  for (int attempt = 0; attempt < kMaxReads; ++attempt) {
    CO_TRY(now, co_await resources_.session().get(uri));
    if (isInserted(now.body) == !url.empty()) co_return Result<void>();
    co_await resources_.clock().sleep(kReadAgainAfter);
  }
  co_return fail(ErrorCode::Unavailable,
                 fmt::format("{} {}, as it shows", uri,
                             url.empty() ? "still holds its image" : "does not hold " + url));
}

}  // namespace muster::bmc
