// SPDX-License-Identifier: Apache-2.0
// EraseDisks: joins the erasing library to the agent.
#pragma once

#include "agent/imaging/erase.h"
#include "agent/tasks/tasks.h"

namespace muster::agent {

/// `make_tools`: the outside of the erasing library; a test puts a disk there that dies.
TaskHandler eraseHandler(TaskTools tools, std::function<EraseTools()> make_tools = eraseTools);

}  // namespace muster::agent
