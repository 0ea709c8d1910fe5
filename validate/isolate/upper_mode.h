// SPDX-License-Identifier: Apache-2.0
// What the healthy reach, however few they are. Internal to the isolation.
#pragma once

#include <vector>

namespace muster::validate::isolate {

/// The centre of the topmost cluster of these rates (all > 0; at least one; they are sorted).
///
/// Healthy pairs share one physical limit, so they lie close together, and nothing lies above them.
/// The median is theirs only while more than half of all pairs are healthy, which ends at 29 % bad
/// nodes: (1 − 0.29)² = 0.5. A cluster counts when it holds at least 3 % and kFewestOfMode of the
/// rates and its density falls significantly below it, so that neither lucky outliers nor ripples
/// of one cluster are taken for it. Without any such cluster: the median. Source: mode by the
/// nearest dense window, D. R. Bickel and R. Frühwirth, "On a fast, robust estimator of the mode",
/// 2006 (half-sample mode); ours begins at the top and asks for significance.
double upperMode(std::vector<double>& rates);

}  // namespace muster::validate::isolate
