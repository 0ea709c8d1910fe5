// SPDX-License-Identifier: Apache-2.0
#include "bmc/arbiter.h"

#include <boost/asio/error.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/system_error.hpp>

#include <array>
#include <deque>

namespace muster::bmc {

using namespace std::chrono_literals;

struct AsyncSemaphore::Waiter {
  explicit Waiter(const asio::any_io_executor& executor)
      : bell(executor, asio::steady_timer::time_point::max()) {}
  asio::steady_timer bell;
  bool granted = false;  ///< the place is the waiter's
  bool gone = false;     ///< cancelled while it waited
};

struct AsyncSemaphore::State {
  std::size_t free_places;
  std::deque<std::shared_ptr<Waiter>> queue;

  void release() {
    while (!queue.empty()) {
      auto waiter = std::move(queue.front());
      queue.pop_front();
      if (waiter->gone) continue;
      waiter->granted = true;
      waiter->bell.cancel();
      return;
    }
    ++free_places;
  }
};

AsyncSemaphore::AsyncSemaphore(std::size_t places)
    : state_(std::make_shared<State>(State{places, {}})) {}

Task<AsyncSemaphore::Permit> AsyncSemaphore::enter() {
  auto state = state_;
  if (state->free_places > 0) {
    --state->free_places;
    co_return Permit(state);
  }
  auto executor = co_await asio::this_coro::executor;
  auto waiter = std::make_shared<Waiter>(executor);
  state->queue.push_back(waiter);
  // Whoever is cancelled while waiting must neither keep a place that was just granted nor be
  // granted one later.
  struct Leave {
    std::shared_ptr<State> state;
    std::shared_ptr<Waiter> waiter;
    bool taken = false;
    ~Leave() {
      if (taken) return;
      waiter->gone = true;
      if (waiter->granted) state->release();
    }
  } leave{state, waiter};
  boost::system::error_code ignored;
  co_await waiter->bell.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  if (!waiter->granted) throw boost::system::system_error(asio::error::operation_aborted);
  leave.taken = true;
  co_return Permit(state);
}

AsyncSemaphore::Permit& AsyncSemaphore::Permit::operator=(Permit&& other) noexcept {
  if (this != &other) {
    leave();
    state_ = std::exchange(other.state_, nullptr);
  }
  return *this;
}

void AsyncSemaphore::Permit::leave() {
  if (auto state = std::exchange(state_, nullptr)) state->release();
}

Task<void> RateLimiter::next() {
  const auto now = clock_.steady();
  const auto earliest = now - kRequestGap * kRequestBurst;
  if (next_slot_ < earliest) next_slot_ = earliest;
  next_slot_ += kRequestGap;
  if (next_slot_ <= now) co_return;
  auto wait = std::chrono::ceil<std::chrono::milliseconds>(next_slot_ - now);
  co_await clock_.sleep(wait);
}

namespace {

// Past these an operation has failed, whatever it waits for; the drivers' own limits are tighter.
constexpr auto kReadLimit = 10min;
constexpr auto kPowerLimit = 15min;
constexpr auto kBootLimit = 5min;
constexpr auto kMediaLimit = 10min;  // several requests, and a drive that takes its time
constexpr auto kUploadLimit = 2h;
constexpr auto kResetLimit = 20min;
constexpr auto kRollBackLimit = 30min;
constexpr auto kCutLimit = 2h;  ///< with a PDU, as long as the inventory says

class ArbitratedBmc final : public Bmc {
 public:
  ArbitratedBmc(std::unique_ptr<Bmc> driver, Clock& clock)
      : driver_(std::move(driver)), clock_(clock) {}

  std::string address() const override { return driver_->address(); }
  Async<SystemInfo> system() override { return reading("reading the system", driver_->system()); }
  Async<std::vector<FirmwareItem>> firmware() override {
    return reading("reading the firmware inventory", driver_->firmware());
  }
  Async<TaskStatus> task(std::string uri) override {
    return reading("reading a task", driver_->task(std::move(uri)));
  }
  Async<TaskList> tasks() override { return reading("listing tasks", driver_->tasks()); }
  Async<void> power(PowerAction action) override {
    return writing(kPowerLimit, "changing power", driver_->power(action));
  }
  Async<void> bootOnce(BootTarget target) override {
    return writing(kBootLimit, "setting the boot override", driver_->bootOnce(target));
  }
  Async<std::string> startUpdate(FirmwareUpdate update) override {
    return writing(kUploadLimit, "uploading firmware", driver_->startUpdate(std::move(update)));
  }
  Async<Survey> survey() override { return reading("surveying the machine", driver_->survey()); }
  Async<void> newSession() override {
    return alone(kBootLimit, "beginning a new session", driver_->newSession());
  }
  Async<EventLog> eventLog(std::size_t limit) override {
    return reading("reading the event log", driver_->eventLog(limit));
  }
  Async<SerialConsoleEndpoint> serialConsole() override {
    return reading("asking for the serial console", driver_->serialConsole());
  }
  Async<void> acCycle() override {
    return alone(kCutLimit, "cutting the power", driver_->acCycle());
  }
  Async<std::vector<BackgroundCopy>> backgroundCopies() override {
    return reading("reading background copies", driver_->backgroundCopies());
  }
  Async<void> commitImage(std::string component) override {
    return writing(kBootLimit, "committing an image", driver_->commitImage(std::move(component)));
  }
  Async<std::string> previousImage(std::string component) override {
    return reading("looking for the previous image", driver_->previousImage(std::move(component)));
  }
  Async<void> rollBack(std::string component) override {
    return writing(kRollBackLimit, "going back to the previous image",
                   driver_->rollBack(std::move(component)));
  }
  Async<std::vector<SensorReading>> sensors() override {
    return reading("reading sensors", driver_->sensors());
  }
  Async<PowerSupplies> powerSupplies() override {
    return reading("reading power supplies", driver_->powerSupplies());
  }
  Async<void> cancelStaged(std::string component, std::size_t waiting) override {
    return writing(kBootLimit, "cancelling a staged image",
                   driver_->cancelStaged(std::move(component), waiting));
  }
  Async<bool> sharesPackage(std::string component, std::string other) override {
    return reading("reading what a package is for",
                   driver_->sharesPackage(std::move(component), std::move(other)));
  }
  Async<std::vector<DeviceState>> devicesNotReady() override {
    return reading("reading network adapters", driver_->devicesNotReady());
  }
  Async<std::map<std::string, std::string>> biosAttributes() override {
    return reading("reading BIOS attributes", driver_->biosAttributes());
  }
  Async<std::map<std::string, std::string>> stagedBiosAttributes() override {
    return reading("reading staged BIOS attributes", driver_->stagedBiosAttributes());
  }
  Async<void> stageBios(std::map<std::string, std::string> values) override {
    return writing(kBootLimit, "staging BIOS attributes", driver_->stageBios(std::move(values)));
  }
  Async<std::vector<RaidController>> raidControllers() override {
    return reading("reading RAID controllers", driver_->raidControllers());
  }
  Async<RaidOrder> createVolume(VolumeOrder order) override {
    return writing(kBootLimit, "creating a RAID volume", driver_->createVolume(std::move(order)));
  }
  Async<RaidOrder> deleteVolume(std::string uri) override {
    return writing(kBootLimit, "deleting a RAID volume", driver_->deleteVolume(std::move(uri)));
  }
  Async<void> resetBmc() override {
    return alone(kResetLimit, "resetting the BMC", driver_->resetBmc());
  }
  Async<void> restorePower(WallTime cut_at) override {
    return alone(kCutLimit, "giving the power back", driver_->restorePower(cut_at));
  }
  Async<void> sendNmi() override {
    return writing(kBootLimit, "sending an interrupt", driver_->sendNmi());
  }
  Async<bool> locateLed() override {
    return reading("reading the locate LED", driver_->locateLed());
  }
  Async<void> setLocateLed(bool on) override {
    return writing(kBootLimit, "setting the locate LED", driver_->setLocateLed(on));
  }
  Async<std::vector<VirtualMedium>> virtualMedia() override {
    return reading("reading virtual media", driver_->virtualMedia());
  }
  Async<VirtualMedium> insertMedia(std::vector<std::string> urls) override {
    return writing(kMediaLimit, "inserting virtual media", driver_->insertMedia(std::move(urls)));
  }
  Async<void> ejectMedia(std::string drive) override {
    return writing(kMediaLimit, "ejecting virtual media", driver_->ejectMedia(std::move(drive)));
  }
  Async<BootOrder> bootOrder() override {
    return reading("reading the boot order", driver_->bootOrder());
  }
  Async<void> setBootOrder(std::vector<std::string> references) override {
    return writing(kBootLimit, "setting the boot order",
                   driver_->setBootOrder(std::move(references)));
  }
  Async<void> boot(BootOverride what) override {
    return writing(kBootLimit, "setting the boot override", driver_->boot(std::move(what)));
  }
  Async<void> rotatePassword() override {
    return alone(kBootLimit, "changing the password", driver_->rotatePassword());
  }
  Async<std::string> certificateRequest(CertificateSubject subject) override {
    return writing(kBootLimit, "asking for a certificate request",
                   driver_->certificateRequest(std::move(subject)));
  }
  Async<void> installCertificate(std::string pem) override {
    return alone(kResetLimit, "installing a certificate",
                 driver_->installCertificate(std::move(pem)));
  }

 private:
  template <class T>
  Async<T> bounded(std::chrono::milliseconds limit, std::string what, Async<T> work) {
    auto result = co_await withDeadline<T>(clock_, limit, what, std::move(work));
    if (!result) result.error().within(what + " of " + address());
    co_return result;
  }
  template <class T>
  Async<T> reading(std::string what, Async<T> work) {
    auto permit = co_await reads_.enter();
    co_return co_await bounded<T>(kReadLimit, std::move(what), std::move(work));
  }
  template <class T>
  Async<T> writing(std::chrono::milliseconds limit, std::string what, Async<T> work) {
    auto permit = co_await write_.enter();
    co_return co_await bounded<T>(limit, std::move(what), std::move(work));
  }
  /// Takes the write place, then every read place: a reader would only see the BMC go.
  template <class T>
  Async<T> alone(std::chrono::milliseconds limit, std::string what, Async<T> work) {
    auto enter = write_.enter();
    auto permit = co_await std::move(enter);
    std::array<AsyncSemaphore::Permit, kMaxConcurrentReads> reads;
    for (auto& read : reads) {
      read = co_await reads_.enter();
    }
    co_return co_await bounded<T>(limit, std::move(what), std::move(work));
  }

  std::unique_ptr<Bmc> driver_;
  Clock& clock_;
  AsyncSemaphore write_{1};
  AsyncSemaphore reads_{kMaxConcurrentReads};
};

}  // namespace

std::unique_ptr<Bmc> arbitrate(std::unique_ptr<Bmc> driver, Clock& clock) {
  return std::make_unique<ArbitratedBmc>(std::move(driver), clock);
}

}  // namespace muster::bmc
