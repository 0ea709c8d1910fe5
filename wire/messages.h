// SPDX-License-Identifier: Apache-2.0
// What the agent and the controller say to each other: JSON over HTTPS, the agent dials out.
//
//   POST /agent/v1/enrol        server TLS only; id of the arming + CSR → certificate
//   POST /agent/v1/attest       server TLS only; what a TPM shows of itself → a challenge
//   (threat-model.md) POST /agent/v1/attested     server TLS only; the challenge's answer, a quote
//   and the enrollment → certificate POST /agent/v1/certificate  mutual TLS; CSR for the system
//   being installed → certificate (id and mac empty) POST /agent/v1/renewal      mutual TLS; CSR of
//   the same life → certificate POST /agent/v1/poll         mutual TLS; state and task reports →
//   tasks to start (long poll, at most kPollWait)
//
// A task has an id chosen by the controller (the intent id): the same id is never run twice on one
// node. A task that failed stays failed under its id; to try again, take a new id.
//
// `session` names one life of a controller process. The agent echoes it; when the two differ the
// controller answers at once, and the agent says everything again: hardware, and the results of all
// the tasks that it knows. Within a session a finished task that was already acknowledged is listed
// without its result.
//
// A poll that would repeat the one before may name that one's sequence instead (`unchanged_since`,
// delta_poll.h), when the controller has answered that it supports that; one that refers to a poll
// it does not know is answered with an empty session.
//
// Parsing is strict about what is known (types, presence, sizes) and skips keys that it does not
// know: an installed agent may be older than its controller.
#pragma once

#include "base/result.h"
#include "wire/task_reason.h"

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace muster::wire {

inline constexpr std::chrono::seconds kPollWait{20};
inline constexpr std::chrono::seconds kPollWhileBusy{1};
inline constexpr std::chrono::seconds kAgentTimeout{
    45};  ///< no poll for so long: the agent is gone

inline constexpr std::size_t kMaxMessageBytes = 48u << 20;  ///< holds the results of all tasks
inline constexpr std::size_t kMaxResultBytes = 256u << 10;  ///< also of params
inline constexpr std::size_t kMaxTextBytes = 16u << 10;     ///< progress words, errors
inline constexpr std::size_t kMaxNameBytes = 512;           ///< ids, serials, models
inline constexpr std::size_t kMaxTasks = 128;               ///< that an agent lists
inline constexpr std::size_t kMaxProbes = 256;
inline constexpr std::size_t kMaxDevices = 1024;  ///< of each kind in one node
inline constexpr std::size_t kMaxChecks = 256;
inline constexpr std::size_t kMaxReasons = 16;  ///< of one report

enum class Mode {
  Ram,
  Disk
};  ///< RAM OS, or the system of an image (of a live one too, though no disk holds it)
std::string_view toString(Mode mode);  ///< "ram", "disk"

enum class TaskKind {
  Inspect,        ///< params {} or {lldp_seconds}; result Hardware
  WriteImage,     ///< params ImageTask; result {digest, seconds, bytes_written, bytes_skipped}
  InstallDriver,  ///< params {packages, repository_url, modules, verify}; result {probe: running
                  ///< value}
  RunChecks,      ///< params {checks: [{id, params, deadline_seconds}]}; result {results:
                  ///< [CheckResult]}
  RdmaPair,   ///< params {role: server|client, peer, port, …}; result {results: [CheckResult]}, one
              ///< of them
  JoinPool,   ///< params {kind: slurm, conf, munge_key (base64)}; result {slurmd: version}
  LeavePool,  ///< params {}; stops slurmd
  Reboot,     ///< params {}; result {} before the machine goes down
  Probe,      ///< params {probes: [..]}; result {probe: value}
  ResetGpu,   ///< params {gpus: [PCI address]}; result {reset: [PCI address]}; refused while
              ///< anything uses them
  KernelLog,  ///< params {}; result {lines: [..]}: the end of what the kernel has said in this boot
  EraseDisks,    ///< params EraseParams (wire/erase_disks.h); result EraseReport
                 ///< (agent/imaging/erase.h). RAM OS only
  StartImage,    ///< params as WriteImage; result {digest, seconds, …} before the live image takes
                 ///< over. RAM OS only
  NodeService,   ///< params {service, value, files, settings} (agent/tasks/node_service.h);
                 ///< result {service, value, started}
  Storage,       ///< params {files, packages, mount…, limits} (agent/tasks/storage.cc); result
                 ///< {storage: value, read_mb_s, write_mb_s}
  ListFirmware,  ///< params {ways}; result DeviceFirmware (wire/device_firmware.h): what NICs,
                 ///< NVMe drives and fwupd's devices run
  InstallFirmware  ///< params FirmwareTask (wire/device_firmware.h); result {written: [device],
                   ///< had: [device]}; nothing is activated
};
std::string_view toString(TaskKind kind);  ///< "write-image"
Result<TaskKind> parseTaskKind(std::string_view text);

/// The claim that a task was submitted under: a controller that has lost its claim and wakes up
/// cannot act by an agent either.
struct Fence {
  std::string ledger;      ///< of the store that numbers the claims
  std::int64_t token = 0;  ///< grows with every new claim of the node; 0: the controller held none
                           ///< (a pair's partner)
};

struct AgentTask {
  std::string id;
  TaskKind kind = TaskKind::Inspect;
  std::string params;  ///< JSON object as text
  std::chrono::seconds deadline{600};
  Fence fence = {};
};

enum class TaskPhase { Queued, Running, Done, Failed };
std::string_view toString(TaskPhase phase);
inline bool isFinished(TaskPhase phase) {
  return phase == TaskPhase::Done || phase == TaskPhase::Failed;
}

struct AgentTaskReport {
  std::string id;
  TaskPhase phase = TaskPhase::Queued;
  double fraction = -1;
  std::string text;                      ///< what it does now, or the error: for people only
  ErrorCode code = ErrorCode::Internal;  ///< of a failure
  std::string result;                    ///< JSON, when done
  std::vector<TaskReason> reasons;       ///< of a failure, or of what it does now

  bool has(TaskReason reason) const;
  Error failure() const;  ///< code, text and reasons
};

struct Gpu {
  std::string model, uuid, serial, vbios, pci;
};
/// What a disk holds, as far as somebody decides by it. An agent that is older sends none of these:
/// Unknown then, which is never taken for Empty.
enum class DiskUse {
  Unknown,
  Empty,    ///< blank, or left behind half-written: there is nothing to lose
  System,   ///< a whole system that muster installed
  DataSet,  ///< a member of a storage set that was finished
  Other
};
std::string_view toString(DiskUse use);  ///< "data-set"
struct Disk {
  std::string path, serial, wwn, model;
  std::string content;  ///< what is there, for people
  std::uint64_t size_bytes = 0;
  DiskUse use = DiskUse::Unknown;
};
struct Nic {
  std::string name, mac, driver;
};
/// A thing that can be pulled out: kind is dimm, nvme, nic or gpu; place is a slot or a PCI
/// address.
struct Part {
  std::string kind, place, model, serial, firmware;
  std::uint64_t size_bytes = 0;
};
/// What the other end of a NIC's cable says by LLDP. The switch's name, else its chassis id.
struct Neighbour {
  std::string nic, mac, switch_name, port;
};

struct Hardware {
  std::string manufacturer, product, serial, uuid;
  int cpus = 0;
  std::uint64_t memory_bytes = 0;
  std::vector<Gpu> gpus;
  std::vector<Disk> disks;
  std::vector<Nic> nics;
  std::vector<std::string> rdma_devices;
  std::vector<Part> parts;
  std::vector<Neighbour> neighbours;
  std::string arch;  ///< of its agent (base/architecture.h); empty: an older one's
};

struct PollRequest {
  Mode mode = Mode::Ram;
  std::string boot_id;
  std::string agent_version;
  std::string image_digest;  ///< of the image that runs; in the RAM OS of the live image whose
                             ///< kernel was started, or empty
  std::map<std::string, std::string> probes;  ///< module.X, nvml.driver, package.X as seen now
  std::vector<AgentTaskReport> reports;       ///< of every task that the agent knows
  std::string hardware;  ///< Hardware as JSON; sent with the first poll of a session
  std::string health;    ///< HealthReport (health.h) as JSON; sent with the first poll of a session
                         ///< and when it changes
  std::string session;   ///< of the controller that was heard last; empty at first
  std::uint64_t sequence =
      0;  ///< grows with every poll of a boot; one that comes late is not believed
  bool fresh =
      false;  ///< hardware and probes were looked at after the last task that may change them
  std::uint64_t unchanged_since = 0;  ///< not 0: of what is above only mode, boot_id, session and
                                      ///< sequence is said; the rest is that of this poll
  std::string health_rules;  ///< digest of those that it has (health_rules.h); empty: it asks for
                             ///< none
  bool wants_answer =
      true;  ///< at once, when it tells of a task's end: a reboot waits until its end was heard
};
struct PollResponse {
  std::vector<AgentTask> start;
  /// Tasks whose outcome is of no use any more: an ended one is dropped, one that runs is ended
  /// where it changes nothing of the node (agents of before 0391 let it run).
  std::vector<std::string> forget;
  std::string session;
  bool supports_delta = false;  ///< the controller understands `unchanged_since`
  std::string controllers;   ///< URLs of all controllers (controllers.h); empty: the agent goes on
                             ///< with those that it knows
  std::string health_rules;  ///< when the agent has others than the controller; else empty
};

struct EnrollRequest {
  std::string enrollment, csr_pem, mac;
};  ///< `enrollment`: id of the arming; empty in a renewal
/// What a person compares: of the request as it is sent, so of its key. 32 hex digits.
std::string requestFingerprint(std::string_view csr_pem);
struct EnrollResponse {
  std::string certificate_pem, ca_pem, node;
};

/// Parse and print; Corrupt or InvalidInput when the text is not such a message.
std::string toJson(const PollRequest&);
Result<PollRequest> parsePollRequest(std::string_view);
std::string toJson(const PollResponse&);
Result<PollResponse> parsePollResponse(std::string_view);
std::string toJson(const EnrollRequest&);
Result<EnrollRequest> parseEnrollRequest(std::string_view);
std::string toJson(const EnrollResponse&);
Result<EnrollResponse> parseEnrollResponse(std::string_view);
std::string toJson(const std::vector<AgentTaskReport>&);
Result<std::vector<AgentTaskReport>> parseReports(std::string_view);
std::string toJson(const Hardware&);
Result<Hardware> parseHardware(std::string_view);

/// One check's answer. Fail closed: anything but Pass is a failure, with its own word.
enum class CheckStatus { Pass, Fail, Skipped, Error, Timeout, NoData };
std::string_view toString(CheckStatus status);
struct CheckResult {
  std::string id;  ///< "gpu.count"
  CheckStatus status = CheckStatus::NoData;
  std::string text;                      ///< what was seen against what was expected
  std::map<std::string, double> values;  ///< key ends in its unit: "gemm_gflops"
  std::string evidence;                  ///< JSON
  double seconds = 0;
};
/// {"results": [...]}. A value that is no finite number travels as null and is NaN again on the
/// other side.
std::string toJson(const std::vector<CheckResult>&);
Result<std::vector<CheckResult>> parseCheckResults(std::string_view);

}  // namespace muster::wire
