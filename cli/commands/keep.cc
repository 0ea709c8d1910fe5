// keep: the controller that stays. It works in shifts: a shift ends when another command wants the state folder, and the next one begins
// when that command has ended, with the inventory as it then is.
#include "base/log.h"
#include "cli/commands/commands.h"
#include "cli/controller.h"
#include "cli/session.h"
#include "cli/view/progress.h"
#include "keep/breakers.h"
#include "keep/keeper.h"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include <csignal>
#include <iostream>
#include <thread>

namespace muster::cli {
namespace {

constexpr std::chrono::milliseconds kLookForOthers{500};
constexpr std::chrono::seconds kRestAfterTrouble{10};  ///< a shift that could not begin is tried again

/// Ends when the shift has to: somebody else's turn, or SIGHUP.
Task<std::string> endOfShift(std::filesystem::path state, Clock& clock) {
  asio::signal_set hangup(co_await asio::this_coro::executor, SIGHUP);
  auto asked_to_reload = std::make_shared<bool>(false);
  hangup.async_wait([asked_to_reload](boost::system::error_code error, int) { *asked_to_reload = !error; });
  while (true) {
    if (isAskedFor(state)) co_return "another command works; keep goes on when it has ended";
    if (*asked_to_reload) co_return "SIGHUP: the inventory is read again";
    auto pause = clock.sleep(kLookForOthers);
    co_await std::move(pause);
  }
}

Async<std::string> keepUntilAsked(Controller& controller, lifecycle::EventSink sink, std::filesystem::path state) {
  using namespace asio::experimental::awaitable_operators;
  keep::Keeper keeper(controller.keeperServices(std::move(sink)));
  auto work = keeper.run();
  auto end = endOfShift(std::move(state), controller.clock());
  auto watch = controller.watchStalls();
  auto either = std::move(work) || std::move(end) || std::move(watch);
  auto first = co_await std::move(either);
  co_return std::get<1>(first);
}

/// Answers why it ended. Errors: the shift could not begin
Result<std::string> shift(const Options& options) {
  TRY(turn, takeKeepersTurn(options.state));
  TRY(live, liveCluster(options));  // what a rollout has brought a node to is what it should be
  const auto& cluster = live->cluster();
  TRY(found, lab::find(options.labFolder(cluster)));
  if (found) TRY_OK(lab::enter(*found));
  ProgressView view(std::cout, ProgressView::styleFor(options.json));
  auto sink = [&view](const lifecycle::Event& event) { view.show(event); };
  TRY(controller, Controller::start(options, cluster, found, Role::Acts, sink, std::move(turn)));
  std::cout << fmt::format("muster keep: {} nodes, a look every {} s\n", cluster.nodes.size(), cluster.keep.interval_seconds) << std::flush;
  auto why = controller->run(keepUntilAsked(*controller, sink, options.state));
  view.finish();
  return why;
}

}  // namespace

int keep(const Options& options) {
  if (const auto made = io::makeDirs(options.state); !made) return report(made.error());
  const auto place = takeKeepersPlace(options.state);
  if (!place) return report(place.error());
  startLog(options.state / "muster.log", LogLevel::Info);
  bool begun = false;
  while (true) {
    std::signal(SIGHUP, SIG_IGN);  // the next shift reads the inventory anyway
    const auto why = shift(options);
    if (!why && !begun) return report(why.error());  // at its first start a person is there to read it
    begun = true;
    if (why) std::cout << "muster keep: " << *why << std::endl;
    if (!why) {
      report(why.error());
      std::this_thread::sleep_for(kRestAfterTrouble);
    }
  }
}

int keepAcknowledge(const Options& options, const std::string& reason) {
  if (reason.empty()) return report(Error(ErrorCode::InvalidInput, "say what you have found: muster keep --acknowledge --reason TEXT"));
  auto store = lifecycle::openStore(options.storeUrl());
  if (!store) return report(store.error());
  const auto said = keep::Breakers(**store).acknowledge(userName() + "@" + hostName(), reason, SystemClock().now());
  if (!said) return report(said.error());
  if (said->empty()) std::cout << "no circuit breaker is open\n";
  for (const auto& [pool, state] : *said) {
    std::vector<std::string> names;
    for (const auto& node : state.nodes) names.push_back(node.str());
    std::cout << fmt::format("pool {}: of these, keep drains those that are still bad at its next look: {}\n", pool, fmt::join(names, ", "));
  }
  return kOk;
}

}  // namespace muster::cli
