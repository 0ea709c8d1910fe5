// Attacks that are known to succeed, each with what is missing. They are run and reported, but do
// not fail the suite. One that was refused says so: then its line goes.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace muster::attack {

struct KnownOpen {
  std::string_view attack, missing;
};

inline constexpr std::array kKnownOpen = {
    KnownOpen{"http.images-of-nobody",
              "the RAM OS's files are looked up by name before anything is computed"},
    KnownOpen{"http.large-body-before-enrolment",
              "a limit of a body by route and identity, before it is read"},
    KnownOpen{"http.half-bodies-memory", "a budget of all bodies together"},
    KnownOpen{"http.slow-header", "a deadline for a whole request head"},
    KnownOpen{"http.slow-body", "a deadline for a whole body"},
    KnownOpen{"http.one-address-many-connections", "a bound of connections by address"},
};

bool isKnownOpen(std::string_view attack);
/// Checks an attack's outcome: `what` says what was seen.
void expectRefused(std::string_view attack, bool refused, const std::string& what);

}  // namespace muster::attack
