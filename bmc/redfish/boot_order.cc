// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/boot_order.h"

#include "bmc/redfish/identity.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMaxOptions = 128;
constexpr int kMaxReads = 3;
constexpr auto kReadAgainAfter = 1000ms;
constexpr const char* kOrder = "Boot/BootOrder";

struct Sign {
  std::string_view text;
  BootTarget target;
};
/// The first that is found decides: a path of HTTP boot has a MAC node too.
constexpr std::array<Sign, 8> kPathSigns = {{{"/Uri(", BootTarget::UefiHttp},
                                             {"MAC(", BootTarget::Pxe},
                                             {"NVMe(", BootTarget::Disk},
                                             {"Sata(", BootTarget::Disk},
                                             {"Scsi(", BootTarget::Disk},
                                             {"SAS(", BootTarget::Disk},
                                             {"HD(", BootTarget::Disk},
                                             {"RAID", BootTarget::Disk}}};
/// Supermicro and Lenovo show no device path (captures).
constexpr std::array<Sign, 6> kNameSigns = {{{"HTTP", BootTarget::UefiHttp},
                                             {"PXE", BootTarget::Pxe},
                                             {"Network", BootTarget::Pxe},
                                             {"HardDisk", BootTarget::Disk},
                                             {"Hard Drive", BootTarget::Disk},
                                             {"Hard Disk", BootTarget::Disk}}};
constexpr std::array<Sign, 3> kAliases = {
    {{"UefiHttp", BootTarget::UefiHttp}, {"Pxe", BootTarget::Pxe}, {"Hdd", BootTarget::Disk}}};

template <std::size_t N>
BootTarget signedBy(const std::array<Sign, N>& signs, const std::string& text) {
  const auto found = std::ranges::find_if(
      signs, [&](const Sign& sign) { return text.find(sign.text) != std::string::npos; });
  return found == signs.end() ? BootTarget::None : found->target;
}

/// The order as the BMC shows it. An entry that is no reference is not left out: an order without
/// it would be another one, and writing that would lose a boot option. Errors: Unavailable
Result<std::vector<std::string>> referencesAt(const Json& resource, std::string_view address) {
  std::vector<std::string> order;
  const auto boot = resource.is_object() ? resource.find("Boot") : resource.end();
  if (boot == resource.end() || !boot->is_object()) return order;
  const auto listed = boot->find("BootOrder");
  if (listed == boot->end() || listed->is_null()) return order;
  bool readable = listed->is_array();
  if (readable)
    for (const auto& entry : *listed) {
      readable = readable && entry.is_string() && !entry.get_ref<const std::string&>().empty();
      if (readable) order.push_back(entry.get<std::string>());
    }
  if (!readable)
    return fail(ErrorCode::Unavailable,
                fmt::format("the boot order that {} shows has entries that are no references; a "
                            "restart of the machine or an update of its BMC may mend that",
                            address));
  return order;
}

}  // namespace

BootTarget bootTargetOf(const Json& boot_option) {
  const auto by_alias = signedBy(kAliases, textAt(boot_option, "Alias"));
  if (by_alias != BootTarget::None) return by_alias;
  const auto by_path = signedBy(kPathSigns, textAt(boot_option, "UefiDevicePath"));
  return by_path != BootTarget::None ? by_path
                                     : signedBy(kNameSigns, textAt(boot_option, "DisplayName"));
}

Async<std::pair<Json, std::optional<Member>>> RedfishBootOrder::resources() {
  CO_TRY(system, co_await resources_.readSystem());
  std::optional<Member> settings;
  if (const auto uri = linkAt(system->body, "@Redfish.Settings/SettingsObject"); !uri.empty()) {
    auto reply = co_await resources_.session().get(uri);
    if (reply) {  // AMI's has its tag in the header only
      const auto tag = reply->etag();
      settings = Member{uri, std::move(reply->body)};
      if (settings->json.is_object() && textAt(settings->json, "@odata.etag").empty())
        settings->json["@odata.etag"] = tag;
    }
    if (!reply && reply.error().code() != ErrorCode::NotFound)
      co_return fail(std::move(reply.error()));
  }
  Json body = system->body;
  if (textAt(body, "@odata.etag").empty()) body["@odata.etag"] = system->etag();
  co_return std::pair(std::move(body), std::move(settings));
}

Async<BootOrder> RedfishBootOrder::read() {
  CO_TRY(found, co_await resources());
  const auto& [system, settings] = found;
  CO_TRY(order, referencesAt(system, resources_.address()));
  if (order.empty() && settings) {  // iDRAC10
    CO_TRY(there, referencesAt(settings->json, resources_.address()));
    order = std::move(there);
  }
  auto collection = linkAt(system, "Boot/BootOptions");
  if (collection.empty() && settings) collection = linkAt(settings->json, "Boot/BootOptions");
  if (order.empty() || collection.empty())
    co_return fail(ErrorCode::NotFound, "the BMC at " + resources_.address() +
                                            " does not show the machine's boot order");
  CO_TRY(options,
         co_await resources_.members(collection, kMaxOptions, RedfishSession::kRequestTimeout,
                                     RedfishResources::Want::Expanded));
  BootOrder out;
  for (const auto& reference : order) {
    BootOption option{reference, {}, BootTarget::None, {}};
    for (const Member& member : options.found) {
      auto id = textAt(member.json, "BootOptionReference");
      if (id.empty()) id = lastSegment(member.uri);
      if (id != reference) continue;
      option.name = textAt(member.json, "DisplayName");
      option.starts_from = bootTargetOf(member.json);
      const auto macs = macsOfBootOptions({member.json});
      if (!macs.empty()) option.mac = macs.front();
    }
    out.options.push_back(std::move(option));
  }
  if (settings) {
    const auto staged = textsAt(settings->json, kOrder);
    if (!staged.empty() && staged != order) out.staged = staged;
  }
  co_return out;
}

/// AMI's settings object wants If-None-Match (libredfish nvidia_viking.rs); what a BMC takes at
/// once or with the next boot is said by where it shows it.
Async<void> RedfishBootOrder::write(std::vector<std::string> references) {
  CO_TRY(at, co_await resources_.uris());
  CO_TRY(before, co_await resources());
  const auto& [system, settings] = before;
  CO_TRY(now, referencesAt(system, resources_.address()));
  if (std::set<std::string>(now.begin(), now.end()) !=
      std::set<std::string>(references.begin(), references.end()))
    co_return fail(ErrorCode::InvalidInput,
                   fmt::format("the boot order of {} has the options {}; name each of them once",
                               resources_.address(), fmt::join(now, ", ")));
  Json body = Json::object();
  body["Boot"]["BootOrder"] = references;
  const bool staged =
      settings && (at.quirks.boot_override_on_settings || !textsAt(settings->json, kOrder).empty());
  const auto uri = staged ? settings->uri : at.system;
  const auto etag = textAt(staged ? settings->json : system, "@odata.etag");
  auto done = at.quirks.boot_order_if_none_match
                  ? co_await resources_.session().patchIfNoneMatch(uri, std::move(body), etag)
                  : co_await resources_.session().patch(uri, std::move(body), etag);
  if (!done) co_return fail(std::move(done.error()));
  std::vector<std::string> seen;
  for (int attempt = 0; attempt < kMaxReads; ++attempt) {
    CO_TRY(after, co_await resources());
    seen = textsAt(after.first, kOrder);
    const bool waits = after.second && textsAt(after.second->json, kOrder) == references;
    if (seen == references || waits) co_return Result<void>();
    co_await resources_.clock().sleep(kReadAgainAfter);
  }
  co_return fail(ErrorCode::Unavailable,
                 fmt::format("{} accepted the boot order {} but shows {}", uri,
                             fmt::join(references, ", "), fmt::join(seen, ", ")));
}

}  // namespace muster::bmc
