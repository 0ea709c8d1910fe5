// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/boot.h"

#include "inventory/model/profile.h"

#include <algorithm>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr int kMaxOverrideReads = 3;
constexpr auto kReadAgainAfter = 1000ms;
constexpr const char* kContinuous = "Continuous";
constexpr const char* kUsbCd = "UsbCd";  ///< Supermicro's word for virtual media, beside Cd

std::string_view redfishName(BootTarget target) {
  switch (target) {
    case BootTarget::None:
      return "None";
    case BootTarget::Pxe:
      return "Pxe";
    case BootTarget::Disk:
      return "Hdd";
    case BootTarget::UefiHttp:
      return "UefiHttp";
    case BootTarget::Cd:
      return "Cd";
    case BootTarget::Usb:
      return "Usb";
  }
  return "None";
}

}  // namespace

BootTarget bootOverrideOf(const Json& system) {
  const std::string enabled = textAt(system, "Boot/BootSourceOverrideEnabled");
  if (enabled.empty() || enabled == "Disabled") return BootTarget::None;
  const std::string target = textAt(system, "Boot/BootSourceOverrideTarget");
  if (target == kUsbCd) return BootTarget::Cd;
  for (auto known :
       {BootTarget::Pxe, BootTarget::Disk, BootTarget::UefiHttp, BootTarget::Cd, BootTarget::Usb}) {
    if (target == redfishName(known)) return known;
  }
  return BootTarget::None;
}

Async<void> RedfishBoot::bootOnce(BootTarget target) {
  co_return co_await boot({target, false, {}});
}

Async<void> RedfishBoot::boot(BootOverride what) {
  CO_TRY(at, co_await resources_.uris());
  std::string uri = at.system;
  if (at.quirks.boot_override_on_settings) {
    CO_TRY(system, co_await resources_.session().get(at.system));
    auto settings = linkAt(system.body, "@Redfish.Settings/SettingsObject");
    if (!settings.empty()) uri = settings;
  }
  CO_TRY_OK(co_await write(uri, what));
  std::string seen;
  for (int attempt = 0; attempt < kMaxOverrideReads; ++attempt) {
    CO_TRY(answer, co_await read(uri));
    const Json& now = answer->body;
    const auto enabled = textAt(now, "Boot/BootSourceOverrideEnabled"),
               uri_now = textAt(now, "Boot/HttpBootUri");
    const bool lasts = enabled == kContinuous || what.target == BootTarget::None;
    if (bootOverrideOf(now) == what.target && (!what.persistent || lasts) &&
        (what.http_uri.empty() || uri_now == what.http_uri))
      co_return Result<void>();
    seen = fmt::format("{} {} {}", enabled, textAt(now, "Boot/BootSourceOverrideTarget"), uri_now);
    co_await resources_.clock().sleep(kReadAgainAfter);
  }
  co_return fail(ErrorCode::Unavailable,
                 fmt::format("{} accepted the boot override {} but shows \"{}\"", uri,
                             redfishName(what.target), seen));
}

Async<SystemSnapshot> RedfishBoot::read(std::string uri) {
  CO_TRY(at, co_await resources_.uris());
  if (uri == at.system) {
    co_return co_await resources_.readSystem();
  }
  CO_TRY(answer, co_await resources_.session().get(uri));
  co_return std::make_shared<const RedfishReply>(std::move(answer));
}

Async<void> RedfishBoot::write(std::string uri, BootOverride what) {
  CO_TRY(at, co_await resources_.uris());
  CO_TRY(now, co_await (uri == at.system ? resources_.cachedSystem() : read(uri)));
  Json boot = Json::object();
  const auto target = what.target;
  boot["BootSourceOverrideEnabled"] = target == BootTarget::None ? "Disabled"
                                      : what.persistent          ? kContinuous
                                                                 : "Once";
  boot["BootSourceOverrideTarget"] = redfishName(target);
  const auto allowed = textsAt(now->body, "Boot/BootSourceOverrideTarget@Redfish.AllowableValues");
  if (target == BootTarget::Cd && std::ranges::find(allowed, kUsbCd) != allowed.end())
    boot["BootSourceOverrideTarget"] = kUsbCd;
  if (!what.http_uri.empty()) boot["HttpBootUri"] = what.http_uri;
  // Sent with every write where the property exists: some BMCs fall back to the other mode without
  // it (Supermicro).
  if (at.quirks.boot_mode && find(now->body, "Boot/BootSourceOverrideMode")) {
    const bool uefi = boot_mode_ == inventory::BootMode::Uefi || target == BootTarget::UefiHttp;
    boot["BootSourceOverrideMode"] = uefi ? "UEFI" : "Legacy";
  }
  Json body = Json::object();
  body["Boot"] = std::move(boot);
  CO_TRY_OK(co_await resources_.session().patch(uri, std::move(body), now->etag()));
  co_return Result<void>();
}

}  // namespace muster::bmc
