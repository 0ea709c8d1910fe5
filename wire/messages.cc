// SPDX-License-Identifier: Apache-2.0
#include "wire/messages.h"

#include "base/json_input.h"
#include "wire/fields.h"

#include <algorithm>

namespace muster::wire {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxDeadlineSeconds = 7 * 24 * 3600;
constexpr std::size_t kMaxPemBytes = 64u << 10;
constexpr std::size_t kFingerprintDigits = 32;
constexpr std::uint64_t kMaxCpus = 1u << 20;

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

constexpr Text kName{kMaxNameBytes};
constexpr Text kText{kMaxTextBytes};

template <class E, std::size_t N>
constexpr Word<E, N> wordIn(const Words<E, N>& words) {
  return {&words, kMaxNameBytes};
}

/// A list, wrapped so that it can be read as a field.
Result<json> parseList(std::string_view text, std::string_view what) {
  if (text.size() > kMaxMessageBytes)
    return fail(ErrorCode::Corrupt, std::string(what) + " is too large");
  json list = jsonOrNone(text, kAgentJson);
  if (list.is_discarded()) return fail(ErrorCode::Corrupt, std::string(what) + " is not JSON");
  return json{{"list", std::move(list)}};
}

/// What a poll that names an earlier one leaves out.
constexpr auto kSaysAll = [](const PollRequest& poll) { return poll.unchanged_since == 0; };

/// {"results": […]}
struct CheckResults {
  std::vector<CheckResult> results;
};

}  // namespace

// ---- the fields of each message

template <>
inline constexpr auto kFields<AgentTaskReport> = std::tuple(
    field("id", &AgentTaskReport::id, kName).checked(kNotEmpty),
    field("phase", &AgentTaskReport::phase, wordIn(kPhases)),
    field("fraction", &AgentTaskReport::fraction, Number{}).omitted(),
    field("text", &AgentTaskReport::text, kText).omitted(),
    field("result", &AgentTaskReport::result, Text{kMaxResultBytes}).omitted(),
    field("code", &AgentTaskReport::code, wordIn(kCodes)).onlyIf([](const AgentTaskReport& report) {
      return report.phase == TaskPhase::Failed;
    }),
    field("reasons", &AgentTaskReport::reasons, KnownWords{&kReasons, kMaxReasons, kMaxNameBytes})
        .omitted());

template <>
inline constexpr auto kFields<AgentTask> =
    std::tuple(field("id", &AgentTask::id, kName).checked(kNotEmpty),
               field("kind", &AgentTask::kind, wordIn(kKinds)),
               field("params", &AgentTask::params, ObjectText{kMaxResultBytes}),
               field("deadline_seconds", &AgentTask::deadline, Seconds{kMaxDeadlineSeconds}),
               field(
                   "fence", [](auto& task) -> auto& { return task.fence.token; },
                   Whole{std::numeric_limits<std::int64_t>::max()})
                   .omitted(),
               field(
                   "ledger", [](auto& task) -> auto& { return task.fence.ledger; }, kName)
                   .optional()
                   .onlyIf([](const AgentTask& task) { return task.fence.token > 0; }));

template <>
inline constexpr auto kFields<PollRequest> = std::tuple(
    field("mode", &PollRequest::mode, wordIn(kModes)),
    field("boot_id", &PollRequest::boot_id, kName).checked(kNotEmpty),
    field("session", &PollRequest::session, kName).optional(),
    field("sequence", &PollRequest::sequence, Whole{}),
    field("unchanged_since", &PollRequest::unchanged_since, Renamed{Whole{}, "as_before"})
        .omitted(),
    field("agent_version", &PollRequest::agent_version, kName).onlyIf(kSaysAll),
    field("image_digest", &PollRequest::image_digest, kName).omitted().onlyIf(kSaysAll),
    field("probes", &PollRequest::probes, TextMap{kMaxProbes}).onlyIf(kSaysAll),
    field("reports", &PollRequest::reports, Items{kMaxTasks}).onlyIf(kSaysAll),
    field("hardware", &PollRequest::hardware, Text{kMaxResultBytes}).omitted().onlyIf(kSaysAll),
    field("health", &PollRequest::health, Text{kMaxResultBytes}).omitted().onlyIf(kSaysAll),
    field("fresh", &PollRequest::fresh, Flag{}).omitted().onlyIf(kSaysAll),
    field("health_rules", &PollRequest::health_rules, kName).omitted().onlyIf(kSaysAll),
    field("wants_answer", &PollRequest::wants_answer, Flag{}).omitted().onlyIf(kSaysAll));

template <>
inline constexpr auto kFields<PollResponse> =
    std::tuple(field("start", &PollResponse::start, Items{kMaxTasks}),
               field("forget", &PollResponse::forget, Texts{kMaxTasks, kMaxNameBytes}),
               field("session", &PollResponse::session, kName).optional(),
               field("controllers", &PollResponse::controllers, kName).optional(),
               field("supports_delta", &PollResponse::supports_delta, Flag{}).optional(),
               field("health_rules", &PollResponse::health_rules, Text{kMaxResultBytes}).omitted());

template <>
inline constexpr auto kFields<EnrollRequest> =
    std::tuple(field("enrolment", &EnrollRequest::enrollment, kName).optional(),
               field("csr_pem", &EnrollRequest::csr_pem, Text{kMaxPemBytes}),
               field("mac", &EnrollRequest::mac, kName));

template <>
inline constexpr auto kFields<EnrollResponse> =
    std::tuple(field("certificate_pem", &EnrollResponse::certificate_pem, Text{kMaxPemBytes}),
               field("ca_pem", &EnrollResponse::ca_pem, Text{kMaxPemBytes}),
               field("node", &EnrollResponse::node, kName));

template <>
inline constexpr auto kFields<Gpu> =
    std::tuple(field("model", &Gpu::model, kName), field("uuid", &Gpu::uuid, kName),
               field("serial", &Gpu::serial, kName), field("vbios", &Gpu::vbios, kName),
               field("pci", &Gpu::pci, kName));

template <>
inline constexpr auto kFields<Disk> = std::tuple(
    field("path", &Disk::path, kName), field("serial", &Disk::serial, kName),
    field("wwn", &Disk::wwn, kName), field("model", &Disk::model, kName),
    field("content", &Disk::content, kName), field("size_bytes", &Disk::size_bytes, Whole{}),
    field("use", &Disk::use, KnownWord{&kDiskUses, kMaxNameBytes}).omitted());

template <>
inline constexpr auto kFields<Nic> =
    std::tuple(field("name", &Nic::name, kName), field("mac", &Nic::mac, kName),
               field("driver", &Nic::driver, kName));

template <>
inline constexpr auto kFields<Part> = std::tuple(
    field("kind", &Part::kind, kName), field("place", &Part::place, kName),
    field("model", &Part::model, kName), field("serial", &Part::serial, kName),
    field("firmware", &Part::firmware, kName), field("size_bytes", &Part::size_bytes, Whole{}));

template <>
inline constexpr auto kFields<Neighbour> = std::tuple(
    field("nic", &Neighbour::nic, kName), field("mac", &Neighbour::mac, kName),
    field("switch", &Neighbour::switch_name, kName), field("port", &Neighbour::port, kName));

template <>
inline constexpr auto kFields<Hardware> = std::tuple(
    field("manufacturer", &Hardware::manufacturer, kName),
    field("product", &Hardware::product, kName), field("serial", &Hardware::serial, kName),
    field("uuid", &Hardware::uuid, kName), field("cpus", &Hardware::cpus, Whole{kMaxCpus}),
    field("memory_bytes", &Hardware::memory_bytes, Whole{}),
    field("gpus", &Hardware::gpus, Items{kMaxDevices}),
    field("disks", &Hardware::disks, Items{kMaxDevices}),
    field("nics", &Hardware::nics, Items{kMaxDevices}),
    field("rdma_devices", &Hardware::rdma_devices, Texts{kMaxDevices, kMaxNameBytes}),
    field("parts", &Hardware::parts, Items{kMaxDevices}).optional(),
    field("neighbours", &Hardware::neighbours, Items{kMaxDevices}).optional(),
    field("arch", &Hardware::arch, kName).omitted());

template <>
inline constexpr auto kFields<CheckResult> = std::tuple(
    field("id", &CheckResult::id, kName), field("status", &CheckResult::status, wordIn(kStatuses)),
    field("text", &CheckResult::text, kText),
    field("values", &CheckResult::values, NumberMap{kMaxProbes}),
    field("evidence", &CheckResult::evidence, Text{kMaxResultBytes}).optional(),
    field("seconds", &CheckResult::seconds, Number{}).optional());

template <>
inline constexpr auto kFields<CheckResults> =
    std::tuple(field("results", &CheckResults::results, Items{kMaxChecks}));

// ---- words

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
                                               std::size_t max_items, bool optional,
                                               std::size_t max_bytes) {
  std::map<std::string, std::string> texts;
  for (const auto& [name, value] : reader.object(key, max_items, optional).items()) {
    if (name.size() > kMaxNameBytes || !value.is_string() ||
        value.get_ref<const std::string&>().size() > max_bytes) {
      reader.wrong(key, "must hold texts of at most " + std::to_string(max_bytes) +
                            " bytes, which '" + name.substr(0, kMaxNameBytes) + "' is not");
      return {};
    }
    texts[name] = value.get<std::string>();
  }
  return texts;
}

std::string toJson(const PollRequest& request) { return printMessage(request); }

Result<PollRequest> parsePollRequest(std::string_view text) {
  TRY(request, parseMessage<PollRequest>(text, kMaxMessageBytes, "poll", "poll"));
  if (!kSaysAll(request)) request.wants_answer = false;
  return std::move(request);
}

std::string toJson(const std::vector<AgentTaskReport>& reports) {
  return jsonText(Items{kMaxTasks}.print(reports));
}

Result<std::vector<AgentTaskReport>> parseReports(std::string_view text) {
  TRY(object, parseList(text, "list of tasks"));
  JsonReader reader(object, "tasks");
  std::vector<AgentTaskReport> reports;
  Items{kMaxTasks}.read(reader, "list", false, reports);
  TRY_OK(reader.finish());
  return reports;
}

std::string toJson(const PollResponse& response) { return printMessage(response); }

Result<PollResponse> parsePollResponse(std::string_view text) {
  return parseMessage<PollResponse>(text, kMaxMessageBytes, "answer to a poll", "answer");
}

std::string requestFingerprint(std::string_view csr_pem) {
  return io::sha256Hex(csr_pem).substr(0, kFingerprintDigits);
}

std::string toJson(const EnrollRequest& request) { return printMessage(request); }

Result<EnrollRequest> parseEnrollRequest(std::string_view text) {
  return parseMessage<EnrollRequest>(text, kMaxMessageBytes, "enrollment", "enrollment");
}

std::string toJson(const EnrollResponse& response) { return printMessage(response); }

Result<EnrollResponse> parseEnrollResponse(std::string_view text) {
  return parseMessage<EnrollResponse>(text, kMaxMessageBytes, "answer to the enrollment", "answer");
}

std::string toJson(const Hardware& hardware) { return printMessage(hardware); }

Result<Hardware> parseHardware(std::string_view text) {
  return parseMessage<Hardware>(text, kMaxResultBytes, "hardware", "hardware");
}

std::string toJson(const std::vector<CheckResult>& checks) {
  return printMessage(CheckResults{checks});
}

Result<std::vector<CheckResult>> parseCheckResults(std::string_view text) {
  TRY(checks, parseMessage<CheckResults>(text, kMaxMessageBytes, "check results", "checks"));
  return std::move(checks.results);
}

}  // namespace muster::wire
