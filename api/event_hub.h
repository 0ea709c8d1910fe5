// SPDX-License-Identifier: Apache-2.0
// The log as it goes on, for many clients at once: the store is asked once, whoever many listen,
// and each event is rendered once. A client holds a place in the log and no queue: what it has
// missed is in the newest events kept here, or in the store.
#pragma once

#include "api/site_reader.h"
#include "base/async/task.h"

#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace muster::api {

inline constexpr std::chrono::milliseconds kEventPollPeriod{100};  ///< while somebody listens
inline constexpr std::chrono::seconds kHeartbeatPeriod{15};
inline constexpr std::chrono::hours kStreamLife{1};  ///< then the client connects again
inline constexpr std::size_t kKeptFrames = 4'096;
inline constexpr std::size_t kPieceBytes = 64u << 10;

/// Runs work on the reader thread, and resumes on the caller's.
using OnReader = std::function<Task<void>(std::function<void(SiteReader&)>)>;

/// One event as a client of text/event-stream gets it.
struct Frame {
  std::int64_t sequence = 0;
  std::string subject;
  std::string text;
};
Frame frameOf(const lifecycle::Event& event);

/// Of one client. All on the network's thread.
class EventSubscription;

class EventHub : public std::enable_shared_from_this<EventHub> {
 public:
  EventHub(asio::any_io_executor executor, OnReader on_reader)
      : executor_(std::move(executor)), on_reader_(std::move(on_reader)) {}

  /// Asks the store for as long as it lives; every kEventPollPeriod while somebody listens.
  Task<void> run();

  /// Behind `after`; nothing: behind what is there now. Only what `wanted` lets pass; empty: all.
  /// `next` of a StreamBody; nullopt after kStreamLife, or when `may_go_on` says no, which is asked
  /// with each heartbeat.
  std::function<Task<std::optional<std::string>>()> subscribe(
      std::optional<std::int64_t> after, std::function<bool(const std::string& subject)> wanted,
      std::function<bool()> may_go_on);

  std::size_t clients() const { return clients_.size(); }

 private:
  friend class EventSubscription;
  using Frames = std::vector<std::shared_ptr<const Frame>>;

  Task<void> poll();
  void beginAnew();
  /// Behind a place that is older than what is kept here.
  Task<Frames> read(std::int64_t after);
  void publish(Frames frames);

  asio::any_io_executor executor_;
  OnReader on_reader_;
  std::deque<std::shared_ptr<const Frame>> kept_;
  std::int64_t last_ = -1;       ///< newest that is known; -1: the store was not asked yet
  std::int64_t kept_after_ = 0;  ///< all that came later is in kept_
  std::uint64_t polls_ = 0;      ///< looks at the log that were answered
  bool failing_ = false;
  std::uint64_t store_number_ = 0;  ///< whose log this is
  std::vector<EventSubscription*> clients_;
};

}  // namespace muster::api
