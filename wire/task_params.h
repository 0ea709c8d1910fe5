// SPDX-License-Identifier: Apache-2.0
// Parameters of the agent's tasks, once for the controller that prints them and the agent that
// reads them. Those with an own file: write_image.h, erase_disks.h, device_firmware.h. What only
// the node can decide on (whether a path may be written, a device is there) the agent's task
// checks.
//
// toJson: a JSON object as text. parse…: errors are Corrupt (no JSON object) and InvalidInput,
// which names the member ("params.probes is missing").
#pragma once

#include "base/result.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster::wire {

inline constexpr std::size_t kMaxServiceFileBytes = 1u << 20;  ///< a file of a node's service

/// Of the task probe: which versions and states to tell.
struct ProbeParams {
  std::vector<std::string> probes;
};
std::string toJson(const ProbeParams& params);
Result<ProbeParams> parseProbeParams(std::string_view text);

/// Of the task inspect.
struct InspectParams {
  std::chrono::seconds lldp{0};  ///< how long to listen for neighbours; 0: not at all
};
std::string toJson(const InspectParams& params);
Result<InspectParams> parseInspectParams(std::string_view text);

/// Of the task reset-gpu.
struct ResetGpuParams {
  std::vector<std::string> gpus;  ///< UUIDs or PCI addresses
};
std::string toJson(const ResetGpuParams& params);
Result<ResetGpuParams> parseResetGpuParams(std::string_view text);

/// Of the task list-firmware.
struct ListFirmwareParams {
  std::vector<std::string> ways;  ///< kMstflint, kNvme, kFwupd (device_firmware.h)
};
std::string toJson(const ListFirmwareParams& params);
Result<ListFirmwareParams> parseListFirmwareParams(std::string_view text);

/// Of the task join-pool.
struct JoinPoolParams {
  std::string kind;       ///< "slurm"
  std::string conf;       ///< the node's slurm.conf
  std::string munge_key;  ///< bytes; a secret
};
std::string toJson(const JoinPoolParams& params);
Result<JoinPoolParams> parseJoinPoolParams(std::string_view text);

/// One check of the task run-checks.
struct CheckOrder {
  std::string id;  ///< of validate/checks/catalogue.cc
  nlohmann::json params = nlohmann::json::object();
  std::chrono::seconds deadline{0};  ///< 0: the check's own
};
/// Of the task run-checks.
struct RunChecksParams {
  std::vector<CheckOrder> checks;
};
std::string toJson(const RunChecksParams& params);
Result<RunChecksParams> parseRunChecksParams(std::string_view text);

enum class PairRole { Server, Client };
enum class PairEngine { Perftest, Tcp };
/// Of the task rdma-pair: one side of a bandwidth test between two nodes.
struct RdmaPairParams {
  PairRole role = PairRole::Server;
  PairEngine engine = PairEngine::Perftest;
  std::string peer;    ///< the server's address; of a client
  std::string device;  ///< of Perftest: the HCA, e.g. "mlx5_0"
  int port = 18515;
  int iterations = 200, message_bytes = 65536;  ///< of Perftest
  int streams = 4, mebibytes = 256;             ///< of Tcp
  std::uint64_t seed = 1;                       ///< of Tcp, the same on both sides
  double min_gbits = 0;                         ///< Gb/s, below which the client fails
  int latency_iterations = 0;  ///< of Perftest, after the bandwidth; 0: latency is not measured
  double max_us = 0;           ///< above which the client fails; 0: measured, not evaluated
  int gpu = -1;                ///< whose memory is used; -1: the host's
  std::chrono::seconds limit{60};
};
std::string toJson(const RdmaPairParams& params);
Result<RdmaPairParams> parseRdmaPairParams(std::string_view text);

/// Of the task node-service.
struct NodeServiceParams {
  std::string service;                          ///< of the agent's table (node_service.cc)
  std::string value;                            ///< digest of what follows
  std::map<std::string, std::string> files;     ///< content by name, ≤ kMaxServiceFileBytes each
  std::map<std::string, std::string> settings;  ///< KEY=VALUE lines of the service's own file
};
std::string toJson(const NodeServiceParams& params);
Result<NodeServiceParams> parseNodeServiceParams(std::string_view text);

/// A package archive with its key. Both package managers' texts travel; the node takes the one
/// that it understands.
struct ArchiveFiles {
  std::string name, apt_source, dnf_source, key_base64;
};
/// Of the task install-driver.
struct DriverParams {
  std::string name;                           ///< of files that are written for it
  std::vector<std::string> packages;          ///< "name" or "name=version"
  std::vector<std::string> modules;           ///< loaded now and at each boot
  std::map<std::string, std::string> verify;  ///< glob by probe
  std::string repository_url, repository_ca_pem;
  std::string netdev;                        ///< under soft-RoCE; empty: the agent chooses
  std::map<std::string, std::string> files;  ///< OS settings, content by path below the root
  std::vector<std::string> services;
  std::string kernel;  ///< glob; its packages are held
  std::string build;   ///< "dkms" or empty
  std::vector<ArchiveFiles> archives;
};
std::string toJson(const DriverParams& params);
Result<DriverParams> parseDriverParams(std::string_view text);

/// Of the task storage: a file system that the node mounts.
struct MountParams {
  std::string name;
  std::string value;            ///< digest of the rest; empty while it is computed
  std::string unit, unit_name;  ///< text and name of the systemd unit
  std::vector<std::string> packages;
  std::string source, at, types;  ///< what, where, types that the kernel may show for it (globs)
  std::vector<std::string> options;
  int read_mb_s = 0, write_mb_s = 0;  ///< MB/s, floors; 0: not measured
};
std::string toJson(const MountParams& params);
/// Also InvalidInput: no value.
Result<MountParams> parseMountParams(std::string_view text);

/// Of the task storage, where a mount is to go.
struct MountRemoval {
  std::string name;
  bool remove = true;
};
std::string toJson(const MountRemoval& params);
Result<MountRemoval> parseMountRemoval(std::string_view text);

}  // namespace muster::wire
