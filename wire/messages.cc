// SPDX-License-Identifier: Apache-2.0
#include "wire/messages.h"

#include "base/io/crypto.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "wire/json_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace muster::wire {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxDeadlineSeconds = 7 * 24 * 3600;
constexpr std::size_t kMaxPemBytes = 64u << 10;
constexpr std::size_t kFingerprintDigits = 32;

template <class E, std::size_t N>
using Words = std::array<std::pair<E, std::string_view>, N>;

constexpr Words<Mode, 2> kModes{{{Mode::Ram, "ram"}, {Mode::Disk, "disk"}}};
constexpr Words<TaskKind, 17> kKinds{{{TaskKind::Inspect, "inspect"},
                                      {TaskKind::WriteImage, "write-image"},
                                      {TaskKind::InstallDriver, "install-driver"},
                                      {TaskKind::RunChecks, "run-checks"},
                                      {TaskKind::RdmaPair, "rdma-pair"},
                                      {TaskKind::JoinPool, "join-pool"},
                                      {TaskKind::LeavePool, "leave-pool"},
                                      {TaskKind::Reboot, "reboot"},
                                      {TaskKind::Probe, "probe"},
                                      {TaskKind::ResetGpu, "reset-gpu"},
                                      {TaskKind::KernelLog, "kernel-log"},
                                      {TaskKind::EraseDisks, "erase-disks"},
                                      {TaskKind::StartImage, "start-image"},
                                      {TaskKind::NodeService, "node-service"},
                                      {TaskKind::Storage, "storage"},
                                      {TaskKind::ListFirmware, "list-firmware"},
                                      {TaskKind::InstallFirmware, "install-firmware"}}};
constexpr Words<TaskPhase, 4> kPhases{{{TaskPhase::Queued, "queued"},
                                       {TaskPhase::Running, "running"},
                                       {TaskPhase::Done, "done"},
                                       {TaskPhase::Failed, "failed"}}};
constexpr Words<CheckStatus, 6> kStatuses{{{CheckStatus::Pass, "pass"},
                                           {CheckStatus::Fail, "fail"},
                                           {CheckStatus::Skipped, "skipped"},
                                           {CheckStatus::Error, "error"},
                                           {CheckStatus::Timeout, "timeout"},
                                           {CheckStatus::NoData, "no-data"}}};

constexpr Words<TaskReason, 6> kReasons{{{TaskReason::DisksUntouched, "disks-untouched"},
                                         {TaskReason::SystemWipeDenied, "system-wipe-denied"},
                                         {TaskReason::DataWipeDenied, "data-wipe-denied"},
                                         {TaskReason::MemberReplaced, "member-replaced"},
                                         {TaskReason::DiskFailing, "disk-failing"},
                                         {TaskReason::Restarting, "restarting"}}};
constexpr Words<DiskUse, 5> kDiskUses{{{DiskUse::Unknown, "unknown"},
                                       {DiskUse::Empty, "empty"},
                                       {DiskUse::System, "system"},
                                       {DiskUse::DataSet, "data-set"},
                                       {DiskUse::Other, "other"}}};

constexpr Words<ErrorCode, 8> kCodes{{{ErrorCode::InvalidInput, "invalid-input"},
                                      {ErrorCode::NotFound, "not-found"},
                                      {ErrorCode::Conflict, "conflict"},
                                      {ErrorCode::Unavailable, "unavailable"},
                                      {ErrorCode::Timeout, "timeout"},
                                      {ErrorCode::Denied, "denied"},
                                      {ErrorCode::Corrupt, "corrupt"},
                                      {ErrorCode::Internal, "internal"}}};

template <class E, std::size_t N>
std::string_view wordOf(const Words<E, N>& words, E value) {
  for (const auto& [each, word] : words) {
    if (each == value) return word;
  }
  return "unknown";
}

template <class E, std::size_t N>
std::optional<E> valueOf(const Words<E, N>& words, std::string_view text) {
  for (const auto& [value, word] : words) {
    if (word == text) return value;
  }
  return std::nullopt;
}

template <class E, std::size_t N>
E readWord(JsonReader& reader, const char* key, const Words<E, N>& words, E fallback) {
  std::string text = reader.text(key, kMaxNameBytes);
  auto value = valueOf(words, text);
  if (!value) reader.wrong(key, "is not a known word: \"" + text + "\"");
  return value.value_or(fallback);
}

/// A reason that only a newer agent knows says nothing here.
std::vector<TaskReason> readReasons(JsonReader& reader) {
  std::vector<TaskReason> reasons;
  for (const auto& word : readTexts(reader, "reasons", kMaxReasons, kMaxNameBytes, true))
    if (const auto reason = valueOf(kReasons, word)) reasons.push_back(*reason);
  return reasons;
}

/// Text from the outside may hold bytes that are no UTF-8; they travel as replacement characters.
std::string print(const json& value) { return jsonText(value); }

std::string itemPath(const JsonReader& reader, const char* key, std::size_t index) {
  return reader.path() + "." + key + "[" + std::to_string(index) + "]";
}

template <class T, class Read>
std::vector<T> readItems(JsonReader& reader, const char* key, std::size_t max_items, Read read,
                         bool optional = false) {
  std::vector<T> items;
  std::size_t index = 0;
  for (const auto& entry : reader.array(key, max_items, optional)) {
    JsonReader inner(entry, itemPath(reader, key, index++));
    items.push_back(read(inner));
    if (auto ok = inner.finish(); !ok) {
      reader.take(ok.error());
      return {};
    }
  }
  return items;
}

json reportJson(const AgentTaskReport& report) {
  json out{{"id", report.id}, {"phase", wordOf(kPhases, report.phase)}};
  if (report.fraction >= 0) out["fraction"] = report.fraction;
  if (!report.text.empty()) out["text"] = report.text;
  if (!report.result.empty()) out["result"] = report.result;
  if (report.phase == TaskPhase::Failed) out["code"] = wordOf(kCodes, report.code);
  for (const auto reason : report.reasons) out["reasons"].push_back(toString(reason));
  return out;
}

json reportsJson(const std::vector<AgentTaskReport>& reports) {
  json list = json::array();
  for (const auto& report : reports) list.push_back(reportJson(report));
  return list;
}

AgentTaskReport readReport(JsonReader& reader) {
  AgentTaskReport report;
  report.id = reader.text("id", kMaxNameBytes);
  if (report.id.empty()) reader.wrong("id", "is empty");
  report.phase = readWord(reader, "phase", kPhases, TaskPhase::Queued);
  report.fraction = reader.number("fraction", -1);
  report.text = reader.text("text", kMaxTextBytes, true);
  report.result = reader.text("result", kMaxResultBytes, true);
  if (report.phase == TaskPhase::Failed)
    report.code = readWord(reader, "code", kCodes, ErrorCode::Internal);
  report.reasons = readReasons(reader);
  return report;
}

json taskJson(const AgentTask& task) {
  json out{{"id", task.id},
           {"kind", wordOf(kKinds, task.kind)},
           {"params", task.params},
           {"deadline_seconds", task.deadline.count()}};
  if (task.fence.token > 0) {
    out["ledger"] = task.fence.ledger;
    out["fence"] = task.fence.token;
  }
  return out;
}

AgentTask readTask(JsonReader& reader) {
  AgentTask task;
  task.id = reader.text("id", kMaxNameBytes);
  if (task.id.empty()) reader.wrong("id", "is empty");
  task.kind = readWord(reader, "kind", kKinds, TaskKind::Inspect);
  task.params = reader.text("params", kMaxResultBytes);
  if (auto params = parseObject(task.params, kMaxResultBytes, "params"); !params)
    reader.wrong("params", "must be a JSON object as text");
  task.deadline =
      std::chrono::seconds(reader.unsignedNumber("deadline_seconds", kMaxDeadlineSeconds));
  task.fence.ledger = reader.text("ledger", kMaxNameBytes, true);
  task.fence.token = static_cast<std::int64_t>(
      reader.unsignedNumber("fence", std::numeric_limits<std::int64_t>::max(), true));
  return task;
}

json numberOrNull(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

json checkJson(const CheckResult& check) {
  json values = json::object();
  for (const auto& [name, value] : check.values) values[name] = numberOrNull(value);
  return {{"id", check.id},
          {"status", wordOf(kStatuses, check.status)},
          {"text", check.text},
          {"values", values},
          {"evidence", check.evidence},
          {"seconds", numberOrNull(check.seconds)}};
}

CheckResult readCheck(JsonReader& reader) {
  CheckResult check;
  check.id = reader.text("id", kMaxNameBytes);
  check.status = readWord(reader, "status", kStatuses, CheckStatus::NoData);
  check.text = reader.text("text", kMaxTextBytes);
  for (const auto& [name, value] : reader.object("values", kMaxProbes).items()) {
    if (!value.is_number() && !value.is_null()) reader.wrong("values." + name, "must be a number");
    if (value.is_number()) check.values[name] = value.get<double>();
    if (value.is_null()) check.values[name] = std::numeric_limits<double>::quiet_NaN();
  }
  check.evidence = reader.text("evidence", kMaxResultBytes, true);
  check.seconds = reader.number("seconds", 0);
  return check;
}

/// A list, wrapped so that it can be read as a field.
Result<json> parseList(std::string_view text, std::string_view what) {
  if (text.size() > kMaxMessageBytes)
    return fail(ErrorCode::Corrupt, std::string(what) + " is too large");
  json list = jsonOrNone(text, kAgentJson);
  if (list.is_discarded()) return fail(ErrorCode::Corrupt, std::string(what) + " is not JSON");
  return json{{"list", std::move(list)}};
}

template <class T>
Result<T> finished(const JsonReader& reader, T value) {
  TRY_OK(reader.finish());
  return value;
}

}  // namespace

std::string_view toString(Mode mode) { return wordOf(kModes, mode); }
std::string_view toString(TaskKind kind) { return wordOf(kKinds, kind); }
std::string_view toString(TaskPhase phase) { return wordOf(kPhases, phase); }
std::string_view toString(TaskReason reason) { return wordOf(kReasons, reason); }
std::string_view toString(DiskUse use) { return wordOf(kDiskUses, use); }
std::string_view toString(CheckStatus status) { return wordOf(kStatuses, status); }

bool AgentTaskReport::has(TaskReason reason) const {
  return std::find(reasons.begin(), reasons.end(), reason) != reasons.end();
}

Error AgentTaskReport::failure() const {
  Error error(code, text);
  for (const auto reason : reasons) error = std::move(error).because(reason);
  return error;
}

Result<TaskKind> parseTaskKind(std::string_view text) {
  if (auto kind = valueOf(kKinds, text)) return *kind;
  return fail(ErrorCode::InvalidInput,
              "no such kind of task: \"" + std::string(text.substr(0, 64)) + "\"");
}

Result<json> parseObject(std::string_view text, std::size_t max_bytes, std::string_view what) {
  if (text.size() > max_bytes) {
    return fail(ErrorCode::Corrupt,
                std::string(what) + " is larger than " + std::to_string(max_bytes) + " bytes");
  }
  json value = jsonOrNone(text, kAgentJson);
  if (value.is_discarded()) return fail(ErrorCode::Corrupt, std::string(what) + " is not JSON");
  if (!value.is_object())
    return fail(ErrorCode::Corrupt, std::string(what) + " is not a JSON object");
  return value;
}

std::vector<std::string> readTexts(JsonReader& reader, const char* key, std::size_t max_items,
                                   std::size_t max_bytes, bool optional) {
  std::vector<std::string> texts;
  for (const auto& entry : reader.array(key, max_items, optional)) {
    if (!entry.is_string() || entry.get_ref<const std::string&>().size() > max_bytes) {
      reader.wrong(key,
                   "must be a list of texts of at most " + std::to_string(max_bytes) + " bytes");
      return {};
    }
    texts.push_back(entry.get<std::string>());
  }
  return texts;
}

std::map<std::string, std::string> readTextMap(JsonReader& reader, const char* key,
                                               std::size_t max_items, bool optional) {
  std::map<std::string, std::string> texts;
  for (const auto& [name, value] : reader.object(key, max_items, optional).items()) {
    if (name.size() > kMaxNameBytes || !value.is_string() ||
        value.get_ref<const std::string&>().size() > kMaxTextBytes) {
      reader.wrong(key, "must hold texts of at most " + std::to_string(kMaxTextBytes) + " bytes");
      return {};
    }
    texts[name] = value.get<std::string>();
  }
  return texts;
}

std::string toJson(const PollRequest& request) {
  if (request.unchanged_since != 0)
    return print({{"mode", wordOf(kModes, request.mode)},
                  {"boot_id", request.boot_id},
                  {"session", request.session},
                  {"sequence", request.sequence},
                  {"unchanged_since", request.unchanged_since}});
  json reports = reportsJson(request.reports);
  json out{{"mode", wordOf(kModes, request.mode)},
           {"boot_id", request.boot_id},
           {"agent_version", request.agent_version},
           {"probes", request.probes},
           {"reports", reports},
           {"session", request.session},
           {"sequence", request.sequence}};
  if (request.fresh) out["fresh"] = true;
  if (!request.wants_answer) out["wants_answer"] = false;
  if (!request.image_digest.empty()) out["image_digest"] = request.image_digest;
  if (!request.hardware.empty()) out["hardware"] = request.hardware;
  if (!request.health.empty()) out["health"] = request.health;
  return print(out);
}

Result<PollRequest> parsePollRequest(std::string_view text) {
  TRY(object, parseObject(text, kMaxMessageBytes, "poll"));
  JsonReader reader(object, "poll");
  PollRequest request;
  request.mode = readWord(reader, "mode", kModes, Mode::Ram);
  request.boot_id = reader.text("boot_id", kMaxNameBytes);
  if (request.boot_id.empty()) reader.wrong("boot_id", "is empty");
  request.session = reader.text("session", kMaxNameBytes, true);
  request.sequence = reader.unsignedNumber("sequence", std::numeric_limits<std::uint64_t>::max());
  request.unchanged_since =
      reader.unsignedNumber(reader.field("unchanged_since", true) ? "unchanged_since" : "as_before",
                            std::numeric_limits<std::uint64_t>::max(), true);
  if (request.unchanged_since != 0) {
    request.wants_answer = false;
    return finished(reader, std::move(request));
  }
  request.agent_version = reader.text("agent_version", kMaxNameBytes);
  request.image_digest = reader.text("image_digest", kMaxNameBytes, true);
  request.probes = readTextMap(reader, "probes", kMaxProbes);
  request.reports = readItems<AgentTaskReport>(reader, "reports", kMaxTasks, readReport);
  request.hardware = reader.text("hardware", kMaxResultBytes, true);
  request.health = reader.text("health", kMaxResultBytes, true);
  request.fresh = reader.flag("fresh", false);
  request.wants_answer = reader.flag("wants_answer", true);
  return finished(reader, std::move(request));
}

std::string toJson(const std::vector<AgentTaskReport>& reports) {
  return print(reportsJson(reports));
}

Result<std::vector<AgentTaskReport>> parseReports(std::string_view text) {
  TRY(object, parseList(text, "list of tasks"));
  JsonReader reader(object, "tasks");
  auto reports = readItems<AgentTaskReport>(reader, "list", kMaxTasks, readReport);
  return finished(reader, std::move(reports));
}

std::string toJson(const PollResponse& response) {
  json start = json::array();
  for (const auto& task : response.start) start.push_back(taskJson(task));
  return print({{"start", start},
                {"forget", response.forget},
                {"session", response.session},
                {"controllers", response.controllers},
                {"supports_delta", response.supports_delta}});
}

Result<PollResponse> parsePollResponse(std::string_view text) {
  TRY(object, parseObject(text, kMaxMessageBytes, "answer to a poll"));
  JsonReader reader(object, "answer");
  PollResponse response;
  response.start = readItems<AgentTask>(reader, "start", kMaxTasks, readTask);
  response.forget = readTexts(reader, "forget", kMaxTasks, kMaxNameBytes);
  response.session = reader.text("session", kMaxNameBytes, true);
  response.controllers = reader.text("controllers", kMaxNameBytes, true);
  response.supports_delta = reader.flag("supports_delta", false);
  return finished(reader, std::move(response));
}

std::string requestFingerprint(std::string_view csr_pem) {
  return io::sha256Hex(csr_pem).substr(0, kFingerprintDigits);
}

std::string toJson(const EnrolRequest& request) {
  return print(
      {{"enrolment", request.enrolment}, {"csr_pem", request.csr_pem}, {"mac", request.mac}});
}

Result<EnrolRequest> parseEnrolRequest(std::string_view text) {
  TRY(object, parseObject(text, kMaxMessageBytes, "enrolment"));
  JsonReader reader(object, "enrolment");
  EnrolRequest request{reader.text("enrolment", kMaxNameBytes, true),
                       reader.text("csr_pem", kMaxPemBytes), reader.text("mac", kMaxNameBytes)};
  return finished(reader, std::move(request));
}

std::string toJson(const EnrolResponse& response) {
  return print({{"certificate_pem", response.certificate_pem},
                {"ca_pem", response.ca_pem},
                {"node", response.node}});
}

Result<EnrolResponse> parseEnrolResponse(std::string_view text) {
  TRY(object, parseObject(text, kMaxMessageBytes, "answer to the enrolment"));
  JsonReader reader(object, "answer");
  EnrolResponse response{reader.text("certificate_pem", kMaxPemBytes),
                         reader.text("ca_pem", kMaxPemBytes), reader.text("node", kMaxNameBytes)};
  return finished(reader, std::move(response));
}

std::string toJson(const Hardware& hardware) {
  json gpus = json::array(), disks = json::array(), nics = json::array();
  for (const auto& gpu : hardware.gpus) {
    gpus.push_back({{"model", gpu.model},
                    {"uuid", gpu.uuid},
                    {"serial", gpu.serial},
                    {"vbios", gpu.vbios},
                    {"pci", gpu.pci}});
  }
  for (const auto& disk : hardware.disks) {
    disks.push_back({{"path", disk.path},
                     {"serial", disk.serial},
                     {"wwn", disk.wwn},
                     {"model", disk.model},
                     {"content", disk.content},
                     {"size_bytes", disk.size_bytes}});
    if (disk.use != DiskUse::Unknown) disks.back()["use"] = toString(disk.use);
  }
  for (const auto& nic : hardware.nics)
    nics.push_back({{"name", nic.name}, {"mac", nic.mac}, {"driver", nic.driver}});
  json parts = json::array(), neighbours = json::array();
  for (const auto& part : hardware.parts)
    parts.push_back({{"kind", part.kind},
                     {"place", part.place},
                     {"model", part.model},
                     {"serial", part.serial},
                     {"firmware", part.firmware},
                     {"size_bytes", part.size_bytes}});
  for (const auto& at : hardware.neighbours)
    neighbours.push_back(
        {{"nic", at.nic}, {"mac", at.mac}, {"switch", at.switch_name}, {"port", at.port}});
  return print({{"manufacturer", hardware.manufacturer},
                {"product", hardware.product},
                {"serial", hardware.serial},
                {"uuid", hardware.uuid},
                {"cpus", hardware.cpus},
                {"memory_bytes", hardware.memory_bytes},
                {"gpus", gpus},
                {"disks", disks},
                {"nics", nics},
                {"rdma_devices", hardware.rdma_devices},
                {"parts", parts},
                {"neighbours", neighbours}});
}

Result<Hardware> parseHardware(std::string_view text) {
  TRY(object, parseObject(text, kMaxResultBytes, "hardware"));
  JsonReader reader(object, "hardware");
  auto name = [](JsonReader& from, const char* key) { return from.text(key, kMaxNameBytes); };
  Hardware hardware;
  hardware.manufacturer = name(reader, "manufacturer");
  hardware.product = name(reader, "product");
  hardware.serial = name(reader, "serial");
  hardware.uuid = name(reader, "uuid");
  hardware.cpus = static_cast<int>(reader.unsignedNumber("cpus", 1u << 20));
  hardware.memory_bytes =
      reader.unsignedNumber("memory_bytes", std::numeric_limits<std::uint64_t>::max());
  hardware.gpus = readItems<Gpu>(reader, "gpus", kMaxDevices, [&](JsonReader& from) {
    return Gpu{name(from, "model"), name(from, "uuid"), name(from, "serial"), name(from, "vbios"),
               name(from, "pci")};
  });
  hardware.disks = readItems<Disk>(reader, "disks", kMaxDevices, [&](JsonReader& from) {
    return Disk{
        name(from, "path"),
        name(from, "serial"),
        name(from, "wwn"),
        name(from, "model"),
        name(from, "content"),
        from.unsignedNumber("size_bytes", std::numeric_limits<std::uint64_t>::max()),
        valueOf(kDiskUses, from.text("use", kMaxNameBytes, true)).value_or(DiskUse::Unknown)};
  });
  hardware.nics = readItems<Nic>(reader, "nics", kMaxDevices, [&](JsonReader& from) {
    return Nic{name(from, "name"), name(from, "mac"), name(from, "driver")};
  });
  hardware.rdma_devices = readTexts(reader, "rdma_devices", kMaxDevices, kMaxNameBytes);
  hardware.parts = readItems<Part>(
      reader, "parts", kMaxDevices,
      [&](JsonReader& from) {
        return Part{name(from, "kind"),
                    name(from, "place"),
                    name(from, "model"),
                    name(from, "serial"),
                    name(from, "firmware"),
                    from.unsignedNumber("size_bytes", std::numeric_limits<std::uint64_t>::max())};
      },
      true);
  hardware.neighbours = readItems<Neighbour>(
      reader, "neighbours", kMaxDevices,
      [&](JsonReader& from) {
        return Neighbour{name(from, "nic"), name(from, "mac"), name(from, "switch"),
                         name(from, "port")};
      },
      true);
  return finished(reader, std::move(hardware));
}

std::string toJson(const std::vector<CheckResult>& checks) {
  json results = json::array();
  for (const auto& check : checks) results.push_back(checkJson(check));
  return print({{"results", std::move(results)}});
}

Result<std::vector<CheckResult>> parseCheckResults(std::string_view text) {
  TRY(object, parseObject(text, kMaxMessageBytes, "check results"));
  JsonReader reader(object, "checks");
  auto checks = readItems<CheckResult>(reader, "results", kMaxChecks, readCheck);
  return finished(reader, std::move(checks));
}

}  // namespace muster::wire
