// SPDX-License-Identifier: Apache-2.0
// RunRows: how the process that carries runs out changes their rows. Internal to app/.
#pragma once

#include "app/runs/runs.h"
#include "lifecycle/model/plan.h"

#include <functional>
#include <string>

namespace muster::app {

class RunRows {
 public:
  using Notice = std::function<void(const std::string&)>;
  RunRows(lifecycle::RunStore& store, const Clock& clock, std::string holder, Notice notice)
      : store_(store), clock_(clock), holder_(std::move(holder)), notice_(std::move(notice)) {}

  lifecycle::RunStore& store() { return store_; }
  const std::string& holder() const { return holder_; }
  WallTime now() const { return clock_.now(); }
  Result<lifecycle::Run> read(const std::string& id) { return readRun(store_, id); }

  /// `changed` by the executor, with a note for the journal and for the operator of this process.
  /// Errors: also Conflict (the table of states forbids it)
  Result<lifecycle::Run> move(const std::string& id, lifecycle::RunState to,
                              lifecycle::RunReason reason, const std::string& text = "",
                              const std::function<void(lifecycle::Run&)>& edit = {});
  /// One that is too long is not kept.
  Result<void> keepPlan(const std::string& id, const lifecycle::Plan& plan);
  /// Ends the run for good, unless trying again may help: then that is the error, and the row says
  /// what hinders it.
  Result<void> endWith(const std::string& id, const Error& error);
  void tell(const std::string& text) const;

 private:
  Result<void> waitsFor(const std::string& id, const std::string& trouble);
  lifecycle::RunStore& store_;
  const Clock& clock_;
  const std::string holder_;
  const Notice notice_;
};

}  // namespace muster::app
