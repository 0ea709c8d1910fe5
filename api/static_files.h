// SPDX-License-Identifier: Apache-2.0
// The web page: the files of web/, inside the binary. They hold no data of the site.
#pragma once

#include "base/io/http.h"

namespace muster::api {

/// The file of this path, or 404. No path leads anywhere else: it is looked up in a table.
io::ServerResponse staticFile(const io::ServerRequest& request);

}  // namespace muster::api
