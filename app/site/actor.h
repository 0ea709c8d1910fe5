// SPDX-License-Identifier: Apache-2.0
// Actor: who runs this process, as the kernel knows it. Names in the environment (SUDO_USER, USER,
// LOGNAME) can be set by whoever starts the process, so they decide nothing: SUDO_USER is written
// down as a claim beside the identity.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace muster::app {

struct Options;

/// The user to whom the process belongs: the login uid of the session where the kernel has one,
/// otherwise the real uid. Shape:  text of /proc/self/loginuid × real uid → uid Errors: none; a
/// text that is no uid, or the kernel's "not set" (4294967295), leaves the real uid
uid_t actorUid(std::string_view loginuid, uid_t real_uid);

/// What SUDO_USER claims, when it could be a user's name and is not `name` itself. It is never
/// printed otherwise: it is foreign text.
std::optional<std::string> sudoClaim(const char* sudo_user, std::string_view name);

/// The name of this process's user: what certificates.may_override is compared with. Nothing of the
/// environment is read. Source: proc(5) loginuid (only CAP_AUDIT_CONTROL may change it once it is
/// set), getuid(2), getpwuid(3)
std::string userName();
std::string hostName();

/// " (claims sudo user anna)", or nothing.
std::string sudoClaimText();

/// "anna@ctl1", with SUDO_USER's claim behind it where there is one: for the journal, the log,
/// findings.
std::string actorText();
/// Of a use case: who asks for it, which is somebody else where a server does what clients ask for.
std::string actorText(const Options& options);

}  // namespace muster::app
