// SPDX-License-Identifier: Apache-2.0
// FakeActContext: what the engine lends a phase, in memory. The operation outlives a "crash" when
// the test keeps it.
#pragma once

#include "lifecycle/model/phase.h"

#include <optional>
#include <string>
#include <vector>

namespace muster::test {

class FakeActContext final : public lifecycle::ActContext {
 public:
  std::string intent = "intent-1";
  std::string recorded;  ///< the operation
  bool wipe = false;
  bool wiping_action = true;  ///< as the engine: an intent that has begun owns what is on the disk
  std::optional<Error> refuse_record;
  lifecycle::FactSet fact_set;
  std::vector<std::string> operations;  ///< every recorded one, in order
  std::vector<std::pair<double, std::string>> progressed;
  std::vector<lifecycle::Finding> findings;

  const std::string& intentId() const override { return intent; }
  std::string operation() const override { return recorded; }
  Async<void> recordOperation(std::string id) override {
    if (refuse_record) co_return fail(*refuse_record);
    recorded = id;
    operations.push_back(id);
    co_return Result<void>();
  }
  bool wipeAllowed() const override { return wiping_action && (wipe || !recorded.empty()); }
  void progress(double fraction, std::string_view text) override {
    progressed.emplace_back(fraction, std::string(text));
  }
  void finding(lifecycle::Finding finding) override { findings.push_back(std::move(finding)); }
  const lifecycle::FactSet& facts() const override { return fact_set; }
};

}  // namespace muster::test
