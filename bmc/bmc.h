// Bmc: one machine's management controller as phases see it. Redfish and libvirt are behind it; the arbiter in front.
#pragma once

#include "base/ids.h"
#include "base/task.h"
#include "inventory/cluster.h"
#include "lifecycle/store.h"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace muster::bmc {

enum class PowerState { Unknown, Off, On };
enum class PowerAction { On, ForceOff, GracefulShutdown, ForceRestart };
enum class BootTarget { None, Pxe, Disk, UefiHttp };

struct SystemInfo {
  PowerState power = PowerState::Unknown;
  std::string manufacturer, model, serial, uuid;
  std::vector<std::string> macs;
  BootTarget boot_override = BootTarget::None;
};

struct FirmwareItem {
  std::string name;       ///< the inventory member's Id
  std::string version;
  bool updateable = false;
  std::string unreadable = {};  ///< why it is listed but could not be read now; then only the name is set
};

struct FirmwareUpdate {
  std::string component;          ///< FirmwareInventory Id
  std::filesystem::path file;
  std::string sha256;             ///< checked on the bytes that are sent, at the moment they are sent
};

enum class TaskState { Running, Completed, Failed };
struct TaskStatus {
  TaskState state = TaskState::Running;
  double fraction = 0;
  std::string message;
};

/// URIs of tasks. After a crash an upload left a trace here if it arrived at all, unless the BMC forgets finished tasks.
struct TaskList {
  std::vector<std::string> running;
  std::vector<std::string> finished;
  bool keeps_finished = true;     ///< false: a finished task may be missing (iDRAC)
};

/// One entry of the system event log, as the BMC words it.
struct LogEntry {
  std::string id, created, severity, message;
};

class Bmc {
 public:
  virtual ~Bmc() = default;
  virtual std::string address() const = 0;
  virtual Async<SystemInfo> system() = 0;
  /// Verified by state, not by the answer's code: returns when the state is reached or with Timeout.
  virtual Async<void> power(PowerAction action) = 0;
  virtual Async<void> bootOnce(BootTarget target) = 0;
  virtual Async<std::vector<FirmwareItem>> firmware() = 0;
  /// Uploads; answers the task's URI.
  /// Errors: Corrupt (file differs from sha256: nothing was sent), Conflict (an update is running), Unavailable
  virtual Async<std::string> startUpdate(FirmwareUpdate update) = 0;
  virtual Async<TaskStatus> task(std::string uri) = 0;
  /// What the BMC lists, oldest first; what a controller looks at after a crash, before it uploads anything.
  virtual Async<TaskList> tasks() = 0;
  /// Restarts the BMC itself; returns when it answers again.
  virtual Async<void> resetBmc() = 0;
  /// Gives up what is remembered of the conversation (login, places) and begins anew. Drivers without a conversation do nothing.
  virtual Async<void> newSession();
  /// The newest `limit` entries of the system event log, oldest first. Errors: NotFound (this BMC offers none)
  virtual Async<std::vector<LogEntry>> eventLog(std::size_t limit);
  /// Cuts the machine's standby power for a moment and gives it back: what no reset reaches starts anew, the BMC too. Returns when
  /// the BMC answers again. Errors: NotFound (this BMC offers none)
  virtual Async<void> acCycle();
};

/// All BMCs of the cluster: one arbiter (session, rate, lock, lock-out protection, TLS pin) per BMC.
class BmcFleet {
 public:
  virtual ~BmcFleet() = default;
  /// The node's BMC; lives as long as the fleet.
  virtual Bmc& at(const NodeName& node) = 0;
  /// Ends sessions. Best effort, bounded by a few seconds.
  virtual Async<void> close() = 0;
};

/// Redfish over HTTPS for "https://…", libvirt for "libvirt:DOMAIN". Pins and refused passwords live in the store.
std::unique_ptr<BmcFleet> makeBmcFleet(const inventory::Cluster& cluster, lifecycle::Store& store, Clock& clock, Workers& workers);

/// After an operator has seen to it: trust the certificate that the BMC shows next.
Result<void> forgetPin(lifecycle::Store& store, const NodeName& node);
/// After an operator has put the account right on the BMC: the same password may be tried once more.
Result<void> forgetRefusal(lifecycle::Store& store, const NodeName& node);

}  // namespace muster::bmc
