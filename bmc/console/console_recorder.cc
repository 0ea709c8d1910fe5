// SPDX-License-Identifier: Apache-2.0
#include "bmc/console/console_recorder.h"

#include "base/log.h"
#include "bmc/console/ansi_strip.h"
#include "bmc/console/boot_log.h"
#include "lifecycle/model/consoles.h"

#include <fmt/format.h>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>

#include <map>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr auto kOpenPoll = 100ms;
constexpr auto kExpiryLook = 5s;
constexpr auto kGivesBack = 3s;  ///< a session may take so long to end by itself
constexpr std::chrono::milliseconds kReopenFirst = 250ms, kReopenLast = 30'000ms;

/// Listening to one node. Held by its coroutines, so it ends a moment after the recorder.
struct Capture {
  NodeName node;
  std::unique_ptr<ConsoleSource> source;
  std::shared_ptr<BootLog> log;  ///< of the boot that is under way
  KeptBoot boot;                 ///< that boot
  std::function<bool()> is_up;   ///< whether it has ended; empty: somebody will say so
  std::string ring;
  std::string trouble;           ///< why nobody listens; empty: somebody does
  io::Dialogue* line = nullptr;  ///< open, owned by listen()
  bool tried = false, stopped = false, ended = false;
  std::chrono::steady_clock::time_point until;
  asio::cancellation_signal cut;
};
using At = std::shared_ptr<Capture>;

void remember(Capture& capture, std::string_view piece) {
  capture.ring += piece;
  if (capture.ring.size() > 2 * kRingBytes) capture.ring.erase(0, capture.ring.size() - kRingBytes);
}

Task<void> keep(At at, std::string piece, Workers& workers) {
  remember(*at, piece);
  auto log = at->log;  // a new boot may begin meanwhile
  auto kept = co_await offload<Result<void>>(
      workers, [log, piece = std::move(piece)] { return log->append(piece); });
  if (!kept && at->trouble.empty())
    logWarning("console", "{}: {}", at->node.str(), kept.error().str());
  at->trouble = kept ? "" : kept.error().str();
}

/// One session, until it ends. Answers whether anything came.
Async<bool> listenOnce(At at, Workers& workers) {
  CO_TRY(line, co_await at->source->open());
  struct Shown {
    At at;
    ~Shown() { at->line = nullptr; }
  } shown{at};
  at->line = line.get();
  at->tried = true;
  at->trouble.clear();
  bool heard = false;
  while (!at->stopped) {
    CO_TRY(piece, co_await line->read());
    if (piece.empty()) break;
    heard = true;
    co_await keep(at, std::move(piece), workers);
  }
  co_return heard;
}

Task<void> listen(At at, Clock& clock, Workers& workers) {
  auto pause = kReopenFirst;
  while (!at->stopped) {
    const auto began = clock.steady();
    auto heard = co_await listenOnce(at, workers);
    if (at->stopped) break;
    if (!heard) {
      const auto text = heard.error().str();
      if (at->trouble != text) logWarning("console", "{}: {}", at->node.str(), text);
      at->trouble = text;
      at->tried = true;
      const auto code = heard.error().code();
      if (code == ErrorCode::NotFound || code == ErrorCode::Denied ||
          code == ErrorCode::InvalidInput)
        break;
    }
    // A BMC that greets and closes at once is no line that broke: each time is a login.
    pause = heard && *heard && clock.steady() - began >= kReopenLast
                ? kReopenFirst
                : std::min(2 * pause, kReopenLast);
    co_await clock.sleep(pause);
  }
}

void linger(Capture& capture, Clock& clock) {
  capture.until = std::min(capture.until, clock.steady() + kCaptureLinger);
  capture.is_up = nullptr;
}

/// Ends the capture when its time is over.
Task<void> expire(At at, Clock& clock) {
  while (!at->ended && !at->stopped && clock.steady() < at->until) {
    co_await clock.waitFor(kExpiryLook);
    if (at->is_up && !at->stopped && at->is_up()) linger(*at, clock);
  }
  at->stopped = true;
  if (at->line) at->line->hangUp();
  for (auto waited = 0ms; !at->ended && waited < kGivesBack; waited += kOpenPoll) {
    co_await clock.waitFor(kOpenPoll);
  }
  if (!at->ended)
    at->cut.emit(
        asio::cancellation_type::terminal);  // the slot of one that has ended leads nowhere
}

class ConsoleRecorder final : public Consoles {
 public:
  ConsoleRecorder(ConsoleFactory factory, std::filesystem::path kept, Clock& clock,
                  Workers& workers)
      : factory_(std::move(factory)), kept_(std::move(kept)), clock_(clock), workers_(workers) {}
  ~ConsoleRecorder() override {
    for (auto& [node, at] : captures_) at->stopped = true;
  }

  Task<void> bootBegins(NodeName node, std::string why, std::function<bool()> is_up) override {
    std::erase_if(captures_, [](const auto& entry) { return entry.second->ended; });
    auto known = captures_.find(node);
    auto source = known == captures_.end() ? factory_(node) : nullptr;
    if (known == captures_.end() && !source) co_return;
    const auto now = clock_.now();
    auto log = co_await offload<Result<std::shared_ptr<BootLog>>>(
        workers_, [kept = kept_, node, why, now]() -> Result<std::shared_ptr<BootLog>> {
          TRY(log, BootLogArchive(kept, node).begin(now, why));
          return std::make_shared<BootLog>(std::move(log));
        });
    if (!log) {
      logWarning("console", "the boot of {} cannot be kept: {}", node.str(), log.error().str());
      co_return;
    }
    if (known = captures_.find(node); known != captures_.end() && !known->second->ended &&
                                      !known->second->stopped) {  // it may have changed meanwhile
      known->second->log = *log;
      known->second->boot = {(*log)->number(), now, why};
      known->second->is_up = std::move(is_up);
      known->second->ring.clear();
      known->second->until = clock_.steady() + kCaptureLimit;
      co_return;
    }
    if (!source) source = factory_(node);
    if (captures_.size() >= kMaxCaptures) {
      (void)(*log)->append(
          fmt::format("[muster: not listened to, {} other boots are]\n", captures_.size()));
      co_return;
    }
    auto at = std::make_shared<Capture>();
    at->node = node;
    at->source = std::move(source);
    at->log = *log;
    at->boot = {(*log)->number(), now, why};
    at->is_up = std::move(is_up);
    co_await start(std::move(at));
  }

  void bootEnded(const NodeName& node) override {
    const auto known = captures_.find(node);
    if (known != captures_.end()) linger(*known->second, clock_);
  }

  std::vector<std::string> lastLines(const NodeName& node) const override {
    const auto known = captures_.find(node);
    if (known != captures_.end() && !known->second->ring.empty())
      return linesOf(known->second->boot, known->second->ring);
    if (known != captures_.end() && !known->second->trouble.empty())
      return linesOf(known->second->boot, "[muster: " + known->second->trouble + "]");
    const BootLogArchive shelf(kept_, node);
    const auto boots = shelf.boots();
    if (!boots || boots->empty()) return {};
    const auto text = shelf.read(boots->back().number);
    return text ? linesOf(boots->back(), std::string_view(*text).substr(
                                             text->size() - std::min(text->size(), kRingBytes)))
                : std::vector<std::string>();
  }

  Async<void> close() override {
    for (auto& [node, at] : captures_) {
      at->stopped = true;
      if (at->line) at->line->hangUp();
    }
    const auto until = clock_.steady() + kGivesBack;
    while (clock_.steady() < until &&
           std::any_of(captures_.begin(), captures_.end(),
                       [](const auto& entry) { return !entry.second->ended; })) {
      co_await clock_.waitFor(kOpenPoll);
    }
    for (auto& [node, at] : captures_)
      if (!at->ended) at->cut.emit(asio::cancellation_type::terminal);
    co_return Result<void>();
  }

 private:
  static std::vector<std::string> linesOf(const KeptBoot& boot, std::string_view said) {
    auto lines = plainLines(said, kFindingLines);
    if (!lines.empty())
      lines.insert(lines.begin(), lifecycle::consoleBootLine(boot.number, boot.began, boot.why));
    return lines;
  }

  Task<void> start(At at) {
    auto executor = co_await asio::this_coro::executor;
    at->until = clock_.steady() + kCaptureLimit;
    captures_[at->node] = at;
    asio::co_spawn(executor, listen(at, clock_, workers_),
                   asio::bind_cancellation_slot(
                       at->cut.slot(), [at](const std::exception_ptr&) { at->ended = true; }));
    asio::co_spawn(executor, expire(at, clock_), [](const std::exception_ptr&) {});
    for (auto waited = 0ms; waited < kOpenWait && !at->tried && !at->ended; waited += kOpenPoll) {
      co_await clock_.waitFor(kOpenPoll);
    }
  }

  ConsoleFactory factory_;
  std::filesystem::path kept_;
  Clock& clock_;
  Workers& workers_;
  std::map<NodeName, At> captures_;
};

}  // namespace

std::unique_ptr<Consoles> makeConsoles(ConsoleFactory factory, std::filesystem::path kept_folder,
                                       Clock& clock, Workers& workers) {
  return std::make_unique<ConsoleRecorder>(std::move(factory), std::move(kept_folder), clock,
                                           workers);
}

}  // namespace muster::bmc
