// SPDX-License-Identifier: Apache-2.0
// login, logout: who this user is to a server elsewhere, by the site's provider of OpenID Connect.
#pragma once

#include "app/site/options.h"

namespace muster::cli {

int login(const app::Options& options);
int logout(const app::Options& options);

}  // namespace muster::cli
