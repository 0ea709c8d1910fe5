// SPDX-License-Identifier: Apache-2.0
// What a BMC does for phases, role by role: an interface each, with its values. Redfish has a
// driver for each (bmc/redfish/), IPMI and libvirt fill those that they know.
//
// What a driver need not offer answers NotFound, or nothing, by itself.
#pragma once

#include "base/async/task.h"
#include "base/clock.h"
#include "bmc/machine_identity.h"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::bmc {

enum class PowerState { Unknown, Off, On };
enum class PowerAction { On, ForceOff, GracefulShutdown, ForceRestart };
enum class BootTarget { None, Pxe, Disk, UefiHttp, Cd, Usb };  ///< Cd, Usb: virtual media too

/// What the machine boots from instead of its own order.
struct BootOverride {
  BootTarget target = BootTarget::None;
  bool persistent = false;    ///< else the next boot uses it up
  std::string http_uri = {};  ///< UefiHttp: what is loaded; "": what DHCP says
};

/// An entry of the machine's own boot order.
struct BootOption {
  std::string reference;  ///< "Boot0003"
  std::string name;       ///< as its firmware shows it; "": it says nothing of it
  BootTarget starts_from = BootTarget::None;  ///< None: something else, or nobody knows
  std::string mac;                            ///< of the NIC; "": no NIC, or it does not say
};
/// A drive of virtual media that takes a CD's image or, where the BMC has none, a USB stick's.
struct VirtualMedium {
  std::string id, image;  ///< image: as the BMC shows it
  bool inserted = false;
  BootTarget boots_by = BootTarget::Cd;  ///< how a machine is told to start from it: Cd, Usb
};
struct BootOrder {
  std::vector<BootOption> options;       ///< in the order in which they are tried
  std::vector<std::string> staged = {};  ///< the order that the next boot brings; empty: the same
};

/// Manufacturer, model and serial are the first that the BMC reports, in the order of
/// IdentityPlace.
struct SystemInfo {
  PowerState power = PowerState::Unknown;
  std::string manufacturer, model, serial, uuid;
  std::vector<std::string> macs;  ///< of its Ethernet interfaces: all that the BMC knows
  BootTarget boot_override = BootTarget::None;
  std::vector<std::string> boot_macs = {};  ///< of devices that it can boot from; there may be more
  IdentityPlace serial_place = IdentityPlace::System;  ///< where `serial` stands
  std::vector<ReportedIdentity> reported = {};         ///< the evidence: what is reported where
};

struct FirmwareItem {
  std::string name;  ///< the inventory member's Id
  std::string version;
  std::optional<bool> updateable = {};  ///< absent: the BMC does not say, or says it of a part of
                                        ///< what its package is sent to
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
  std::string moved_to = {};    ///< the work goes on under this URI (iDRAC: a Job; a second phase):
                                ///< ask for that from now on
  std::string resolution = {};  ///< Failed: what the BMC says to do about it; "": nothing
};

/// Behind the URI where a task goes on: asking for it orders the work, once. Written down first,
/// and then asked for at once.
inline constexpr std::string_view kOrderMark = "#order";

/// TaskState of an update that has not begun: some NICs begin only at the next restart of the host.
/// Their TaskStatus' message begins so.
inline constexpr std::string_view kStarting = "Starting";
inline bool isStarting(const TaskStatus& status) {
  return status.state == TaskState::Running && status.message.starts_with(kStarting);
}

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
  bool stale = false;  ///< of an earlier look: it could not be read now
};

/// A place for a power supply, filled or not.
struct PowerSupply {
  std::string name;
  std::string
      state;  ///< as Redfish names it: "Enabled", "Absent", "UnavailableOffline"; "": unsaid
  std::string health;  ///< "OK", "Warning", "Critical"; "": unsaid
};
/// Supplies that stand in for each other.
struct SupplyRedundancy {
  std::string name, mode, state, health;
  std::size_t members = 0;
  std::optional<int> needed;  ///< as the BMC says; some say 1 of 6
};
struct PowerSupplies {
  std::vector<PowerSupply> supplies;
  std::vector<SupplyRedundancy> groups;  ///< none: the BMC says nothing of redundancy
};

/// One entry of an event log, as the BMC words it.
struct LogEntry {
  std::string id, created, severity, message;
  std::string log = {};         ///< which of EventLog::logs holds it
  std::string resolution = {};  ///< what the BMC says to do about it; "": nothing
};

/// What a BMC logs of its machine's hardware, which may be several logs (a GPU baseboard has its
/// own): each has its own ids and sometimes its own clock.
struct EventLog {
  std::vector<LogEntry> entries;  ///< oldest first, by their own times
  std::vector<std::string> logs;  ///< that were read, empty ones too
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

/// A network adapter that the BMC shows as starting, or lists and cannot read.
struct DeviceState {
  std::string name, state;
};

class Power {
 public:
  virtual ~Power() = default;
  virtual std::string address() const = 0;
  /// Verified by state, not by the answer's code: returns when the state is reached or with
  /// Timeout.
  virtual Async<void> power(PowerAction action) = 0;
  /// Restarts the BMC itself; returns when it answers again.
  virtual Async<void> resetBmc() = 0;
  /// Sends the host a non-maskable interrupt: its system writes a crash dump, or stops. Errors:
  /// NotFound (not offered), Conflict (it is off)
  virtual Async<void> sendNmi();
  /// Cuts the machine's standby power for a moment and gives it back: what no reset reaches starts
  /// anew, the BMC too. Returns when the BMC answers again. Errors: NotFound (this BMC offers none)
  virtual Async<void> acCycle();
  /// Restores the standby power that was cut at `cut_at` by a process that may have died, not
  /// before it has been off as long as it should. Where the BMC itself cuts it there is nothing to
  /// do.
  virtual Async<void> restorePower(WallTime cut_at);
  /// Whether the LED is on by which the machine is found in its rack. Errors: NotFound (this BMC
  /// has none)
  virtual Async<bool> locateLed();
  /// Verified by reading it again. Errors: NotFound
  virtual Async<void> setLocateLed(bool on);
};

class Boot {
 public:
  virtual ~Boot() = default;
  virtual std::string address() const = 0;
  virtual Async<void> bootOnce(BootTarget target) = 0;
  /// Verified by reading it again. Errors: NotFound (this BMC cannot do that)
  virtual Async<void> boot(BootOverride what);
  /// Errors: NotFound (this BMC does not show it)
  virtual Async<BootOrder> bootOrder();
  /// From the next boot on; verified by reading it again. Errors: NotFound, InvalidInput (not each
  /// option once)
  virtual Async<void> setBootOrder(std::vector<std::string> references);
  /// Errors: NotFound (this BMC has no virtual CD)
  virtual Async<std::vector<VirtualMedium>> virtualMedia();
  /// The BMC reads the image by one of `urls`, the first that it takes, for as long as it is
  /// inserted. Answers the drive. Errors: NotFound, Conflict (no drive is free), InvalidInput (it
  /// reads by none of them)
  virtual Async<VirtualMedium> insertMedia(std::vector<std::string> urls);
  /// `drive`: the id of one; empty: every one that holds an image. Errors: NotFound
  virtual Async<void> ejectMedia(std::string drive);
};

class Bios {
 public:
  virtual ~Bios() = default;
  virtual std::string address() const = 0;
  /// Attribute → value, as the machine's firmware has them now. Errors: NotFound (this BMC shows
  /// none)
  virtual Async<std::map<std::string, std::string>> biosAttributes();
  /// What waits for the next boot.
  virtual Async<std::map<std::string, std::string>> stagedBiosAttributes();
  /// Stages values for the next boot. Errors: NotFound, InvalidInput (an attribute that it has not,
  /// or a value that it refuses)
  virtual Async<void> stageBios(std::map<std::string, std::string> values);
};

class Accounts {
 public:
  virtual ~Accounts() = default;
  virtual std::string address() const = 0;
  /// Changes the account's password from the declared one to its `next`, and proves it by a login.
  /// May be killed anywhere and called again. Errors: NotFound (no next password is declared),
  /// Denied (neither works), InvalidInput (the BMC refuses the new one)
  virtual Async<void> rotatePassword();
  /// A request (PEM) for the key that the BMC has just made. Errors: NotFound (it makes none)
  virtual Async<std::string> certificateRequest(CertificateSubject subject);
  /// Installs certificate and chain (PEM); from then on it is the one that is trusted. May be
  /// killed anywhere and called again.
  virtual Async<void> installCertificate(std::string pem);
};

class Inventory {
 public:
  virtual ~Inventory() = default;
  virtual std::string address() const = 0;
  virtual Async<SystemInfo> system() = 0;
  virtual Async<std::vector<FirmwareItem>> firmware() = 0;
  /// What the machine is, for whoever meets it first. Drivers that know no more than system()
  /// answer that.
  virtual Async<Survey> survey();
  /// Network adapters that are not ready. None while the host is off, and of a driver that cannot
  /// tell. Errors: what the reads end with
  virtual Async<std::vector<DeviceState>> devicesNotReady();
  /// Second slots that are being filled, or were. None where the BMC shows none.
  virtual Async<std::vector<BackgroundCopy>> backgroundCopies();
};

class Updates {
 public:
  virtual ~Updates() = default;
  virtual std::string address() const = 0;
  /// Uploads; answers the task's URI.
  /// Errors: Corrupt (file differs from sha256: nothing was sent), Conflict (an update is running),
  /// Unavailable
  virtual Async<std::string> startUpdate(FirmwareUpdate update) = 0;
  virtual Async<TaskStatus> task(std::string uri) = 0;
  /// What the BMC lists, oldest first; what a controller looks at after a crash, before it uploads
  /// anything.
  virtual Async<TaskList> tasks() = 0;
  /// Whether a package that holds images of both is written into both, whichever of them it is sent
  /// for. No, of a driver that does not know.
  virtual Async<bool> sharesPackage(std::string component, std::string other);
  /// `waiting` images that are not wanted any more wait on this BMC, this one among them: it will
  /// not be activated. Errors: NotFound (this BMC offers no way), Conflict (it holds more, or
  /// fewer, and does not say which is whose)
  virtual Async<void> cancelStaged(std::string component, std::size_t waiting);
  /// Makes the running image also the one to fall back to. Errors: NotFound (not asked for by this
  /// BMC, or not for this component)
  virtual Async<void> commitImage(std::string component);
  /// The version of the image that the component ran before and could run again. Errors: NotFound
  /// (none, or this BMC offers no rollback)
  virtual Async<std::string> previousImage(std::string component);
  /// Orders that image; it runs after the component's activation, as a new one does. Not
  /// idempotent: journal it before.
  virtual Async<void> rollBack(std::string component);
};

class Sensors {
 public:
  virtual ~Sensors() = default;
  virtual std::string address() const = 0;
  /// All readings that can be read. Errors: NotFound (this BMC shows none)
  virtual Async<std::vector<SensorReading>> sensors();
  /// As they are now. Errors: NotFound (this BMC shows none), and what the reads end with
  virtual Async<PowerSupplies> powerSupplies();
};

class Events {
 public:
  virtual ~Events() = default;
  virtual std::string address() const = 0;
  /// The newest `limit` entries of each log of the hardware. Errors: NotFound (this BMC has none)
  virtual Async<EventLog> eventLog(std::size_t limit);
};

class Console {
 public:
  virtual ~Console() = default;
  virtual std::string address() const = 0;
  /// Errors: NotFound (this BMC does not say)
  virtual Async<SerialConsoleEndpoint> serialConsole();
};

}  // namespace muster::bmc
