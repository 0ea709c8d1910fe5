// SPDX-License-Identifier: Apache-2.0
// Bmc: one machine's management controller as phases see it. Redfish and libvirt are behind it; the
// arbiter in front.
#pragma once

#include "base/async/task.h"
#include "base/ids.h"
#include "base/io/http.h"
#include "inventory/model/cluster.h"
#include "lifecycle/store/store.h"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::bmc {

enum class PowerState { Unknown, Off, On };
enum class PowerAction { On, ForceOff, GracefulShutdown, ForceRestart };
enum class BootTarget { None, Pxe, Disk, UefiHttp };

/// What the machine boots from instead of its own order.
struct BootOverride {
  BootTarget target = BootTarget::None;
  bool persistent = false;    ///< else the next boot uses it up
  std::string http_uri = {};  ///< UefiHttp: what is loaded; "": what DHCP says
};

struct SystemInfo {
  PowerState power = PowerState::Unknown;
  std::string manufacturer, model, serial, uuid;
  std::vector<std::string> macs;
  BootTarget boot_override = BootTarget::None;
};

struct FirmwareItem {
  std::string name;  ///< the inventory member's Id
  std::string version;
  bool updateable = false;
  std::string unreadable =
      {};  ///< why it is listed but could not be read now; then only the name is set
  bool being_written = false;  ///< the BMC itself says that an image of it is being written now
};

struct FirmwareUpdate {
  std::string component;  ///< FirmwareInventory Id
  std::filesystem::path file;
  std::string sha256;    ///< checked on the bytes that are sent, at the moment they are sent
  std::string url = {};  ///< where a BMC that fetches for itself finds the file; empty: nowhere
  std::function<Result<void>(std::string_view)> inspect =
      {};  ///< so are they by this; empty: the digest is enough
};

enum class TaskState { Running, Completed, Failed };
struct TaskStatus {
  TaskState state = TaskState::Running;
  double fraction = 0;
  std::string message;
  std::string moved_to = {};  ///< the work goes on under this URI (iDRAC: a Job; a second phase):
                              ///< ask for that from now on
};

/// URIs of tasks. After a crash an upload left a trace here if it arrived at all, unless the BMC
/// forgets finished tasks.
struct TaskList {
  std::vector<std::string> running;
  std::vector<std::string> finished;
  bool keeps_finished = true;  ///< false: a finished task may be missing (iDRAC)
};

/// What a BMC tells of a machine that nobody has declared.
struct Survey {
  SystemInfo system;
  std::string bmc_version;
  std::vector<std::string> bmc_macs;
  struct Gpu {
    std::string model, serial;
  };
  std::vector<Gpu> gpus;
};

/// A second slot that the machine fills by itself after an update; its power must stay until that
/// has ended.
struct BackgroundCopy {
  std::string name;    ///< "HGX_ERoT_FPGA_0"
  std::string status;  ///< as the BMC words it
  bool running = false;
};

/// A temperature, a fan, a power reading; leaks too.
struct SensorReading {
  std::string name, kind,
      unit;  ///< kind as Redfish names it: "Temperature", "Power", "Rotational", "LeakDetector", …
  double value = 0;
  std::string health;  ///< "OK", "Warning", "Critical"; "" when the BMC does not say
  std::optional<double> upper_critical;
};

/// One entry of the system event log, as the BMC words it.
struct LogEntry {
  std::string id, created, severity, message;
};

inline constexpr int kSshPort = 22;

/// Where a machine's serial console is, as Redfish tells it (ComputerSystem.SerialConsole; older
/// services: Manager.SerialConsole).
struct SerialConsoleEndpoint {
  bool ssh = false, ipmi = false;  ///< the ways that are switched on
  std::optional<int> ssh_port;     ///< absent: the BMC does not say
  std::optional<std::string>
      ssh_command;  ///< what is typed to get to it, "" for nothing; absent: the BMC does not say
};

/// What stands in a certificate of a BMC.
struct CertificateSubject {
  std::string common_name;
  std::vector<std::string> names;  ///< DNS names and addresses that it is reached by
};

/// How far a change of the account's password is.
enum class Rotation { None, Interrupted, Done };

class Bmc {
 public:
  virtual ~Bmc() = default;
  virtual std::string address() const = 0;
  virtual Async<SystemInfo> system() = 0;
  /// Verified by state, not by the answer's code: returns when the state is reached or with
  /// Timeout.
  virtual Async<void> power(PowerAction action) = 0;
  virtual Async<void> bootOnce(BootTarget target) = 0;
  virtual Async<std::vector<FirmwareItem>> firmware() = 0;
  /// Uploads; answers the task's URI.
  /// Errors: Corrupt (file differs from sha256: nothing was sent), Conflict (an update is running),
  /// Unavailable
  virtual Async<std::string> startUpdate(FirmwareUpdate update) = 0;
  virtual Async<TaskStatus> task(std::string uri) = 0;
  /// What the BMC lists, oldest first; what a controller looks at after a crash, before it uploads
  /// anything.
  virtual Async<TaskList> tasks() = 0;
  /// Restarts the BMC itself; returns when it answers again.
  virtual Async<void> resetBmc() = 0;
  /// Gives up what is remembered of the conversation (login, places) and begins anew. Drivers
  /// without a conversation do nothing.
  virtual Async<void> newSession();
  /// The newest `limit` entries of the system event log, oldest first. Errors: NotFound (this BMC
  /// offers none)
  virtual Async<std::vector<LogEntry>> eventLog(std::size_t limit);
  /// Errors: NotFound (this BMC tells of none)
  virtual Async<SerialConsoleEndpoint> serialConsole();
  /// What the machine is, for whoever meets it first. Drivers that know no more than system()
  /// answer that.
  virtual Async<Survey> survey();
  /// Cuts the machine's standby power for a moment and gives it back: what no reset reaches starts
  /// anew, the BMC too. Returns when the BMC answers again. Errors: NotFound (this BMC offers none)
  virtual Async<void> acCycle();
  /// Sees to it that the standby power is there, which somebody cut at `cut_at` and perhaps died:
  /// not before it has been away as long as it should. Where the BMC itself cuts it there is
  /// nothing to see to.
  virtual Async<void> restorePower(WallTime cut_at);
  /// Sends the host a non-maskable interrupt: its system writes a crash dump, or stops. Errors:
  /// NotFound (not offered), Conflict (it is off)
  virtual Async<void> sendNmi();
  /// Verified by reading it again. Errors: NotFound (this BMC cannot do that)
  virtual Async<void> boot(BootOverride what);
  /// Changes the account's password from the declared one to its `next`, and proves it by a login.
  /// May be killed anywhere and called again. Errors: NotFound (no next password is declared),
  /// Denied (neither works), InvalidInput (the BMC refuses the new one)
  virtual Async<void> rotatePassword();
  /// A request (PEM) for the key that the BMC has just made. Errors: NotFound (it makes none)
  virtual Async<std::string> certificateRequest(CertificateSubject subject);
  /// Installs certificate and chain (PEM); from then on it is the one that is trusted. May be
  /// killed anywhere and called again.
  virtual Async<void> installCertificate(std::string pem);
  /// Second slots that are being filled, or were. None where the BMC tells of none.
  virtual Async<std::vector<BackgroundCopy>> backgroundCopies();
  /// Makes the running image also the one to fall back to. Errors: NotFound (not asked for by this
  /// BMC, or not for this component)
  virtual Async<void> commitImage(std::string component);
  /// The version of the image that the component ran before and could run again. Errors: NotFound
  /// (none, or this BMC offers no way back)
  virtual Async<std::string> previousImage(std::string component);
  /// Orders that image; it runs after the component's activation, as a new one does. Not
  /// idempotent: journal it before.
  virtual Async<void> rollBack(std::string component);
  /// All readings that can be read. Errors: NotFound (this BMC shows none)
  virtual Async<std::vector<SensorReading>> sensors();
  /// Attribute → value, as the machine's firmware has them now. Errors: NotFound (this BMC shows
  /// none)
  virtual Async<std::map<std::string, std::string>> biosAttributes();
  /// What waits for the next boot.
  virtual Async<std::map<std::string, std::string>> stagedBiosAttributes();
  /// Stages values for the next boot. Errors: NotFound, InvalidInput (an attribute that it has not,
  /// or a value that it refuses)
  virtual Async<void> stageBios(std::map<std::string, std::string> values);
};

/// What decides whether a BMC gets the password.
enum class BmcTrustBy {
  Pin,           ///< the inventory's bmc_pin
  Ca,            ///< its bmc_ca
  FirstContact,  ///< the certificate that was shown first
  Nothing,       ///< bmc_trust: declared, and nothing is: it gets none
};

/// What is known of a node's BMC without asking it.
struct BmcTrustState {
  std::string pin;  ///< SHA-256 of the certificate that holds; "": none yet
  BmcTrustBy trust = BmcTrustBy::FirstContact;
  bool inventory_is_behind = false;    ///< muster has installed `pin` in the place of the bmc_pin
                                       ///< that the inventory still names
  bool password_refused = false;       ///< the declared password was refused, so it is not sent
  Rotation rotation = Rotation::None;  ///< to the credential's `next`
};
Result<BmcTrustState> remembered(const inventory::Cluster& cluster, lifecycle::Store& store,
                                 const NodeName& node);

/// All BMCs of the cluster: one arbiter (session, rate, lock, lock-out protection, TLS pin) per
/// BMC.
class BmcFleet {
 public:
  virtual ~BmcFleet() = default;
  /// The node's BMC; lives as long as the fleet.
  virtual Bmc& at(const NodeName& node) = 0;
  /// The same BMC by IPMI alone, behind an arbiter of its own; null: not declared. For what a
  /// person orders although Redfish is silent.
  virtual Bmc* ipmiOf(const NodeName&) { return nullptr; }
  /// Ends sessions. Best effort, bounded by a few seconds.
  virtual Async<void> close() = 0;
};

/// Redfish over HTTPS for "https://…", libvirt for "libvirt:DOMAIN". Pins and refused passwords
/// live in the store.
std::unique_ptr<BmcFleet> makeBmcFleet(const inventory::Cluster& cluster, lifecycle::Store& store,
                                       Clock& clock, Workers& workers);

/// A BMC that no node declares: memory (pin, refused passwords) goes under `key` instead of a
/// node's name.
struct UndeclaredBmcOptions {
  NodeName key;
  std::string url;
  inventory::Credential credential;
  std::string certificate =
      {};  ///< SHA-256 of what it showed when it was asked without a password: no other one gets it
  bool approved =
      false;  ///< a person has approved that certificate: it counts whatever was remembered before
};
/// Behind an arbiter of its own, as a fleet's BMCs are. The caller awaits close() before it lets
/// go.
class UndeclaredBmc {
 public:
  virtual ~UndeclaredBmc() = default;
  virtual Bmc& bmc() = 0;
  virtual Async<void> close() = 0;
};
std::unique_ptr<UndeclaredBmc> makeUndeclaredBmc(
    UndeclaredBmcOptions who, lifecycle::Store& store, Clock& clock, Workers& workers,
    std::function<std::unique_ptr<io::HttpClient>(io::TlsTrust)> make_client);
/// Whether this BMC has refused the credential before, so that nothing would be sent.
Result<bool> isRefused(lifecycle::Store& store, const UndeclaredBmcOptions& who);
/// The node's BMC is the one that was met as `stranger`: its certificate is pinned from the first
/// contact on.
Result<void> inheritPin(lifecycle::Store& store, const NodeName& stranger, const NodeName& node);

/// After an operator has seen to it: trust the certificate and the SSH host key that the BMC shows
/// next.
Result<void> forgetPin(lifecycle::Store& store, const NodeName& node);
/// After an operator has put the account right on the BMC: the same password may be tried once
/// more.
Result<void> forgetRefusal(lifecycle::Store& store, const NodeName& node);

}  // namespace muster::bmc
