// SPDX-License-Identifier: Apache-2.0
// The log of an isolation in the store, where the other host of a site finds it. One isolation at a
// time is a run under way, so that its files have one place each, and none is left over by the run
// before: a text that belongs to another log is none.
#pragma once

#include "lifecycle/store/store.h"
#include "validate/isolate/run_log.h"

#include <string>

namespace muster::app {

class IsolationLogCopy final : public validate::isolate::RunLogCopy {
 public:
  /// `store`: borrowed; `log`: whose texts they are.
  IsolationLogCopy(lifecycle::Store& store, std::string log)
      : store_(store), log_(std::move(log)) {}

  Result<void> put(const std::string& name, const std::string& text) override;
  Result<std::optional<std::string>> get(const std::string& name) override;
  Result<void> forget(const std::string& name) override;

 private:
  lifecycle::Store& store_;
  std::string log_;
};

}  // namespace muster::app
