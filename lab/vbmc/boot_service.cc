// SPDX-License-Identifier: Apache-2.0
#include "lab/vbmc/boot_service.h"

#include "base/json_output.h"
#include "lab/vbmc/patch_body.h"
#include "lab/vbmc/resource_parts.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

namespace muster::lab::vbmc {

namespace {

constexpr std::array kEnabled = {"Disabled", "Once", "Continuous"};
constexpr std::size_t kHttpOptions = 0x10;  ///< their numbers begin here

std::string textAt(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

io::ServerResponse badValue(const std::string& property, const std::string& value) {
  return redfishError(400, "Base.1.8.PropertyValueNotInList",
                      fmt::format("'{}' is not an allowed value of {}.", value, property),
                      "Use one of the allowable values.");
}

std::string digitsOf(std::string mac) {
  std::erase(mac, ':');
  std::ranges::transform(mac, mac.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return mac;
}

std::string reference(std::size_t number) { return fmt::format("Boot{:04X}", number); }

}  // namespace

/// The disk, each NIC by PXE and by HTTP, and systems that somebody left on other disks.
std::vector<BootService::Option> BootService::options() const {
  const auto& identity = bmc_.options.identity;
  std::vector<Option> out = {{reference(0), "UEFI NVMe Drive 1", "Hdd",
                              "PciRoot(0x0)/Pci(0x2,0x0)/Pci(0x0,0x0)/"
                              "NVMe(0x1,00-00-00-00-00-00-00-01)"}};
  for (std::size_t i = 0; i < identity.other_systems.size(); ++i)
    out.push_back({reference(0x20 + i), identity.other_systems[i], "",
                   fmt::format("HD(1,GPT,00000000-0000-4000-8000-{:012X},0x800,0x100000)/"
                               "\\EFI\\{}\\shimx64.efi",
                               i + 1, identity.other_systems[i])});
  for (const bool by_http : {false, true})
    for (std::size_t i = 0; i < identity.macs.size(); ++i) {
      const auto digits = digitsOf(identity.macs[i]);
      out.push_back(
          {reference((by_http ? kHttpOptions : 1) + i),
           fmt::format("UEFI {} (MAC:{})", by_http ? "HTTPv4" : "PXEv4", digits),
           by_http ? "UefiHttp" : "Pxe",
           fmt::format("PciRoot(0x0)/Pci(0x1,0x0)/Pci(0x0,0x0)/MAC({},0x1)/IPv4(0.0.0.0){}", digits,
                       by_http ? "/Uri()" : ""),
           BootDevice::Network});
    }
  return out;
}

/// As it was changed last, without what has gone; what is new comes last.
std::vector<std::string> BootService::order() const {
  std::vector<std::string> there, out;
  for (const auto& option : options()) there.push_back(option.reference);
  for (const auto& one : bmc_.state.boot_order)
    if (std::ranges::find(there, one) != there.end()) out.push_back(one);
  for (const auto& one : there)
    if (std::ranges::find(out, one) == out.end()) out.push_back(one);
  return out;
}

std::string BootService::idOf(const Option& option, std::size_t place) const {
  switch (bmc_.behaviour.option_ids) {
    case OptionIds::Numbers:
      return std::to_string(place + 1);
    case OptionIds::Digits:
      return option.reference.substr(std::string_view("Boot").size());
    case OptionIds::References:
      break;
  }
  return option.reference;
}

nlohmann::json BootService::bootObject(bool settings) const {
  const auto& behaviour = bmc_.behaviour;
  json boot = {{"BootSourceOverrideEnabled", bmc_.state.boot_once == "None" ? "Disabled"
                                             : bmc_.state.boot_lasts        ? "Continuous"
                                                                            : "Once"},
               {"BootSourceOverrideTarget", bmc_.state.boot_once},
               {"HttpBootUri", bmc_.state.boot_uri},
               {"BootOrder", order()}};
  if (settings && !bmc_.state.staged_boot_order.empty())
    boot["BootOrder"] = bmc_.state.staged_boot_order;
  if (!settings) boot["BootOptions"] = linkTo(kBootOptions);
  if (settings || !behaviour.override_on_settings || behaviour.targets_on_system) {
    boot["BootSourceOverrideTarget@Redfish.AllowableValues"] = behaviour.boot_targets;
    boot["BootSourceOverrideEnabled@Redfish.AllowableValues"] = kEnabled;
  }
  if (behaviour.boot_mode) boot["BootSourceOverrideMode"] = "UEFI";
  return boot;
}

void BootService::showLed(nlohmann::json& resource, LedOwner owner) const {
  const auto& led = bmc_.behaviour.led;
  if (led.owner != owner) return;
  if (!led.idle.empty()) resource["IndicatorLED"] = bmc_.state.locating ? led.locating : led.idle;
  if (led.active) resource["LocationIndicatorActive"] = bmc_.state.locating;
}

std::optional<nlohmann::json> BootService::resource(const std::string& path) const {
  if (path == kSystemSettings && bmc_.behaviour.override_on_settings) {
    json result = head(path, "ComputerSystem.v1_13_1.ComputerSystem", "Settings");
    result["Boot"] = bootObject(true);
    return result;
  }
  if (!path.starts_with(kBootOptions)) return std::nullopt;
  const auto all = options();
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < all.size(); ++i) ids.push_back(idOf(all[i], i));
  if (path == kBootOptions) return collection(path, "BootOptionCollection", ids);
  const auto found = std::ranges::find(ids, path.substr(path.rfind('/') + 1));
  if (found == ids.end() || path != kBootOptions + "/" + *found) return std::nullopt;
  const auto& option = all[static_cast<std::size_t>(found - ids.begin())];
  json result = head(path, "BootOption.v1_0_4.BootOption", "Boot Option");
  result["BootOptionReference"] = option.reference;
  result["DisplayName"] = option.name;
  if (bmc_.behaviour.options_can_be_off)
    result["BootOptionEnabled"] = !bmc_.state.boot_disabled.contains(option.reference);
  if (bmc_.behaviour.option_paths) result["UefiDevicePath"] = option.path;
  if (bmc_.behaviour.option_aliases && !option.alias.empty()) result["Alias"] = option.alias;
  return result;
}

bool BootService::takes(const std::string& path) const {
  const auto& behaviour = bmc_.behaviour;
  if (path == kSystem)
    return !behaviour.override_on_settings || behaviour.led.owner == LedOwner::System;
  if (path == kSystemSettings) return behaviour.override_on_settings;
  if (path == kChassis + "/chassis") return behaviour.led.owner == LedOwner::Chassis;
  return path.starts_with(kBootOptions + "/") && behaviour.options_can_be_off &&
         resource(path).has_value();
}

std::optional<io::ServerResponse> BootService::patchOverride(const nlohmann::json& boot) {
  auto target = textAt(boot, "BootSourceOverrideTarget"),
       enabled = textAt(boot, "BootSourceOverrideEnabled");
  if (target.empty() && enabled.empty() && !boot.contains("HttpBootUri")) return std::nullopt;
  if (target.empty()) target = enabled == "Disabled" ? "None" : bmc_.state.boot_once;
  if (enabled.empty()) enabled = target == "None" ? "Disabled" : "Once";
  const auto& targets = bmc_.behaviour.boot_targets;
  if (std::ranges::find(targets, target) == targets.end())
    return badValue("BootSourceOverrideTarget", target);
  if (std::ranges::find(kEnabled, enabled) == kEnabled.end())
    return badValue("BootSourceOverrideEnabled", enabled);
  bmc_.state.boot_once = enabled == "Disabled" ? "None" : target;
  bmc_.state.boot_lasts = enabled == "Continuous";
  if (auto uri = textAt(boot, "HttpBootUri"); !uri.empty()) bmc_.state.boot_uri = std::move(uri);
  return std::nullopt;
}

/// The whole list, each option once: a firmware that is given half of it drops the rest, so no
/// BMC takes that.
std::optional<io::ServerResponse> BootService::patchOrder(const nlohmann::json& boot,
                                                          bool settings) {
  const auto given = boot.find("BootOrder");
  if (given == boot.end()) return std::nullopt;
  const auto now = order();
  std::vector<std::string> wanted;
  if (given->is_array())
    for (const auto& one : *given)
      if (one.is_string()) wanted.push_back(one.get<std::string>());
  if (wanted.size() != now.size() || std::set<std::string>(wanted.begin(), wanted.end()) !=
                                         std::set<std::string>(now.begin(), now.end()))
    return redfishError(400, "Base.1.8.PropertyValueError",
                        "BootOrder must name each boot option once.",
                        "Send the whole list in another order.");
  (settings ? bmc_.state.staged_boot_order : bmc_.state.boot_order) = std::move(wanted);
  return std::nullopt;
}

io::ServerResponse BootService::patchOption(const io::ServerRequest& request,
                                            const std::string& path) {
  const auto body = PatchBody::read(request, {"BootOptionEnabled"});
  if (auto refusal = body.refusal()) return std::move(*refusal);
  if (!body.wanted()["BootOptionEnabled"].is_boolean())
    return badValue("BootOptionEnabled", jsonText(body.wanted()["BootOptionEnabled"]));
  const auto which = resource(path)->at("BootOptionReference").get<std::string>();
  if (body.wanted()["BootOptionEnabled"].get<bool>())
    bmc_.state.boot_disabled.erase(which);
  else
    bmc_.state.boot_disabled.insert(which);
  bmc_.save();
  return body.answer(*resource(path));
}

io::ServerResponse BootService::patch(const io::ServerRequest& request, const std::string& path,
                                      const std::function<nlohmann::json()>& shown) {
  if (path.starts_with(kBootOptions + "/")) return patchOption(request, path);
  const auto& behaviour = bmc_.behaviour;
  const bool boots = path == (behaviour.override_on_settings ? kSystemSettings : kSystem);
  const bool shows_led = (path == kSystem && behaviour.led.owner == LedOwner::System) ||
                         (path != kSystem && behaviour.led.owner == LedOwner::Chassis && !boots);
  const char* led_word = shows_led && !behaviour.led.idle.empty() ? "IndicatorLED" : "Boot";
  const char* led_active = shows_led && behaviour.led.active ? "LocationIndicatorActive" : "Boot";
  const auto body = boots ? PatchBody::read(request, {"Boot", led_word, led_active})
                          : PatchBody::read(request, {led_word, led_active});
  if (auto refusal = body.refusal()) return std::move(*refusal);
  const auto& wanted = body.wanted();
  if (body.has("Boot")) {
    if (!boots) return badValue("Boot", "here; the settings object takes it");
    if (!wanted["Boot"].is_object()) return badValue("Boot", jsonText(wanted["Boot"]));
    const auto before = bmc_.state;
    auto refusal = patchOverride(wanted["Boot"]);
    if (!refusal) refusal = patchOrder(wanted["Boot"], behaviour.override_on_settings);
    if (refusal) {
      bmc_.state = before;
      return std::move(*refusal);
    }
  }
  if (body.has("IndicatorLED")) {
    const auto word = textAt(wanted, "IndicatorLED");
    if (word != behaviour.led.idle && word != behaviour.led.locating)
      return badValue("IndicatorLED", word);
    bmc_.state.locating = word == behaviour.led.locating;
  }
  if (body.has("LocationIndicatorActive")) {
    if (!wanted["LocationIndicatorActive"].is_boolean())
      return badValue("LocationIndicatorActive", jsonText(wanted["LocationIndicatorActive"]));
    bmc_.state.locating = wanted["LocationIndicatorActive"].get<bool>();
  }
  bmc_.save();
  return body.answer(shown());
}

StartOptions BootService::beginStart() {
  if (!bmc_.state.staged_boot_order.empty()) {
    bmc_.state.boot_order = std::move(bmc_.state.staged_boot_order);
    bmc_.state.staged_boot_order.clear();
  }
  StartOptions start;
  const auto& once = bmc_.state.boot_once;
  if (once == "Pxe" || once == "UefiHttp") {
    start.first = BootDevice::Network;
  } else if (once == "Cd" || once == "UsbCd") {
    for (const auto& [id, medium] : bmc_.state.media)
      if (!medium.image.empty()) start.cd = medium.image;
  } else if (once == "None") {  // the first of the order that is on
    const auto all = options();
    for (const auto& one : order()) {
      if (bmc_.state.boot_disabled.contains(one)) continue;
      start.first = std::ranges::find(all, one, &Option::reference)->device;
      break;
    }
  }
  return start;
}

void BootService::endStart() {
  if (!bmc_.state.boot_lasts) bmc_.state.boot_once = "None";
}

}  // namespace muster::lab::vbmc
