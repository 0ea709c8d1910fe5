// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/virtual_media.h"

#include <algorithm>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMaxDrives = 32;
constexpr int kMaxReads = 20;
constexpr auto kReadAgainAfter = 1000ms;
constexpr const char *kInsert = "InsertMedia", *kEject = "EjectMedia";

bool takesCd(const Json& drive) {
  const auto types = textsAt(drive, "MediaTypes");
  return std::ranges::any_of(types, [](const auto& type) { return type == "CD" || type == "DVD"; });
}

bool isInserted(const Json& drive) { return boolAt(drive, "Inserted").value_or(false); }

/// Lenovo has ten drives, and its EXT ones take URLs (redfish mockup; XCC's guide).
int score(const Json& drive) {
  return (isInserted(drive) ? 0 : 2) + (textAt(drive, "Id").starts_with("EXT") ? 1 : 0);
}

/// "HTTPS" of an image that is read so; "": leave it to the BMC. Source: DSP2046 VirtualMedia
std::string protocolOf(const std::string& url) {
  const auto scheme = url.substr(0, url.find("://"));
  return scheme == "http"    ? "HTTP"
         : scheme == "https" ? "HTTPS"
         : scheme == "nfs"   ? "NFS"
         : scheme == "smb"   ? "CIFS"
                             : "";
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
      if (takesCd(drive.json)) out.push_back({std::move(drive.uri), std::move(drive.json)});
  }
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
  for (const Drive& drive : found)
    out.push_back({lastSegment(drive.uri),
                   isInserted(drive.json) ? textAt(drive.json, "Image") : "",
                   isInserted(drive.json)});
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

Async<void> RedfishVirtualMedia::insert(std::string url) {
  CO_TRY(found, co_await drives());
  for (const Drive& drive : found)
    if (isInserted(drive.json) && textAt(drive.json, "Image") == url) co_return Result<void>();
  Drive drive = found.front();
  if (isInserted(drive.json))
    co_return fail(
        ErrorCode::Conflict,
        fmt::format("every virtual CD of {} has an image; eject it first", resources_.address()));
  Json body = Json::object();
  body["Image"] = url;
  body["Inserted"] = true;
  body["WriteProtected"] = true;
  Json parameters = body;
  // A BMC that lists its protocols wants one named.
  const auto allowed =
      textsAt(drive.json,
              fmt::format("Actions/#VirtualMedia.{}/TransferProtocolType@Redfish.AllowableValues",
                          kInsert));
  if (const auto protocol = protocolOf(url);
      !protocol.empty() && std::ranges::find(allowed, protocol) != allowed.end())
    parameters["TransferProtocolType"] = protocol;
  if (!allowed.empty() && !parameters.contains("TransferProtocolType"))
    co_return fail(ErrorCode::InvalidInput,
                   fmt::format("the BMC at {} cannot read {}", resources_.address(), url));
  CO_TRY_OK(co_await order(drive, kInsert, std::move(parameters), std::move(body)));
  co_return co_await waitFor(drive.uri, std::move(url));
}

Async<void> RedfishVirtualMedia::eject() {
  CO_TRY(found, co_await drives());
  for (const Drive& drive : found) {
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
