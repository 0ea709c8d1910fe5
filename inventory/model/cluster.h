// SPDX-License-Identifier: Apache-2.0
// Cluster: the declared truth, immutable once loaded. Everything downstream reads it, nothing
// writes it.
#pragma once

#include "base/diagnostic.h"
#include "base/ids.h"
#include "base/log.h"
#include "inventory/model/access.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/discovery.h"
#include "inventory/model/fabric.h"
#include "inventory/model/firmware.h"
#include "inventory/model/hardware.h"
#include "inventory/model/limits.h"
#include "inventory/model/monitor.h"
#include "inventory/model/mounts.h"
#include "inventory/model/networks.h"
#include "inventory/model/racks.h"
#include "inventory/model/storage.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace muster::inventory {

/// Where a secret comes from; never the secret itself. Read only at the moment of use.
struct SecretRef {
  std::variant<std::monostate, std::filesystem::path, std::string>
      source;       ///< file, or command line
  std::string env;  ///< or an environment variable
  /// Errors: NotFound with what to do
  /// A file loses its last line end; a command runs under sh and gives its first line.
  Result<Secret> read() const;
  bool declared() const { return !env.empty() || !std::holds_alternative<std::monostate>(source); }
};

struct Credential {
  std::string name;
  std::string username;
  SecretRef password;
  SecretRef rotate_to;  ///< what `muster bmc rotate` changes the password to; not declared: nothing
                        ///< is under way
};

/// An archive of packages with the key that signs it.
struct PackageArchive {
  std::string name;
  std::string url;
  std::string suite;                    ///< apt; empty: a flat archive. dnf has none
  std::vector<std::string> components;  ///< apt
  std::filesystem::path key;            ///< OpenPGP public key, armoured or not
  friend bool operator==(const PackageArchive&, const PackageArchive&) = default;
};

/// A system made of packages: apt's of a suite, or dnf's of a release. One of the two is set.
struct ImageBuild {
  std::string suite;  ///< "bookworm"
  std::vector<std::string> packages;
  std::string mirror;        ///< of Debian; empty: the mirror of the machine that builds
  std::string release = {};  ///< "9"
  std::vector<PackageArchive> archives =
      {};  ///< what the system is made from; dnf has at least one
};
struct ImageImport {
  std::filesystem::path path;
  std::string sha256;
};
/// A root file system that muster partitions for and makes bootable; a whole disk with its own
/// partitions and boot loader; or a system that runs in memory and is on no disk.
enum class ImageKind { RootFs, Disk, Live };
struct Image {
  std::string name;
  std::variant<ImageBuild, ImageImport> source;
  std::vector<std::string> authorized_keys;  ///< ssh keys for root
  ImageKind kind = ImageKind::RootFs;
};

/// How a driver's kernel modules come to the kernel that runs.
enum class ModuleBuild { Packaged, Dkms, Precompiled };

struct Driver {
  std::string name;
  std::vector<std::string> packages;  ///< apt names, "name=version" pins
  std::filesystem::path repository;   ///< a folder with a flat apt repository (Packages file),
                                      ///< served to the nodes; empty: the image's own sources
  std::vector<std::string> modules;   ///< kernel modules that must be loaded afterwards
  std::map<std::string, std::string>
      verify;  ///< probe → glob of the running version: nvml.driver, module.rdma_rxe, package.NAME
  std::string preset;  ///< row of presets.cc that the keys below were filled from
  std::vector<PackageArchive> archives;
  ModuleBuild build = ModuleBuild::Packaged;
  std::string kernel;  ///< glob of the kernel release that must run; its packages are held
  std::map<std::string, std::map<std::string, std::string>>
      module_options;  ///< module → parameter → value
  std::map<std::string, std::string> sysctl;
  std::vector<std::string> kernel_args;
  std::vector<std::string> services;  ///< systemd units that must be enabled and active
  std::map<std::string, std::string>
      fabric_manager;  ///< keys of fabricmanager.cfg and their values; all others stay as packaged
};

enum class GateLevel { Quick, Medium, Long, Soak };
struct Gate {
  std::string name;
  GateLevel level = GateLevel::Quick;
  std::vector<std::string> groups;  ///< check groups: "host", "gpu", "rdma", "system", "disk"
  bool isolate = false;
  std::map<std::string, std::map<std::string, std::string>> checks =
      {};  ///< check → parameter → value, instead of the level's; the catalogue knows which there
           ///< are
  SourceRef where = {};
};

struct SlurmPool {
  std::string partition;
  std::filesystem::path config;  ///< slurm.conf that the controller side uses; empty: the lab's, or
                                 ///< /etc/slurm/slurm.conf
};

/// What a drain does with pods that end by themselves: those with restartPolicy Never or OnFailure.
enum class JobPods { Wait, Evict };
/// What a drain does with pods that lose something when they are evicted.
enum class FragilePods { Hold, Evict };
struct EvictionRules {
  JobPods jobs = JobPods::Wait;
  FragilePods empty_dir =
      FragilePods::Hold;  ///< pods with an emptyDir volume, whose content would be gone
  FragilePods unmanaged = FragilePods::Hold;  ///< pods that no controller would start again
};
struct KubernetesPool {
  std::string server;  ///< "https://10.20.0.2:6443", perhaps with a path
  std::filesystem::path
      ca;  ///< who signed the server's certificate, PEM; empty: pin says which certificate it is
  std::string pin;  ///< SHA-256 of the server's certificate, hex
  SecretRef token;
  std::filesystem::path client_certificate, client_key;  ///< instead of a token
  std::string domain;  ///< nodes are called NAME.domain there; empty: NAME
  std::string taint =
      "muster/out:NoSchedule";  ///< KEY[=VALUE]:NoSchedule, on nodes that muster keeps out
  std::map<std::string, std::string> labels;  ///< put on nodes when they join
  EvictionRules evict;
};

/// What happens when a drain is not finished by its deadline: the node stays drained, it takes work
/// again, or the pods that are left are deleted.
enum class OnTimeout { Wait, Undrain, DeletePods };
struct DrainPolicy {
  std::optional<int>
      deadline_minutes;  ///< from the order to drain; absent: only the action's own deadline counts
  OnTimeout on_timeout = OnTimeout::Wait;
};

/// Exactly one of the schedulers is there.
struct Pool {
  std::string name;
  std::optional<SlurmPool> slurm;
  std::optional<KubernetesPool> kubernetes;
  DrainPolicy drain;
};

struct Expectation {
  std::optional<int> gpus;
  std::string gpu_model;  ///< substring of the NVML name
  std::optional<int> nics;
  std::optional<int> memory_gib_min;
  std::optional<int> cpus_min;
  std::vector<PartRule> parts;
};

enum class BootMode { Bios, Uefi };

struct Profile {
  std::string name;
  Expectation expect;
  std::string image;
  std::vector<std::string> drivers;
  std::string firmware;  ///< baseline name; empty: none
  std::map<std::string, std::string>
      bios;  ///< attribute → value, as the BMC spells both; others are left alone
  std::vector<std::string> gates;
  std::string pool;
  std::string fabric;       ///< empty: not on a fabric
  std::vector<Rail> rails;  ///< its HCAs on the fabric; empty: mlx5_0, mlx5_1, …
  std::string bmc_credential = "bmc";
  BmcTrust bmc_trust = {};  ///< of BMCs whose nodes say nothing of their own
  BootMode boot = BootMode::Uefi;
  bool secure_boot =
      false;  ///< firmware checks signatures: shim, signed GRUB and a signed kernel instead of iPXE
  std::vector<std::string> kernel_args;
  std::string disk;  ///< "serial:…", "wwn:…", "smallest" or "size:…"; empty: the only disk, refused
                     ///< when there are several
  std::optional<RootLayout> root;      ///< nullopt: a partition of one disk
  std::vector<StorageSet> storage;     ///< its other disks
  std::string user_data;               ///< content for cloud-init (NoCloud); empty: none
  std::vector<std::string> mounts;     ///< file systems, by name
  std::optional<ConsoleSpec> console;  ///< nullopt: of a libvirt domain its own, else none
  std::optional<IpmiSpec> ipmi;        ///< nullopt: Redfish alone
  std::optional<PowerHook> pdu;        ///< nullopt: only the BMC cuts standby power, where it can
  std::optional<BmcCertificateSpec> bmc_certificate;
  std::optional<TpmSpec> tpm;      ///< nullopt: no machine is asked for its TPM
  std::optional<int> power_watts;  ///< that a node draws under full load
};

struct BmcAddress {
  std::string url;  ///< "https://10.20.250.1"; "libvirt:DOMAIN" for direct use
  std::string username_override;
  std::string credential = {};  ///< empty: the profile's
  BmcTrust trust = {};          ///< as far as the node says it; bmcTrustOf() says what holds
};

struct Node {
  NodeName name;
  std::string profile;
  std::string rack;
  int unit = 0;
  Mac mac;       ///< provisioning NIC
  Ipv4 address;  ///< on the provisioning network
  BmcAddress bmc;
  std::string serial;                    ///< expected; empty: learnt
  std::string switch_name, switch_port;  ///< where the provisioning NIC is cabled, as LLDP names
                                         ///< both; empty: not declared
  SourceRef where;
};

/// What the virtual twin of this cluster looks like.
struct LabSpec {
  int memory_mib = 1536;
  int vcpus = 1;
  int disk_gib = 4;
  int gpus = 0;  ///< simulated GPUs a node
  std::string gpu_model = "NVIDIA H100 80GB HBM3";
  std::string bmc = "muster";  ///< whose BMC the virtual ones play: lab/vbmc/vendor_profile.cc
};

struct CertificatePolicy {
  std::chrono::hours lifetime{24 * 30};
  std::vector<std::string>
      may_override;  ///< users who may let a node join by their word; none: nobody may
};

struct Cluster {
  std::string name;
  std::vector<Network> networks;
  std::map<std::string, Credential> credentials;
  std::map<std::string, Image> images;
  std::map<std::string, Driver> drivers;
  std::map<std::string, FirmwareBaseline> firmware;
  std::map<std::string, Fabric> fabrics;
  std::map<std::string, Gate> gates;
  std::map<std::string, Pool> pools;
  std::map<std::string, Profile> profiles;
  std::map<std::string, MountedSystem> file_systems;
  DiscoveryPolicy discovery;
  BmcTrustPolicy bmc_trust = BmcTrustPolicy::FirstContact;
  std::vector<NodeFile> node_files;
  std::vector<Node> nodes;  ///< ordered by name, naturally (gpu2 before gpu10)
  LabSpec lab;
  CertificatePolicy certificates;
  MonitorPolicy monitor;
  Limits limits;
  std::map<std::string, Rack> racks;
  std::filesystem::path
      folder;  ///< where relative paths of the file start; paths in here are absolute already
  std::string digest;  ///< SHA-256 over the canonical content, hex; independent of comments and
                       ///< order of keys

  const Node* findNode(const NodeName& name) const;
  const Profile& profileOf(
      const Node& node) const;  ///< references are checked at load, so this cannot fail
  bool isLive(
      const Profile& profile) const;  ///< its image runs in memory: no disk of the node is written
  const Network& provisioning() const;  ///< the network named "provisioning"
};

}  // namespace muster::inventory
