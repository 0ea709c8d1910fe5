// SPDX-License-Identifier: Apache-2.0
// PlainActContext: an action that is always at its beginning: no operation was recorded, none is
// kept. Facts are the test's.
#pragma once

#include "lifecycle/model/phase.h"

#include <string>
#include <vector>

namespace muster::test {

struct PlainActContext final : lifecycle::ActContext {
  std::string id = "intent-1";
  lifecycle::FactSet known;
  std::vector<lifecycle::Finding> found;
  const std::string& intentId() const override { return id; }
  std::string operation() const override { return {}; }
  Async<void> recordOperation(std::string) override { co_return Result<void>(); }
  bool wipeAllowed() const override { return false; }
  void progress(double, std::string_view) override {}
  void finding(lifecycle::Finding finding) override { found.push_back(std::move(finding)); }
  const lifecycle::FactSet& facts() const override { return known; }
};

}  // namespace muster::test
