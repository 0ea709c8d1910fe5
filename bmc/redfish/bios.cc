// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/bios.h"

#include "base/json_input.h"

#include <algorithm>

namespace muster::bmc {
namespace {

constexpr std::size_t kMaxNamesShown = 6;
constexpr const char* kOnReset = "OnReset";  ///< Settings.ApplyTime

std::map<std::string, std::string> attributesOf(const Json& resource) {
  std::map<std::string, std::string> out;
  const Json* attributes = find(resource, "Attributes");
  if (!attributes || !attributes->is_object()) return out;
  for (const auto& [name, value] : attributes->items())
    if (!value.is_structured()) out[name] = textAt(value, {});  // a name may hold a slash
  return out;
}

/// The first of the values that neither waits nor runs; "": there is none.
std::string missingOf(const std::map<std::string, std::string>& values,
                      const std::map<std::string, std::string>& staged,
                      const std::map<std::string, std::string>& running) {
  for (const auto& [name, value] : values) {
    const auto waits = staged.find(name);
    const auto runs = running.find(name);
    const bool good = waits != staged.end() ? waits->second == value
                                            : runs != running.end() && runs->second == value;
    if (!good) return fmt::format("{} = {}", name, value);
  }
  return {};
}

/// The value in the type that the attribute has now: "120" stays a number.
Json typed(const Json& like, const std::string& value) {
  if (like.is_boolean()) return value == "true" || value == "True" || value == "1";
  if (like.is_number_integer())
    return jsonOrNone(value, kFileJson).is_number_integer() ? jsonOrNone(value, kFileJson)
                                                            : Json(value);
  return value;
}

std::string likely(const Json& attributes, const std::string& name) {
  std::string out;
  std::size_t shown = 0;
  for (const auto& [other, value] : attributes.items())
    if (other.starts_with(name.substr(0, 4)) && shown++ < kMaxNamesShown)
      out += (out.empty() ? "; it has " : ", ") + other;
  return out;
}

}  // namespace

Async<RedfishBios::Resource> RedfishBios::read() {
  CO_TRY(at, co_await resources_.uris());
  CO_TRY(system, co_await resources_.session().get(at.system));
  const auto link = linkAt(system.body, "Bios");
  if (link.empty()) co_return fail(ErrorCode::NotFound, address() + " shows no BIOS attributes");
  CO_TRY(now, co_await resources_.session().get(link));
  Resource bios{now.body, linkAt(now.body, "@Redfish.Settings/SettingsObject")};
  if (bios.settings.empty()) bios.settings = link + "/Settings";
  const auto times = textsAt(now.body, "@Redfish.Settings/SupportedApplyTimes");
  bios.on_reset = std::find(times.begin(), times.end(), kOnReset) != times.end();
  co_return bios;
}

Async<std::map<std::string, std::string>> RedfishBios::biosAttributes() {
  CO_TRY(now, co_await read());
  auto attributes = attributesOf(now.json);
  if (attributes.empty())
    co_return fail(ErrorCode::NotFound, address() + " shows no BIOS attributes");
  co_return attributes;
}

Async<std::map<std::string, std::string>> RedfishBios::stagedBiosAttributes() {
  CO_TRY(now, co_await read());
  auto staged = co_await resources_.session().get(now.settings);
  if (!staged && staged.error().code() == ErrorCode::NotFound)
    co_return std::map<std::string, std::string>();
  if (!staged) co_return fail(std::move(staged.error()));
  // Some list everything there, some only what waits.
  auto waiting = attributesOf(staged->body);
  const auto current = attributesOf(now.json);
  std::erase_if(waiting, [&](const auto& entry) {
    const auto known = current.find(entry.first);
    return known != current.end() && known->second == entry.second;
  });
  co_return waiting;
}

Async<void> RedfishBios::stageBios(std::map<std::string, std::string> values) {
  CO_TRY(now, co_await read());
  const Json* known = find(now.json, "Attributes");
  Json attributes = Json::object();
  for (const auto& [name, value] : values) {
    const Json* like =
        known && known->is_object() && known->contains(name) ? &(*known)[name] : nullptr;
    if (!like)
      co_return fail(ErrorCode::InvalidInput,
                     fmt::format("the BIOS of {} has no attribute {}{}", address(), name,
                                 known ? likely(*known, name) : ""));
    attributes[name] = typed(*like, value);
  }
  CO_TRY(settings, co_await resources_.session().get(now.settings));
  Json body = Json::object();
  body["Attributes"] = std::move(attributes);
  if (now.on_reset) body["@Redfish.SettingsApplyTime"]["ApplyTime"] = kOnReset;
  auto written =
      co_await resources_.session().patch(now.settings, std::move(body), settings.etag());
  if (!written && written.error().code() != ErrorCode::Conflict)
    co_return fail(std::move(written.error()));
  CO_TRY(staged, co_await stagedBiosAttributes());
  const auto missing = missingOf(values, staged, attributesOf(now.json));
  // What was staged before waits for its restart, and nothing may be added. A process that died has
  // perhaps staged just this.
  if (!missing.empty() && !written)
    co_return fail(std::move(written).error().within(fmt::format(
        "staging {}; what waits now needs a restart first, or its job deleted", missing)));
  if (!missing.empty())
    co_return fail(
        ErrorCode::Unavailable,
        fmt::format("{} accepted {} but does not show it as staged", address(), missing));
  co_return Result<void>();
}

}  // namespace muster::bmc
