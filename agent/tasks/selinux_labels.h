// SPDX-License-Identifier: Apache-2.0
// Labels of SELinux on a node that runs. A file takes the label of its folder; where the policy has
// another one for its name, a task that wrote it has restored it when it ends.
#pragma once

#include "agent/tasks/tasks.h"

namespace muster::agent {

/// Where SELinux's policy is loaded, files in the folders that tasks write to get the labels that
/// the policy has for them. What somebody labelled by a type of their own (customizable types)
/// stays. A failure is logged: the task's own outcome counts.
Task<void> restoreLabels(TaskTools tools);

/// The handler, and the labels after it, whatever came of it.
TaskHandler withLabels(TaskTools tools, TaskHandler handler);

}  // namespace muster::agent
