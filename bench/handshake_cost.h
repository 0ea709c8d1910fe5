// SPDX-License-Identifier: Apache-2.0
// What a TLS handshake costs on this machine at this hour: the yardstick for CPU that is mostly
// cryptography and the kernel, so that figures of different machines can be compared.
#pragma once

namespace muster::bench {

/// CPU seconds of one full TLS 1.3 handshake, both sides together: P-256 certificate of the server,
/// X25519, no resumption, no kernel between them. The mean of `handshakes`.
double handshakeCpuSeconds(int handshakes);

}  // namespace muster::bench
