// SPDX-License-Identifier: Apache-2.0
// The pictures of the report: SVG as text. Internal.
#pragma once

#include "validate/report/report.h"

namespace muster::validate::report {

/// Histogram with the evaluated limits, the outliers as marks.
std::string histogram(const history::Group& group);
/// Median over time in a band from 10 % to 90 %.
std::string trend(const history::Group& group);
/// A column a rack, a cell a node.
std::string rackMap(const history::Statistics& statistics);
std::string matrixMap(const Matrix& matrix);

}  // namespace muster::validate::report
