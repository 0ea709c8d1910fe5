// SPDX-License-Identifier: Apache-2.0
// The names of what the inventory declares, for headers that only refer to it.
#pragma once

namespace muster::wire {

enum class FileSystem;
enum class RaidLevel;
enum class RootKey;
struct RootLayout;
struct StorageSet;
struct StorageVolume;

}  // namespace muster::wire

namespace muster::inventory {

// The disk layout is the same type as in the agent's task (wire/disk_layout.h).
using wire::FileSystem;
using wire::RaidLevel;
using wire::RootKey;
using wire::RootLayout;
using wire::StorageSet;
using wire::StorageVolume;

enum class AttachedRole;
enum class BmcTrustPolicy;
enum class BootMode;
enum class BootSource;
enum class ConsoleVia;
enum class DhcpMode;
enum class Disturbance;
enum class FabricShape;
enum class FirmwareActivation;
enum class FragilePods;
enum class GateLevel;
enum class HealthAction;
enum class ImageKind;
enum class JobPods;
enum class ModuleBuild;
enum class MountKind;
enum class OnConfigChange;
enum class OnFailure;
enum class OnInconclusive;
enum class OnTimeout;
enum class PartKind;
enum class Repair;
enum class Rung;
enum class UserDataKind;
enum class Weekday;

struct AcceptedIdentity;
struct AddressPlan;
struct AddressPool;
struct ApprovalRule;
struct BmcAddress;
struct BmcCertificateSpec;
struct BmcTrust;
struct BootServer;
struct Breaker;
struct Canary;
struct Ceiling;
struct CertificatePolicy;
struct Change;
struct Cluster;
struct ConsoleSpec;
struct Credential;
struct DeclaredBond;
struct DeclaredEthernet;
struct DeclaredLink;
struct DeclaredRoute;
struct DeclaredVlan;
struct DiscoveryPolicy;
struct DiscoveryRule;
struct DrainPolicy;
struct Driver;
struct EvictionRules;
struct Expectation;
struct Fabric;
struct FabricCable;
struct FabricExclusion;
struct FabricSwitches;
struct FirmwareBaseline;
struct FirmwareComponent;
struct FirmwareConstraint;
struct FirmwareImageFile;
struct FirmwareTerm;
struct Gate;
struct HardwareRaid;
struct HardwareVolume;
struct Image;
struct ImageBuild;
struct ImageImport;
struct InBandDevice;
struct IpmiSpec;
struct KubernetesPool;
struct LabSpec;
struct Limits;
struct LoadedChange;
struct MaintenanceWindow;
struct MonitorPolicy;
struct NotificationReceiver;
struct MountedSystem;
struct Network;
struct Node;
struct NodeFile;
struct NodeLinks;
struct NodeNetworkSpec;
struct NvlinkDomain;
struct PackageArchive;
struct PartRule;
struct Partition;
struct Pool;
struct PowerHook;
struct Profile;
struct ProfileChange;
struct Rack;
struct Rail;
struct RamOsSpec;
struct RegressionRule;
struct Roce;
struct RolloutPolicy;
struct SecretRef;
struct SlurmPool;
struct Subnet;
struct SymptomRule;
struct TpmSpec;
struct Unavailability;

}  // namespace muster::inventory
