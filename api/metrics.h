// SPDX-License-Identifier: Apache-2.0
// Prometheus metrics in the text format 0.0.4. Source:
// https://prometheus.io/docs/instrumenting/exposition_formats/
#pragma once

#include "api/route.h"
#include "api/site_reader.h"

#include <string>

namespace muster::api {

inline constexpr std::string_view kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

Result<std::string> metricsText(SiteReader& reader, const Call& call);

}  // namespace muster::api
