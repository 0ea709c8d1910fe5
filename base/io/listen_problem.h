// SPDX-License-Identifier: Apache-2.0
// Why a server could not listen: the reason of the error that startHttpServer answers.
#pragma once

namespace muster::io {

enum class ListenProblem {
  AddressNotHere,  ///< no interface of this host has the address
  Other
};

}  // namespace muster::io
