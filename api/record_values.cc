// SPDX-License-Identifier: Apache-2.0
#include "api/record_values.h"

#include "api/answer_members.h"
#include "api/tokens.h"
#include "app/fabric/fabric_look.h"
#include "app/firmware/firmware_baselines.h"
#include "app/images.h"
#include "app/nodes/bmc_credentials.h"
#include "app/nodes/discovery.h"
#include "app/nodes/measurements.h"
#include "app/records/notifications.h"
#include "app/site/site_records.h"
#include "app/validation/certificates.h"
#include "base/json_output.h"
#include "bmc/console/boot_log.h"
#include "lifecycle/audit/history.h"
#include "lifecycle/model/json.h"

#include <limits>

namespace muster::api {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMostCount = std::numeric_limits<int>::max();

int smallCount(Members& read, const char* key) {
  return static_cast<int>(read.unsignedNumber(key, kMostCount));
}

/// JSON has no infinity: it says null.
double anyNumber(Members& read, const char* key) {
  const auto* value = read.field(key);
  return value && value->is_null() ? std::numeric_limits<double>::infinity() : read.number(key, 0);
}

Error unreadable(const Error& error) {
  return Error(ErrorCode::Corrupt, "the server's answer cannot be read: " + error.text());
}

Result<app::FirmwareStep> stepFrom(const json& source) {
  Members read(source, "firmware.step");
  return read.as(app::FirmwareStep{read.text("component"), read.text("from"), read.text("to")});
}

Result<app::FirmwareWave> waveFrom(const json& source) {
  Members read(source, "firmware.wave");
  return read.as(app::FirmwareWave{read.text("activation"), smallCount(read, "minutes"),
                                   read.items("steps", stepFrom)});
}

Result<app::FirmwareUndone> undoneFrom(const json& source) {
  Members read(source, "firmware.undone");
  return read.as(app::FirmwareUndone{read.text("component"), read.text("running"),
                                     read.text("wanted"), read.text("why")});
}

std::vector<std::string> hostlistOf(Members& read, const char* key) {
  std::vector<std::string> out;
  for (const auto& name : read.nodes(key)) out.push_back(name.str());
  return out;
}

Result<app::FabricLevel> levelFrom(const json& source) {
  Members read(source, "fabric.level");
  return read.as(app::FabricLevel{smallCount(read, "level"), hostlistOf(read, "switches"),
                                  read.count("cables"), read.count("deviating"),
                                  read.count("bad")});
}

Result<app::FabricFound> foundFrom(const json& source) {
  Members read(source, "fabric.found");
  return read.as(app::FabricFound{read.time("looked_at"), read.text("error"), read.text("note"),
                                  read.count("devices"), read.count("links"),
                                  read.count("deviations"), read.count("excluded"),
                                  read.texts("repairs")});
}

Result<app::FabricCounters> countersFrom(const json& source) {
  Members read(source, "fabric.health");
  app::FabricCounters out{
      read.time("looked_at"), read.text("error"), read.number("window_s", 0), {}, {}};
  Members grades(read.object("grades", kAnswerItems), "fabric.health.grades");
  for (const auto& [grade, cables] : read.object("grades", kAnswerItems).items())
    out.grades[grade] = grades.count(grade.c_str());
  if (const auto good = grades.finish(); !good) read.take(good.error());
  out.hints = read.texts("hints");
  return read.as(std::move(out));
}

/// The value that is called so.
template <class Enum, class Name>
std::optional<Enum> oneOf(const std::string& text, std::initializer_list<Enum> all, Name name) {
  for (const auto each : all)
    if (name(each) == text) return each;
  return std::nullopt;
}

std::optional<app::CableState> parseCableState(const std::string& text) {
  using app::CableState;
  return oneOf(
      text,
      {CableState::NotSeen, CableState::AsDeclared, CableState::Deviates, CableState::Excused},
      [](CableState state) { return wordOf(state); });
}

Result<app::CableFault> faultFrom(const json& source) {
  Members read(source, "cable.fault");
  return read.as(app::CableFault{read.text("kind"), read.text("declared"), read.text("found"),
                                 read.text("repair")});
}

}  // namespace

Result<lifecycle::History> historyFrom(const json& source) {
  Members read(source, "history");
  lifecycle::History out;
  for (const auto& each : read.array("requests", kAnswerItems)) {
    auto request = lifecycle::requestFromJson(each);
    if (!request) return fail(unreadable(request.error()));
    out.requests.push_back(std::move(*request));
  }
  for (const auto& each : read.array("actions", kAnswerItems)) {
    auto intent = lifecycle::intentFromJson(each);
    if (!intent) return fail(unreadable(intent.error()));
    out.intents.push_back(std::move(*intent));
  }
  return read.as(std::move(out));
}

Result<app::NodeUpgrade> nodeUpgradeFrom(const json& source) {
  Members read(source, "firmware.node");
  return read.as(app::NodeUpgrade{NodeName(read.text("node")), read.text("baseline"),
                                  smallCount(read, "flashes"), smallCount(read, "resets"),
                                  smallCount(read, "ac_cycles"), smallCount(read, "minutes"),
                                  read.items("waves", waveFrom), read.items("undone", undoneFrom),
                                  read.texts("forbidden_now")});
}

Result<provision::KeptImage> keptImageFrom(const json& source) {
  Members read(source, "image");
  provision::KeptImage out;
  out.name = read.text("image");
  out.digest = read.text("digest");
  out.key = read.text("key", kMayBeAbsent);
  out.predecessor = read.text("predecessor", kMayBeAbsent);
  out.size_bytes = read.count("size_bytes");
  out.pack_bytes = read.count("pack_bytes");
  out.signers = read.texts("signers");
  out.profiles = read.texts("profiles");
  out.declared = read.flag("declared");
  out.fault = read.text("fault");
  return read.as(std::move(out));
}

Result<app::FabricSummary> fabricSummaryFrom(const json& source) {
  Members read(source, "fabric");
  app::FabricSummary out{read.text("name"),
                         read.texts("fabrics"),
                         read.count("switches"),
                         read.count("hcas"),
                         read.count("cables"),
                         read.count("faulty"),
                         read.items("levels", levelFrom),
                         {},
                         {}};
  const auto part = [&read](const char* key, auto make, auto& into) {
    const auto* found = read.field(key, kMayBeAbsent);
    if (!found) return;
    auto made = make(*found);
    if (made)
      into = std::move(*made);
    else
      read.take(made.error());
  };
  part("found", foundFrom, out.found);
  part("health", countersFrom, out.health);
  return read.as(std::move(out));
}

Result<app::FabricCable> fabricCableFrom(const json& source) {
  Members read(source, "cable");
  app::FabricCable out;
  out.a = {read.text("a"), smallCount(read, "a_port")};
  out.b = {read.text("b"), smallCount(read, "b_port")};
  out.width_speed = read.text("width_speed");
  out.level = smallCount(read, "level");
  out.state = read.word("state", parseCableState);
  out.faults = read.items("faults", faultFrom);
  if (const auto* health = read.field("health", kMayBeAbsent)) {
    Members member(*health, "cable.health");
    out.health = app::CableHealth{member.text("grade"), member.texts("complaints"),
                                  member.text("advice"), member.text("transceiver")};
    if (const auto good = member.finish(); !good) read.take(good.error());
  }
  return read.as(std::move(out));
}

Result<validate::Certificate> certificateFrom(json source) {
  if (!source.is_object()) return fail(ErrorCode::Corrupt, "the server answers no certificate");
  source.erase("valid");
  source.erase("void_because");
  // In the form in which it is signed.
  auto made = validate::Certificate::fromJson(jsonText(source, 2) + "\n");
  if (!made) return fail(unreadable(made.error()));
  return made;
}

Result<app::CertificateVerdict> certificateVerdictFrom(const json& source) {
  Members read(source, "certificate");
  app::CertificateVerdict out{NodeName(read.text("node")), {}};
  const auto why = read.text("void_because");
  if (!read.flag("valid")) out.valid = fail(ErrorCode::Denied, why);
  out.override_by = read.text("override_by", kMayBeAbsent);
  return read.as(std::move(out));
}

Result<app::DiscoveredMachine> discoveredMachineFrom(const json& source) {
  Members read(source, "machine");
  app::DiscoveredMachine out;
  out.node = read.text("known_as");
  if (const auto good = read.as(0); !good) return std::unexpected(good.error());
  auto machine = discovery::machineOf(source);
  if (!machine) return fail(unreadable(machine.error()));
  out.machine = std::move(*machine);
  return out;
}

Result<discovery::Anomaly> anomalyFrom(const json& source) {
  Members read(source, "finding");
  return read.as(
      discovery::Anomaly{read.text("what"), read.text("where"), read.text("what_to_do")});
}

Result<app::MeasuredFleet> measuredFleetFrom(const json& source) {
  Members read(source, "measurements");
  app::MeasuredFleet out;
  out.numbers = read.count("numbers");
  out.comparisons = read.count("comparisons");
  out.false_alarms = read.number("false_alarms_expected", 0);
  out.nodes = read.array("nodes", kAnswerItems).size();
  out.alarms = read.items("alarms", [](const json& each) -> Result<app::MeasuredFleet::Alarm> {
    Members alarm(each, "measurements.alarm");
    return alarm.as(app::MeasuredFleet::Alarm{alarm.text("kind"), alarm.text("text"),
                                              anyNumber(alarm, "sigmas"),
                                              anyNumber(alarm, "limit")});
  });
  out.typical = read.items("groups", [](const json& each) -> Result<app::MeasuredFleet::Typical> {
    Members group(each, "measurements.group");
    return group.as(app::MeasuredFleet::Typical{group.text("sku"), group.text("metric"),
                                                group.count("values"), anyNumber(group, "median"),
                                                anyNumber(group, "sigma")});
  });
  out.not_said = read.text("not_said", kMayBeAbsent);  // an older server has none
  out.left_out = read.text("left_out");
  return read.as(std::move(out));
}

Result<app::BmcIdentity> bmcIdentityFrom(const json& source) {
  Members read(source, "bmc");
  app::BmcIdentity out;
  out.node = NodeName(read.text("node"));
  out.url = read.text("bmc");
  out.memory.pin = read.text("pin");
  out.memory.trust = read.word("trust", [](const std::string& text) {
    using bmc::BmcTrustBy;
    return oneOf(text,
                 {BmcTrustBy::Pin, BmcTrustBy::Ca, BmcTrustBy::FirstContact, BmcTrustBy::Nothing},
                 [](BmcTrustBy trust) { return app::wordOf(trust); });
  });
  out.memory.inventory_is_behind = read.flag("inventory_is_behind");
  out.memory.password_refused = read.flag("password_refused");
  out.signer = read.text("signer", kMayBeAbsent);
  out.rotates = read.field("rotation", kMayBeAbsent) != nullptr;
  if (out.rotates)
    out.memory.rotation = read.word("rotation", [](const std::string& text) {
      using bmc::Rotation;
      return oneOf(text, {Rotation::None, Rotation::Interrupted, Rotation::Done},
                   [](Rotation rotation) { return app::wordOf(rotation); });
    });
  return read.as(std::move(out));
}

Result<bmc::KeptBoot> keptBootFrom(const json& source) {
  Members read(source, "boot");
  return read.as(bmc::KeptBoot{smallCount(read, "boot"), read.time("began"), read.text("why")});
}

Result<Token> tokenFrom(const json& source) {
  Members read(source, "token");
  Token out;
  out.id = read.text("id");
  out.name = read.text("name");
  out.role = read.word("role", parseRole);
  Members scope(read.object("scope", kAnswerItems), "token.scope");
  out.scope = {scope.texts("pools"), scope.texts("racks"), scope.text("nodes")};
  if (const auto good = scope.finish(); !good) read.take(good.error());
  out.created_at = read.time("created_at");
  out.created_by = read.text("created_by");
  out.owner = read.text("owner", kMayBeAbsent);
  out.expires_at = read.time("expires_at");
  out.revoked = read.flag("revoked");
  if (read.field("login", kMayBeAbsent) && read.flag("login")) out.principal = out.owner;
  return read.as(std::move(out));
}

Result<app::PoolBreaker> poolBreakerFrom(const json& source) {
  Members read(source, "breaker");
  return read.as(app::PoolBreaker{read.text("pool"), read.nodes("nodes")});
}

Result<app::ReceiverState> receiverFrom(const json& source) {
  Members read(source, "receiver");
  app::ReceiverState out;
  out.name = read.text("name");
  out.url = read.text("url");
  out.format = read.text("format");
  out.is_told = read.flag("told");
  out.waiting = read.count("waiting");
  out.trouble = read.text("trouble");
  return read.as(std::move(out));
}

}  // namespace muster::api
