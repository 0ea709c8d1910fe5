// SPDX-License-Identifier: Apache-2.0
// Internal to base/io: what a server demands of a request's line and headers, before a parser and a
// route see them. Stricter than the RFCs allow: nothing that two programs could read differently,
// as such differences are what request smuggling lives on.
#pragma once

#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::io {

inline constexpr std::size_t kRequestLineLimitBytes = 8u << 10;
inline constexpr std::size_t kHeadLimitBytes = 32u << 10;
inline constexpr std::size_t kHeaderFieldLimit = 100;

/// Why a request is refused; status 0: it is not.
struct HeadRefusal {
  int status = 0;
  std::string_view reason = {};
  explicit operator bool() const { return status != 0; }
};

/// Looks at the bytes of a request's head as they arrive, each once.
class HeadScanner {
 public:
  /// `received` is all that has arrived of this request, and begins with what the last call was
  /// given. Errors: 400 (line ends other than CRLF, folded lines, control characters), 414, 431
  HeadRefusal scan(std::string_view received);
  /// The empty line has been seen.
  bool isComplete() const { return complete_; }

 private:
  HeadRefusal lineEnds(std::string_view received, std::size_t feed);
  std::size_t at_ = 0, line_ = 0, fields_ = 0;
  bool first_ = true, complete_ = false;
};

/// Is the length of the body said once and plainly, and the target a clean path of this server?
/// Errors: 400, 501 (transfer encodings other than chunked)
HeadRefusal checkHead(const boost::beast::http::header<true, boost::beast::http::fields>& head);

/// Handlers may join the path to a folder: nothing that climbs out of it, or that another program
/// would split differently, gets to them. Answers what is wrong with the path; empty: nothing.
std::string_view faultOfTarget(std::string_view target);

}  // namespace muster::io
