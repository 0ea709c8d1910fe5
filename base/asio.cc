// SPDX-License-Identifier: Apache-2.0
// The one place where Asio's own code is compiled (BOOST_ASIO_SEPARATE_COMPILATION).
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
