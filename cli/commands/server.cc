// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/server.h"

#include "app/controller/monitor_run.h"
#include "app/controller/service_notify.h"
#include "base/log.h"
#include "base/printable.h"
#include "cli/view/console_progress.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <thread>

namespace muster::cli {
namespace {

using Steady = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kTick = 200ms;
constexpr auto kMostSilence = 120s;  ///< of the monitor's loop, which else looks twice a second
constexpr auto kApiSilence = 60s;

// Set by handlers of signals.
std::atomic<bool> reload_asked{false}, end_asked{false};
static_assert(std::atomic<bool>::is_always_lock_free);

/// What systemd hears, and what signals ask for, on a thread of its own.
class Service {
 public:
  explicit Service(api::ApiServer& api) : api_(api), watchdog_(app::watchdogPeriod()) {
    thread_ = std::thread([this] { work(); });
  }
  Service(const Service&) = delete;
  ~Service() {
    ended_ = true;
    thread_.join();
  }
  void polled() { polled_at_ = Steady::now().time_since_epoch().count(); }
  void paused() { polled_at_ = 0; }

 private:
  /// A loop that stands still must not keep its service alive.
  bool lives() const {
    const auto at = polled_at_.load();
    const bool stands =
        at != 0 && Steady::now() - Steady::time_point(Steady::duration(at)) > kMostSilence;
    return !stands && api_.answered(kApiSilence);
  }
  void work() {
    auto next = Steady::now();
    while (!ended_) {
      if (reload_asked.exchange(false)) api_.reload();
      if (watchdog_ && Steady::now() >= next && lives()) {
        (void)app::notifyService("WATCHDOG=1");
        next = Steady::now() + *watchdog_ / 3;
      }
      std::this_thread::sleep_for(kTick);
    }
  }

  api::ApiServer& api_;
  std::optional<std::chrono::microseconds> watchdog_;
  std::atomic<Steady::rep> polled_at_{0};  ///< 0: nothing is expected
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

class ServerProgress final : public ConsoleProgress {
 public:
  ServerProgress(bool json, api::ApiServer& api, Service& service)
      : ConsoleProgress(json, ShowEvents::Yes), api_(api), service_(service) {}
  void onNotice(const std::string& text) override {
    service_.paused();  // until the next poll
    finish();
    std::cout << "muster server: " << text << std::endl;
    app::notifyStatus(text);
  }
  void onPoll() override { service_.polled(); }
  void onError(const Error& error) override {
    service_.paused();
    ConsoleProgress::onError(error);
  }
  void onExit() override {
    (void)app::notifyService("STOPPING=1");
    api_.stop();
    std::cerr << "\nmuster server: ended as asked; nothing is lost\n";
    std::_Exit(kOk);
  }

 private:
  api::ApiServer& api_;
  Service& service_;
};

/// "10.20.0.1" of "10.20.0.1:9443", "[::1]" of "[::1]:9443".
std::string hostIn(const std::string& listen) { return listen.substr(0, listen.rfind(':')); }

int answerUntilAsked() {
  for (const int signal : {SIGTERM, SIGINT}) std::signal(signal, [](int) { end_asked = true; });
  while (!end_asked) std::this_thread::sleep_for(kTick);
  (void)app::notifyService("STOPPING=1");
  return kOk;
}

}  // namespace

int server(const app::Options& options, const ServerArgs& args) {
  std::signal(SIGHUP, [](int) {
    app::requestReload();
    reload_asked = true;
  });
  auto api_options = args.api;
  // Not by std::cerr, which another thread writes to: systemd's journal and a terminal have it.
  api_options.notice = [](const std::string& text) {
    std::fputs(("muster server: " + printable(text) + "\n").c_str(), stderr);
  };
  auto started = api::ApiServer::start(options, api_options);
  if (!started) return report(started.error());
  auto& api = **started;
  std::cout << fmt::format("muster server: answers on {}{}\n", api.socket().string(),
                           api.port() ? fmt::format(" and on https://{}:{}",
                                                    hostIn(args.api.listen), api.port())
                                      : "")
            << std::flush;
  (void)app::notifyService("READY=1\nSTATUS=answers on " + api.socket().string());
  Service service(api);  // behind it: nobody is fed before it is there
  if (args.api_only) return answerUntilAsked();
  ServerProgress progress(options.json, api, service);
  auto serving = options;
  serving.api_url = api.url();
  return report(app::runMonitor(serving, progress));
}

}  // namespace muster::cli
