// SPDX-License-Identifier: Apache-2.0
// ProgressListener: what a use case says while it works. A command line shows it, an API streams
// it.
#pragma once

#include "app/plans/plan_impact.h"
#include "lifecycle/executor/engine.h"
#include "lifecycle/model/plan.h"
#include "lifecycle/store/store.h"

#include <string>

namespace muster::app {

class ProgressListener {
 public:
  virtual ~ProgressListener() = default;
  virtual void onEvent(const lifecycle::Event&) {}
  /// Before the plan is carried out.
  virtual void onPlan(const lifecycle::Plan&) {}
  /// A plan of `apply`, with what it does to the site.
  virtual void onImpact(const lifecycle::Plan& plan, const PlanImpact&) { onPlan(plan); }
  /// After onImpact: whether the plan is carried out. Asked before each round,
  /// on a thread of its own: it may wait for a person.
  virtual bool mayApply(const PlanImpact&) { return true; }
  /// After a plan: its deadlines are so many times as long here (base/limits.h); 1: as written.
  virtual void onSlowness(double) {}
  /// After a round of a plan.
  virtual void onReport(const lifecycle::ApplyReport&) {}
  /// What the operator should know, and what stops nothing.
  virtual void onNotice(const std::string&) {}
};

}  // namespace muster::app
