// SPDX-License-Identifier: Apache-2.0
// The first step of every imaging.
#pragma once

#include "agent/imaging/writer.h"

namespace muster::agent {

/// The index of the image, believed; while the controller does not answer, mirrors are asked too,
/// and then all again. Errors: NotFound (the controller does not have it), Denied (signature),
/// Corrupt, Timeout (`end`; the last fault is quoted)
Async<wire::PackIndex> fetchIndex(const wire::WriteImageParams& params, const WriterDeps& deps,
                                  std::chrono::steady_clock::time_point end);

}  // namespace muster::agent
