// SPDX-License-Identifier: Apache-2.0
#include "wire/task_params.h"

#include "wire/fields.h"
#include "wire/host_settings.h"
#include "wire/messages.h"

namespace muster::wire {
namespace {

constexpr std::size_t kMaxFiles = 64, kMaxPackages = 256, kMaxOptions = 64, kMaxGpus = 64,
                      kMaxSettings = 64;
constexpr std::size_t kMaxUnitBytes = 8u << 10, kMaxUrlBytes = 2048, kMaxPemBytes = 64u << 10,
                      kMaxKeyBytes = 64u << 10, kMaxConfBytes = 1u << 20, kMaxMungeTextBytes = 2048;
constexpr std::uint64_t kMaxSeconds = 24 * 3600, kMaxLldpSeconds = 60, kMaxPort = 65535,
                        kMaxCount = std::numeric_limits<int>::max();

constexpr Text kName{kMaxNameBytes};

constexpr Words<PairRole, 2> kRoles{{{PairRole::Server, "server"}, {PairRole::Client, "client"}}};
constexpr Words<PairEngine, 2> kEngines{
    {{PairEngine::Perftest, "perftest"}, {PairEngine::Tcp, "tcp"}}};

constexpr auto kIsClient = [](const RdmaPairParams& p) { return p.role == PairRole::Client; };
constexpr auto kIsTcp = [](const RdmaPairParams& p) { return p.engine == PairEngine::Tcp; };
constexpr auto kIsPerftest = [](const RdmaPairParams& p) {
  return p.engine == PairEngine::Perftest;
};

/// A JSON object as it is.
struct Json {
  std::size_t max_items;

  nlohmann::json print(const nlohmann::json& value) const { return value; }
  void read(JsonReader& reader, const char* key, bool optional, nlohmann::json& value) const {
    value = reader.object(key, max_items, optional);
  }
};

}  // namespace

template <>
inline constexpr auto kFields<ProbeParams> =
    std::tuple(field("probes", &ProbeParams::probes, Texts{kMaxProbes, kMaxNameBytes}));

template <>
inline constexpr auto kFields<InspectParams> =
    std::tuple(field("lldp_seconds", &InspectParams::lldp, Seconds{kMaxLldpSeconds}).omitted());

template <>
inline constexpr auto kFields<ResetGpuParams> =
    std::tuple(field("gpus", &ResetGpuParams::gpus, Texts{kMaxGpus, kMaxNameBytes})
                   .checked([](const auto& gpus) -> std::string_view {
                     return gpus.empty() ? "names none" : "";
                   }));

template <>
inline constexpr auto kFields<ListFirmwareParams> =
    std::tuple(field("ways", &ListFirmwareParams::ways, Texts{kMaxProbes, kMaxNameBytes}));

template <>
inline constexpr auto kFields<JoinPoolParams> =
    std::tuple(field("kind", &JoinPoolParams::kind, kName),
               field("conf", &JoinPoolParams::conf, Text{kMaxConfBytes}),
               field("munge_key", &JoinPoolParams::munge_key, Bytes{kMaxMungeTextBytes}));

template <>
inline constexpr auto kFields<CheckOrder> =
    std::tuple(field("id", &CheckOrder::id, kName),
               field("params", &CheckOrder::params, Json{kMaxProbes}).optional(),
               field("deadline_seconds", &CheckOrder::deadline, Seconds{kMaxSeconds}).optional());
template <>
inline constexpr auto kFields<RunChecksParams> =
    std::tuple(field("checks", &RunChecksParams::checks, Items{kMaxChecks}));

template <>
inline constexpr auto kFields<RdmaPairParams> = std::tuple(
    field("role", &RdmaPairParams::role, Word{&kRoles, kMaxNameBytes}),
    field("engine", &RdmaPairParams::engine, Word{&kEngines, kMaxNameBytes}).omitted(),
    field("peer", &RdmaPairParams::peer, kName).onlyIf(kIsClient),
    field("device", &RdmaPairParams::device, kName).onlyIf(kIsPerftest),
    field("port", &RdmaPairParams::port, Whole{kMaxPort}).optional(),
    field("iterations", &RdmaPairParams::iterations, Whole{kMaxCount})
        .optional()
        .onlyIf(kIsPerftest),
    field("message_bytes", &RdmaPairParams::message_bytes, Whole{kMaxCount})
        .omitted()
        .onlyIf(kIsPerftest),
    field("streams", &RdmaPairParams::streams, Whole{kMaxCount}).omitted().onlyIf(kIsTcp),
    field("mebibytes", &RdmaPairParams::mebibytes, Whole{kMaxCount}).omitted().onlyIf(kIsTcp),
    field("seed", &RdmaPairParams::seed, Whole{}).omitted().onlyIf(kIsTcp),
    field("min_gbits", &RdmaPairParams::min_gbits, Number{}),
    field("latency_iterations", &RdmaPairParams::latency_iterations, Whole{kMaxCount})
        .omitted()
        .onlyIf(kIsPerftest),
    field("max_us", &RdmaPairParams::max_us, Number{}).omitted().onlyIf(kIsPerftest),
    field("gpu", &RdmaPairParams::gpu, Whole{kMaxCount}).omitted(),
    field("limit_seconds", &RdmaPairParams::limit, Seconds{kMaxSeconds}).optional());

template <>
inline constexpr auto kFields<NodeServiceParams> = std::tuple(
    field("service", &NodeServiceParams::service, kName),
    field("value", &NodeServiceParams::value, kName).checked(kNotEmpty),
    field("files", &NodeServiceParams::files, TextMap{kMaxFiles, kMaxServiceFileBytes}).optional(),
    field("settings", &NodeServiceParams::settings, TextMap{kMaxSettings}).optional());

template <>
inline constexpr auto kFields<ArchiveFiles> =
    std::tuple(field("name", &ArchiveFiles::name, kName),
               field("apt", &ArchiveFiles::apt_source, Text{kMaxTextBytes}),
               field("dnf", &ArchiveFiles::dnf_source, Text{kMaxTextBytes}),
               field("key", &ArchiveFiles::key_base64, Text{kMaxKeyBytes}));
template <>
inline constexpr auto kFields<DriverParams> = std::tuple(
    field("name", &DriverParams::name, kName).optional(),
    field("packages", &DriverParams::packages, Texts{kMaxPackages, kMaxNameBytes}),
    field("modules", &DriverParams::modules, Texts{kMaxFiles, kMaxNameBytes}).optional(),
    field("verify", &DriverParams::verify, TextMap{kMaxProbes}).optional(),
    field("repository_url", &DriverParams::repository_url, Text{kMaxUrlBytes}).omitted(),
    field("repository_ca_pem", &DriverParams::repository_ca_pem, Text{kMaxPemBytes}).omitted(),
    field("netdev", &DriverParams::netdev, kName).omitted(),
    field("files", &DriverParams::files, TextMap{kMaxFiles, kMaxHostSettingsBytes}).omitted(),
    field("services", &DriverParams::services, Texts{kMaxFiles, kMaxNameBytes}).omitted(),
    field("kernel", &DriverParams::kernel, kName).omitted(),
    field("build", &DriverParams::build, kName).omitted(),
    field("archives", &DriverParams::archives, Items{kMaxFiles})
        .omittedIf([](const DriverParams& params) { return params.archives.empty(); }));

template <>
inline constexpr auto kFields<MountParams> =
    std::tuple(field("name", &MountParams::name, kName),
               field("value", &MountParams::value, kName).omitted().checked(kNotEmpty),
               field("unit", &MountParams::unit, Text{kMaxUnitBytes}),
               field("unit_name", &MountParams::unit_name, kName),
               field("packages", &MountParams::packages, Texts{kMaxOptions, kMaxNameBytes}),
               field("source", &MountParams::source, kName), field("at", &MountParams::at, kName),
               field("types", &MountParams::types, kName),
               field("options", &MountParams::options, Texts{kMaxOptions, kMaxNameBytes}),
               field("read_mb_s", &MountParams::read_mb_s, Whole{kMaxCount}).optional(),
               field("write_mb_s", &MountParams::write_mb_s, Whole{kMaxCount}).optional());
template <>
inline constexpr auto kFields<MountRemoval> = std::tuple(
    field("name", &MountRemoval::name, kName), field("remove", &MountRemoval::remove, Flag{}));

namespace {

template <class T>
Result<T> parseParams(std::string_view text) {
  return parseMessage<T>(text, kMaxMessageBytes, "the parameters of a task", "params");
}

}  // namespace

std::string toJson(const ProbeParams& params) { return printMessage(params); }
Result<ProbeParams> parseProbeParams(std::string_view text) {
  return parseParams<ProbeParams>(text);
}
std::string toJson(const InspectParams& params) { return printMessage(params); }
Result<InspectParams> parseInspectParams(std::string_view text) {
  return parseParams<InspectParams>(text);
}
std::string toJson(const ResetGpuParams& params) { return printMessage(params); }
Result<ResetGpuParams> parseResetGpuParams(std::string_view text) {
  return parseParams<ResetGpuParams>(text);
}
std::string toJson(const ListFirmwareParams& params) { return printMessage(params); }
Result<ListFirmwareParams> parseListFirmwareParams(std::string_view text) {
  return parseParams<ListFirmwareParams>(text);
}
std::string toJson(const JoinPoolParams& params) { return printMessage(params); }
Result<JoinPoolParams> parseJoinPoolParams(std::string_view text) {
  return parseParams<JoinPoolParams>(text);
}
std::string toJson(const RunChecksParams& params) { return printMessage(params); }
Result<RunChecksParams> parseRunChecksParams(std::string_view text) {
  return parseParams<RunChecksParams>(text);
}
std::string toJson(const RdmaPairParams& params) { return printMessage(params); }
Result<RdmaPairParams> parseRdmaPairParams(std::string_view text) {
  return parseParams<RdmaPairParams>(text);
}
std::string toJson(const NodeServiceParams& params) { return printMessage(params); }
Result<NodeServiceParams> parseNodeServiceParams(std::string_view text) {
  return parseParams<NodeServiceParams>(text);
}
std::string toJson(const DriverParams& params) { return printMessage(params); }
Result<DriverParams> parseDriverParams(std::string_view text) {
  return parseParams<DriverParams>(text);
}
std::string toJson(const MountParams& params) { return printMessage(params); }
Result<MountParams> parseMountParams(std::string_view text) {
  return parseParams<MountParams>(text);
}
std::string toJson(const MountRemoval& params) { return printMessage(params); }
Result<MountRemoval> parseMountRemoval(std::string_view text) {
  return parseParams<MountRemoval>(text);
}

}  // namespace muster::wire
