// SPDX-License-Identifier: Apache-2.0
// The building of images as a run. It disturbs no node: its plan names what is not in the cache,
// and a process of its own builds one after the other; what it says is told line by line. Whether
// an image is there is looked at, so a build that was killed begins again and one that is there is
// not built twice. docs/adr/0375. Internal to app/.
#pragma once

#include "app/runs/run_kind.h"

namespace muster::app {

const RunKindRules& imageBuildRules();

}  // namespace muster::app
