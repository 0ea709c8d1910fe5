// SPDX-License-Identifier: Apache-2.0
// What a controller does to its store, without its machines: opens it as the controller does
// (store, values, measurements), then writes all kinds of things until it is killed, and says on
// stdout what was answered, one line each. Usage: STORE-URL PREFIX SEED
#include "base/clock.h"
#include "lifecycle/store/measurements.h"
#include "lifecycle/store/store.h"

#include <fmt/format.h>

#include <unistd.h>

#include <cstdlib>
#include <random>

namespace muster::lifecycle {
namespace {

constexpr int kTroubled = 1;

/// Whole lines of less than PIPE_BUF bytes: a reader sees all of one or nothing.
void say(const std::string& line) {
  if (::write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    std::_Exit(kTroubled);
}

class Writer {
 public:
  Writer(Store& store, Measurements& measurements, std::string prefix, unsigned seed)
      : store_(store), measurements_(measurements), prefix_(std::move(prefix)), random_(seed) {}

  void writeOnce() {
    const auto id = fmt::format("{}-{}", prefix_, ++count_);
    switch (random_() % 8) {
      case 0:
        return answered("finding", id, finding(id));
      case 1:
        return answered("wipe", id, store_.grantWipe(NodeName(id), id, now()));
      case 2:
        return answered("token", id, useToken(id));
      case 3:
        return answered(
            "event", id,
            store_.addEvent({0, now(), EventKind::Note, Subject(NodeName("n1")), "", id}));
      case 4:
        return action(id);
      case 5:
        return batch(id);
      case 6:
        return answered(
            "measured", id,
            measurements_.add({{now(), NodeName(id), "gate", "sku", "r1", {{"a/b@1", 1}}}}));
      default:
        return answered("fact", id,
                        store_.putFacts({{Subject(NodeName(id)), FacetName("os"), "running", now(),
                                          "test", ""}}));
    }
  }

 private:
  WallTime now() { return clock_.now(); }
  Result<void> finding(const std::string& id) {
    return store_.addFinding({{Subject(NodeName(id)), FacetName("validate")},
                              Severity::Error,
                              id,
                              "",
                              "",
                              now(),
                              "test"});
  }
  /// Issued → used, as an agent's one-time token.
  Result<void> useToken(const std::string& id) {
    const auto key = "agent.token." + id;
    if (auto put = store_.putValue(key, "issued"); !put) return put;
    const auto known = store_.getValue(key);
    if (!known) return fail(known.error());
    const auto used = store_.exchangeValue(key, *known, "used");
    if (!used) return fail(used.error());
    return *used ? Result<void>()
                 : fail(ErrorCode::Internal, "a token that nobody else has was used by another");
  }
  void action(const std::string& id) {
    Intent intent;
    intent.id = id;
    intent.action.facet = {Subject(NodeName(id)), FacetName("image")};
    intent.opened_at = now();
    answered("intent", id, store_.openIntent(intent));
    if (random_() % 2 == 0)
      answered("outcome", id, store_.closeIntent(id, IntentState::Done, "done " + id, now()));
  }
  /// As the journal's thread does: the writes of many in one commit.
  void batch(const std::string& id) {
    std::vector<std::function<bool()>> works;
    std::size_t fine = 0;
    for (int i = 0; i < 3; ++i)
      works.push_back([this, &fine, each = fmt::format("{}.{}", id, i)] {
        const bool done = finding(each).has_value();
        fine += done ? 1 : 0;
        return done;
      });
    store_.together(works);
    if (fine < works.size()) std::_Exit(kTroubled);
    for (int i = 0; i < 3; ++i) say(fmt::format("finding {}.{}\n", id, i));
  }
  template <class T>
  void answered(std::string_view kind, const std::string& id, const Result<T>& answer) {
    if (answer) return say(fmt::format("{} {}\n", kind, id));
    say(fmt::format("trouble {}\n", answer.error().str()));
    if (!answer.error().canRetry()) std::_Exit(kTroubled);
  }

  Store& store_;
  Measurements& measurements_;
  SystemClock clock_;
  std::string prefix_;
  std::mt19937 random_;
  int count_ = 0;
};

int write(const std::string& url, const std::string& prefix, unsigned seed) {
  auto store = openStore(url);
  if (!store) return kTroubled;
  if (!(*store)->getValue("agent.keys.gpu001")) return kTroubled;
  auto measurements = openMeasurements(url);
  if (!measurements) return kTroubled;
  say("ready -\n");
  for (Writer writer(**store, **measurements, prefix, seed);;) writer.writeOnce();
}

}  // namespace
}  // namespace muster::lifecycle

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  return muster::lifecycle::write(argv[1], argv[2],
                                  static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10)));
}
