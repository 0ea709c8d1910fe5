// SPDX-License-Identifier: Apache-2.0
// A receiver of notifications in memory, and a site that tells it what happens.
#pragma once

#include "base/clock.h"
#include "inventory/model/cluster.h"
#include "inventory/model/notifications.h"
#include "inventory/model/profile.h"
#include "monitor/notify/notifier.h"
#include "tests/fakes/memory_store.h"
#include "tests/run_async.h"
#include "tests/virtual_loop.h"

#include <gtest/gtest.h>

#include <fstream>

namespace muster::test {

/// Takes what `answer` lets it take; all that came is kept.
class ReceiverOutside {
 public:
  std::function<Result<io::HttpResponse>(const io::HttpRequest&)> answer =
      [](const io::HttpRequest&) -> Result<io::HttpResponse> {
    return io::HttpResponse{204, {}, ""};
  };
  std::vector<io::HttpRequest> taken, refused;

  monitor::MakeClient factory() {
    return [this](io::TlsTrust) { return std::make_unique<Client>(*this); };
  }

 private:
  class Client final : public io::HttpClient {
   public:
    explicit Client(ReceiverOutside& outside) : outside_(outside) {}
    Async<io::HttpResponse> send(io::HttpRequest request) override {
      auto answer = outside_.answer(request);
      (answer && answer->status / 100 == 2 ? outside_.taken : outside_.refused).push_back(request);
      co_return answer;
    }
    Async<io::HttpResponse> fetch(io::HttpRequest,
                                  std::function<Result<void>(std::string_view)>) override {
      co_return fail(ErrorCode::Internal, "nobody fetches from a receiver");
    }
    std::string peerFingerprint() const override { return {}; }

   private:
    ReceiverOutside& outside_;
  };
};

class Notifications : public ::testing::Test {
 protected:
  static constexpr const char* kSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

  Notifications() {
    std::ofstream(folder_ / "key") << kSecret << "\n";
    cluster_.name = "c1";
    inventory::Profile profile;
    profile.name = "gpu";
    profile.pool = "batch";
    cluster_.profiles["gpu"] = profile;
    inventory::Node node;
    node.name = NodeName("gpu001");
    node.rack = "r1";
    node.profile = "gpu";
    cluster_.nodes.push_back(node);
  }

  inventory::NotificationReceiver& declare(
      const std::string& name,
      inventory::NotificationFormat format = inventory::NotificationFormat::StandardWebhooks) {
    auto& receiver = cluster_.notifications[name];
    receiver.url = "http://127.0.0.1:1/" + name;
    receiver.format = format;
    if (format == inventory::NotificationFormat::StandardWebhooks)
      receiver.secret = inventory::SecretRef{std::filesystem::path(folder_ / "key"), ""};
    return receiver;
  }
  monitor::NotifierServices services() {
    return {cluster_, store_, loop_.clock, loop_.workers, outside_.factory()};
  }
  Result<void> deliver(monitor::Delivery& delivery) { return loop_.run(delivery.deliver()); }

  std::int64_t addEvent(lifecycle::EventKind kind, const std::string& text) {
    return *store_.addEvent(
        {0, loop_.clock.now(), kind, lifecycle::Subject(NodeName("gpu001")), "gpu001/image", text});
  }
  lifecycle::Finding finding(const std::string& facet, const std::string& text,
                             Severity severity = Severity::Error) {
    return {{lifecycle::Subject(NodeName("gpu001")), FacetName(facet)},
            severity,
            text,
            "seen",
            "do this",
            loop_.clock.now(),
            lifecycle::kMonitorSource};
  }

  TempFolder folder_;
  VirtualLoop loop_;
  MemoryStore store_;
  inventory::Cluster cluster_;
  ReceiverOutside outside_;
};

}  // namespace muster::test
