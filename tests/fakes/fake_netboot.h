// SPDX-License-Identifier: Apache-2.0
// FakeNetboot: remembers who is armed.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fwd.h"
#include "provision/netboot/netboot.h"

#include <map>
#include <optional>
#include <set>

namespace muster::test {

class FakeNetboot final : public provision::Netboot {
 public:
  std::set<NodeName> armed;
  std::map<NodeName, int> armings;
  std::optional<Error> refuse_arm;
  std::set<NodeName> by_medium;
  static constexpr const char* kMedia = "http://10.20.0.1:8080/media/";

  Result<void> start() override { return {}; }
  void stop() override {}
  Result<void> follow(const inventory::Cluster&) override { return {}; }
  Result<void> arm(const NodeName& node) override {
    if (refuse_arm) return fail(*refuse_arm);
    armed.insert(node);
    ++armings[node];
    return {};
  }
  void disarm(const NodeName& node) override { armed.erase(node); }
  bool usesMedium(const NodeName& node) const override { return by_medium.contains(node); }
  Async<std::vector<std::string>> armMedium(NodeName node) override {
    CO_TRY_OK(arm(node));
    co_return std::vector<std::string>{
        fmt::format("{}{}/muster-{}.iso", kMedia, armings[node], node.str())};
  }
  bool isOwnMedium(const std::string& image) const override { return image.starts_with(kMedia); }
  std::vector<io::Route> routes() override { return {}; }
};

}  // namespace muster::test
