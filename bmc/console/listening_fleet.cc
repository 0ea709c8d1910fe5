// The fleet with ears: every way of starting a machine passes here, so no phase has to think of its console.
#include "bmc/console/desk.h"

#include <map>

namespace muster::bmc {
namespace {

class ListeningBmc final : public Bmc {
 public:
  ListeningBmc(Bmc& bmc, NodeName node, Consoles& consoles) : bmc_(bmc), node_(std::move(node)), consoles_(consoles) {}

  std::string address() const override { return bmc_.address(); }
  Async<SystemInfo> system() override { return bmc_.system(); }
  Async<void> power(PowerAction action) override {
    if (action == PowerAction::On || action == PowerAction::ForceRestart) {
      auto listen = consoles_.bootBegins(node_, action == PowerAction::On ? "power on" : "restart");
      co_await std::move(listen);
    }
    auto power = bmc_.power(action);
    co_return co_await std::move(power);
  }
  Async<void> bootOnce(BootTarget target) override { return bmc_.bootOnce(target); }
  Async<std::vector<FirmwareItem>> firmware() override { return bmc_.firmware(); }
  Async<std::string> startUpdate(FirmwareUpdate update) override { return bmc_.startUpdate(std::move(update)); }
  Async<TaskStatus> task(std::string uri) override { return bmc_.task(std::move(uri)); }
  Async<TaskList> tasks() override { return bmc_.tasks(); }
  Async<void> resetBmc() override { return bmc_.resetBmc(); }
  Async<void> newSession() override { return bmc_.newSession(); }
  Async<std::vector<LogEntry>> eventLog(std::size_t limit) override { return bmc_.eventLog(limit); }
  Async<Survey> survey() override { return bmc_.survey(); }
  Async<std::vector<BackgroundCopy>> backgroundCopies() override { return bmc_.backgroundCopies(); }
  Async<void> commitImage(std::string component) override { return bmc_.commitImage(std::move(component)); }
  Async<std::vector<SensorReading>> sensors() override { return bmc_.sensors(); }
  Async<std::map<std::string, std::string>> biosAttributes() override { return bmc_.biosAttributes(); }
  Async<std::map<std::string, std::string>> stagedBiosAttributes() override { return bmc_.stagedBiosAttributes(); }
  Async<void> stageBios(std::map<std::string, std::string> values) override { return bmc_.stageBios(std::move(values)); }
  Async<void> acCycle() override {
    auto listen = consoles_.bootBegins(node_, "power cut and given back");
    co_await std::move(listen);
    auto cycle = bmc_.acCycle();
    co_return co_await std::move(cycle);
  }

 private:
  Bmc& bmc_;
  NodeName node_;
  Consoles& consoles_;
};

class ListeningFleet final : public BmcFleet {
 public:
  ListeningFleet(std::unique_ptr<BmcFleet> fleet, Consoles& consoles) : fleet_(std::move(fleet)), consoles_(consoles) {}
  Bmc& at(const NodeName& node) override {
    auto& slot = bmcs_[node];
    if (!slot) slot = std::make_unique<ListeningBmc>(fleet_->at(node), node, consoles_);
    return *slot;
  }
  Async<void> close() override { return fleet_->close(); }

 private:
  std::unique_ptr<BmcFleet> fleet_;
  Consoles& consoles_;
  std::map<NodeName, std::unique_ptr<Bmc>> bmcs_;
};

}  // namespace

std::unique_ptr<BmcFleet> listenAtBoot(std::unique_ptr<BmcFleet> fleet, Consoles& consoles) { return std::make_unique<ListeningFleet>(std::move(fleet), consoles); }

}  // namespace muster::bmc
