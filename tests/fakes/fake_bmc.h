// SPDX-License-Identifier: Apache-2.0
// FakeBmc: a BMC in memory. Firmware has an active and a staged version, updates are tasks that
// take some polls, staged firmware becomes active at the reset that its component needs. Everything
// can be scripted to fail or "crash".
#pragma once

#include "bmc/bmc.h"

#include "base/io/crypto.h"

#include <nlohmann/json.hpp>

#include <deque>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster::test {

/// Thrown right after a scripted effect, as if muster had been killed there: the caller never sees
/// the answer.
struct FakeCrash {
  std::string after;
};

class FakeBmc final : public bmc::Bmc {
 public:
  enum class Activates { AtOnce, BmcReset, PowerCycle, AcCycle };

  struct Component {
    std::string version;
    std::string staged;  ///< empty: nothing waits
    Activates activates = Activates::PowerCycle;
    std::string update_gives;  ///< version that an upload brings; empty: "version" of the file's
                               ///< JSON header
    bool updateable = true;
    int post_reads =
        0;  ///< reads of the inventory after its activation that still show the old version (POST)
    bool needs_host = false;   ///< cannot be read while the host is off (DGX H100: HGX_*)
    int unlisted_reads = 0;    ///< the next reads leave it out
    int unreadable_reads = 0;  ///< the next reads name it but cannot read it
    int uploads = 0;           ///< how often it was flashed
    std::string before;        ///< shown while post_reads_left
    int post_reads_left = 0;
  };

  struct FakeTask {
    std::string component;
    std::string version;
    int polls_left = 2;
    bool fails = false;
    bool finished = false;
    bool forgotten = false;  ///< answers NotFound from now on
    int unlisted_reads =
        0;  ///< the upload is still taken in: no list shows it, no second upload is refused for it
  };

  // ---- script: set before or while it is used
  bmc::SystemInfo info{bmc::PowerState::Off, "QEMU", "fake", "SN-1", "", {}, bmc::BootTarget::None};
  std::map<std::string, Component> components;
  int task_polls = 2;                    ///< polls until a new task has finished
  bool next_update_fails = false;        ///< its task ends as Failed
  std::string failing_update;            ///< so do all of this component
  std::string refused_update;            ///< all of this component are refused as a whole
  int tasks_late_by = 0;                 ///< lists of tasks that do not show a new one yet
  bool refuses_while_taking_in = false;  ///< and a second upload meanwhile is a Conflict
  bool forgets_finished_tasks = false;   ///< a finished task answers NotFound (iDRAC)
  std::string crash_after;  ///< method name ("power On", "startUpdate") whose effect happens and
                            ///< whose answer is lost (FakeCrash)
  std::function<void(bmc::PowerState)> on_power;  ///< told after every change

  // ---- what happened
  std::vector<std::string>
      calls;  ///< "power ForceOff", "bootOnce Pxe", "startUpdate BMC", "resetBmc", reads too
  int uploads = 0;
  int power_cycles = 0;  ///< off → on
  int ac_cycles = 0;
  bool offers_ac_cycle = false;
  std::vector<bmc::VirtualMedium> media;  ///< its virtual CDs
  bool shows_images = true;               ///< false: only that something is inserted
  bool dark = false;       ///< no power reaches it: it answers nothing until restorePower
  bool dies_dark = false;  ///< a crash after acCycle comes between off and on
  int copies_for = 0;      ///< reads of background copies that still show one running
  std::vector<std::string> committed;
  int bmc_resets = 0;
  bmc::BootTarget booted_from = bmc::BootTarget::None;  ///< the override that the last boot used up
  std::map<std::string, FakeTask> task_by_uri;

  explicit FakeBmc(std::string address = "https://bmc.fake") : address_(std::move(address)) {}

  /// The next `times` calls of `method` answer this error, without any effect.
  void failNext(const std::string& method, Error error, int times = 1) {
    for (int i = 0; i < times; ++i) errors_[method].push_back(error);
  }
  void clearFailures(const std::string& method) { errors_.erase(method); }
  /// The next call of `method` ("power On") has its effect, and answers this error.
  void loseAnswer(const std::string& method, Error error) {
    lost_[method].push_back(std::move(error));
  }
  int count(const std::string& call) const {
    int n = 0;
    for (const auto& c : calls) n += c == call || c.rfind(call + " ", 0) == 0;
    return n;
  }

  std::string address() const override { return address_; }

  Async<bmc::SystemInfo> system() override {
    calls.push_back("system");
    CO_TRY_OK(scripted("system"));
    co_return info;
  }

  Async<void> power(bmc::PowerAction action) override {
    calls.push_back("power " + name(action));
    CO_TRY_OK(scripted("power"));
    const bool was_on = info.power == bmc::PowerState::On;
    switch (action) {
      case bmc::PowerAction::On:
        if (!was_on) switchOn();
        break;
      case bmc::PowerAction::ForceOff:
      case bmc::PowerAction::GracefulShutdown:
        if (was_on) switchOff();
        break;
      case bmc::PowerAction::ForceRestart:
        if (was_on) switchOff();
        switchOn();
        break;
    }
    crashPoint("power " + name(action));
    co_return lost("power " + name(action));
  }

  Async<void> bootOnce(bmc::BootTarget target) override {
    calls.push_back("bootOnce " + name(target));
    CO_TRY_OK(scripted("bootOnce"));
    info.boot_override = target;
    crashPoint("bootOnce");
    co_return Result<void>();
  }

  Async<std::vector<bmc::VirtualMedium>> virtualMedia() override {
    calls.push_back("virtualMedia");
    CO_TRY_OK(scripted("virtualMedia"));
    if (media.empty()) co_return fail(ErrorCode::NotFound, address_ + " offers no virtual CD");
    co_return media;
  }
  Async<bmc::VirtualMedium> insertMedia(std::vector<std::string> urls) override {
    calls.push_back("insertMedia " + urls.at(0));
    CO_TRY_OK(scripted("insertMedia"));
    for (auto& drive : media) {
      if (drive.inserted) continue;
      drive.image = shows_images ? urls.at(0) : "";
      drive.inserted = true;
      crashPoint("insertMedia");
      co_return drive;
    }
    co_return fail(ErrorCode::Conflict, "no drive is free");
  }
  Async<void> ejectMedia(std::string id) override {
    calls.push_back("ejectMedia " + id);
    CO_TRY_OK(scripted("ejectMedia"));
    for (auto& drive : media)
      if (id.empty() || drive.id == id) drive.image.clear(), drive.inserted = false;
    crashPoint("ejectMedia");
    co_return Result<void>();
  }

  Async<std::vector<bmc::FirmwareItem>> firmware() override {
    calls.push_back("firmware");
    CO_TRY_OK(scripted("firmware"));
    std::vector<bmc::FirmwareItem> items;
    for (auto& [id, c] : components) {
      if (c.unlisted_reads > 0 && c.unlisted_reads-- > 0) continue;
      const bool old = c.post_reads_left > 0 && c.post_reads_left-- > 0;
      items.push_back({id, old ? c.before : c.version, c.updateable});
      const bool dark = c.needs_host && info.power == bmc::PowerState::Off;
      if (dark || (c.unreadable_reads > 0 && c.unreadable_reads-- > 0))
        items.back() = {id, {}, std::nullopt, "503 of the baseboard"};
    }
    co_return items;
  }

  Async<std::string> startUpdate(bmc::FirmwareUpdate update) override {
    calls.push_back("startUpdate " + update.component);
    CO_TRY_OK(scripted("startUpdate"));
    std::ifstream in(update.file, std::ios::binary);
    if (!in) co_return fail(ErrorCode::NotFound, "cannot read " + update.file.string());
    std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (io::sha256Hex(bytes) != update.sha256) {
      co_return fail(
          ErrorCode::Corrupt,
          update.file.string() + " does not have the declared SHA-256; nothing was sent");
    }
    for (const auto& [uri, task] : task_by_uri) {
      if (!task.finished && (task.unlisted_reads == 0 || refuses_while_taking_in))
        co_return fail(ErrorCode::Conflict, "an update is running: " + uri);
    }
    auto it = components.find(update.component);
    if (it == components.end())
      co_return fail(ErrorCode::NotFound, "no firmware component " + update.component);
    if (update.component == refused_update) co_return fail(ErrorCode::Denied, "not licensed");
    ++uploads;
    ++it->second.uploads;
    const std::string uri = "/redfish/v1/TaskService/Tasks/" + std::to_string(++last_task_);
    auto version = it->second.update_gives.empty() ? headerVersion(bytes) : it->second.update_gives;
    task_by_uri[uri] =
        FakeTask{update.component,
                 version,
                 task_polls,
                 std::exchange(next_update_fails, false) || update.component == failing_update,
                 false,
                 false,
                 tasks_late_by};
    crashPoint("startUpdate");
    CO_TRY_OK(lost("startUpdate"));
    co_return uri;
  }

  Async<bmc::TaskStatus> task(std::string uri) override {
    calls.push_back("task " + uri);
    CO_TRY_OK(scripted("task"));
    auto it = task_by_uri.find(uri);
    if (it == task_by_uri.end() || it->second.forgotten)
      co_return fail(ErrorCode::NotFound, "no task " + uri);
    FakeTask& task = it->second;
    step(task);
    if (task.forgotten) co_return fail(ErrorCode::NotFound, "no task " + uri);
    if (!task.finished)
      co_return bmc::TaskStatus{bmc::TaskState::Running, 1.0 / (1 + task.polls_left), "flashing"};
    if (task.fails)
      co_return bmc::TaskStatus{bmc::TaskState::Failed, 1, "image verification failed"};
    co_return bmc::TaskStatus{bmc::TaskState::Completed, 1, "completed"};
  }

  Async<bmc::TaskList> tasks() override {
    calls.push_back("tasks");
    CO_TRY_OK(scripted("tasks"));
    bmc::TaskList list;
    list.keeps_finished = !forgets_finished_tasks;
    for (auto& [uri, task] : task_by_uri) {
      if (task.forgotten || (task.unlisted_reads > 0 && task.unlisted_reads-- > 0)) continue;
      (task.finished ? list.finished : list.running).push_back(uri);
    }
    co_return list;
  }

  Async<void> resetBmc() override {
    calls.push_back("resetBmc");
    CO_TRY_OK(scripted("resetBmc"));
    ++bmc_resets;
    activate(Activates::BmcReset);
    crashPoint("resetBmc");
    co_return Result<void>();
  }

  Async<void> acCycle() override {
    calls.push_back("acCycle");
    CO_TRY_OK(scripted("acCycle"));
    if (!offers_ac_cycle)
      co_return fail(ErrorCode::NotFound, address_ + " offers no full power cycle");
    if (info.power == bmc::PowerState::On) switchOff();
    ++ac_cycles;
    for (auto how : {Activates::BmcReset, Activates::PowerCycle, Activates::AcCycle}) activate(how);
    dark = dies_dark && crash_after == "acCycle";
    crashPoint("acCycle");
    co_return Result<void>();
  }

  Async<void> restorePower(WallTime) override {
    calls.push_back("restorePower");
    dark = false;
    co_return Result<void>();
  }

  Async<std::vector<bmc::BackgroundCopy>> backgroundCopies() override {
    calls.push_back("backgroundCopies");
    CO_TRY_OK(scripted("backgroundCopies"));
    const bool running = copies_for > 0 && copies_for-- > 0;
    co_return std::vector<bmc::BackgroundCopy>{
        {"HGX_ERoT_FPGA_0", running ? "InProgress" : "Completed", running}};
  }

  Async<void> commitImage(std::string component) override {
    calls.push_back("commitImage " + component);
    committed.push_back(component);
    co_return Result<void>();
  }

  /// Time passes on the BMC: every running task comes to its end.
  void finishTasks() {
    for (auto& [uri, task] : task_by_uri) {
      while (!task.finished) step(task);
    }
  }

  static std::string name(bmc::PowerAction action) {
    switch (action) {
      case bmc::PowerAction::On:
        return "On";
      case bmc::PowerAction::ForceOff:
        return "ForceOff";
      case bmc::PowerAction::GracefulShutdown:
        return "GracefulShutdown";
      case bmc::PowerAction::ForceRestart:
        return "ForceRestart";
    }
    return "?";
  }
  static std::string name(bmc::BootTarget target) {
    switch (target) {
      case bmc::BootTarget::None:
        return "None";
      case bmc::BootTarget::Pxe:
        return "Pxe";
      case bmc::BootTarget::Disk:
        return "Disk";
      case bmc::BootTarget::Cd:
        return "Cd";
      case bmc::BootTarget::Usb:
        return "Usb";
      case bmc::BootTarget::UefiHttp:
        return "UefiHttp";
    }
    return "?";
  }

 private:
  Result<void> scripted(const std::string& method) {
    if (dark) return fail(ErrorCode::Unavailable, "no answer");
    auto it = errors_.find(method);
    if (it == errors_.end() || it->second.empty()) return {};
    Error error = it->second.front();
    it->second.pop_front();
    return std::unexpected(std::move(error));
  }
  Result<void> lost(const std::string& method) {
    auto found = lost_.find(method);
    if (found == lost_.end() || found->second.empty()) return {};
    Error error = std::move(found->second.front());
    found->second.pop_front();
    return std::unexpected(std::move(error));
  }
  void crashPoint(const std::string& method) {
    if (crash_after != method) return;
    crash_after.clear();
    throw FakeCrash{method};
  }
  void switchOff() {
    info.power = bmc::PowerState::Off;
    if (on_power) on_power(info.power);
  }
  void switchOn() {
    info.power = bmc::PowerState::On;
    booted_from = info.boot_override;
    info.boot_override = bmc::BootTarget::None;  // "Once" is used up by the boot
    ++power_cycles;
    activate(Activates::PowerCycle);
    if (on_power) on_power(info.power);
  }
  void step(FakeTask& task) {
    if (task.finished) {
      return;
    }
    if (--task.polls_left > 0) return;
    task.finished = true;
    task.forgotten = forgets_finished_tasks;
    if (task.fails) return;
    Component& c = components[task.component];
    (c.activates == Activates::AtOnce ? c.version : c.staged) = task.version;
  }
  void activate(Activates how) {
    for (auto& [id, c] : components) {
      if (c.activates != how || c.staged.empty()) continue;
      c.before = std::exchange(c.version, std::exchange(c.staged, {}));
      c.post_reads_left = c.post_reads;
    }
  }
  /// The first JSON object of the file's first line may name the version, as the lab's firmware
  /// files do.
  static std::string headerVersion(const std::string& bytes) {
    const auto line = bytes.substr(0, bytes.find('\n'));
    const auto brace = line.find('{');
    if (brace == std::string::npos) return "?";
    auto json = nlohmann::json::parse(line.substr(brace), nullptr, false);
    return json.is_object() ? json.value("version", "?") : "?";
  }

  std::string address_;
  int last_task_ = 0;
  std::map<std::string, std::deque<Error>> errors_, lost_;
};

/// A BMC for every node that is asked for.
class FakeBmcFleet final : public bmc::BmcFleet {
 public:
  FakeBmc& fake(const NodeName& node) {
    auto& slot = bmcs_[node];
    if (!slot) slot = std::make_unique<FakeBmc>("https://bmc-" + node.str() + ".fake");
    return *slot;
  }
  FakeBmc& fake(const std::string& node) { return fake(NodeName(node)); }
  bmc::Bmc& at(const NodeName& node) override { return fake(node); }
  Async<void> close() override {
    closed = true;
    co_return Result<void>();
  }

  bool closed = false;

 private:
  std::map<NodeName, std::unique_ptr<FakeBmc>> bmcs_;
};

}  // namespace muster::test
