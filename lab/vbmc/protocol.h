// SPDX-License-Identifier: Apache-2.0
// What DSP0266 wants of every answer, whatever it is about: headers, the OData documents, queries.
#pragma once

#include "base/io/http.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::lab::vbmc {

/// Headers that an answer of this service has. `allowed`: the methods of the resource.
/// Source: DSP0266 8.2 (response headers)
void addProtocolHeaders(io::ServerResponse& response, const std::string& method,
                        const std::vector<std::string>& allowed);

/// The Link header of a resource: its schema; "": it has no type.
std::string describedBy(const nlohmann::json& resource);

/// Why a request is refused before anybody looks who sent it: another OData version, a query that
/// this service does not know. Source: DSP0266 7.2, 7.3
std::optional<io::ServerResponse> refuseProtocol(const io::ServerRequest& request);

/// /redfish/v1/odata. Source: DSP0266 8.5.5
nlohmann::json serviceDocument(const nlohmann::json& root);

/// /redfish/v1/$metadata of a service with resources of these types ("ServiceRoot.v1_9_0").
/// Source: DSP0266 8.5.4
std::string metadataDocument(const std::set<std::string>& types);

/// The types of all resources that the root leads to. `find` gives a resource, or nothing.
std::set<std::string> typesBelow(
    const std::string& root,
    const std::function<std::optional<nlohmann::json>(const std::string&)>& find);

}  // namespace muster::lab::vbmc
