// SPDX-License-Identifier: Apache-2.0
#include "base/io/sha1.h"

#include <openssl/evp.h>

#include <cstdlib>

namespace muster::io {

std::string sha1(std::string_view data) {
  std::string out(20, '\0');
  unsigned size = 0;
  const bool done =
      EVP_Digest(data.data(), data.size(), reinterpret_cast<unsigned char*>(out.data()), &size,
                 EVP_sha1(), nullptr) == 1;
  if (!done || size != out.size()) std::abort();  // OpenSSL without SHA-1 cannot be
  return out;
}

}  // namespace muster::io
