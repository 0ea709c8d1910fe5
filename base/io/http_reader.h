// SPDX-License-Identifier: Apache-2.0
// Internal to base/io: reads one request: its head whole and checked, then, when its route admits
// it, its body within the budget.
#pragma once

#include "base/io/body_budget.h"
#include "base/io/http_head.h"
#include "base/io/http_stream.h"

#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace muster::io {

/// A body that is charged to a budget as it grows. A small one is not: as much comes with every
/// connection.
struct ChargedBody {
  struct value_type {
    std::string bytes;
    std::shared_ptr<BodyBudget> budget;  ///< set with `client` once the request is admitted
    std::string client;
    std::shared_ptr<BodyCharge> charge;
    std::size_t declared_bytes = 0;  ///< 0: it comes in chunks
    bool over_budget = false;
    bool reserve(std::size_t size);
  };
  class reader {
   public:
    template <bool Request, class Fields>
    reader(boost::beast::http::header<Request, Fields>&, value_type& body) : body_(body) {}
    void init(const boost::optional<std::uint64_t>& length, error_code& error) {
      error = {};
      body_.declared_bytes = length ? static_cast<std::size_t>(*length) : 0;
    }
    template <class Buffers>
    std::size_t put(const Buffers& buffers, error_code& error) {
      const auto size = asio::buffer_size(buffers);
      error = {};
      if (!body_.reserve(body_.bytes.size() + size)) {
        body_.over_budget = true;
        error = boost::beast::http::error::body_limit;
        return 0;
      }
      for (auto at = asio::buffer_sequence_begin(buffers); at != asio::buffer_sequence_end(buffers);
           ++at) {
        const asio::const_buffer piece(*at);
        body_.bytes.append(static_cast<const char*>(piece.data()), piece.size());
      }
      return size;
    }
    void finish(error_code& error) { error = {}; }

   private:
    value_type& body_;
  };
};

using RequestParser = boost::beast::http::request_parser<ChargedBody>;

struct ReadLimits {
  std::chrono::milliseconds idle_timeout{0}, head_timeout{0}, body_timeout{0};
  std::size_t min_body_rate = 1;
};

/// Why there is no request: the connection's error, or a refusal to be answered before it is
/// closed.
struct ReadFailure {
  error_code error = {};
  HeadRefusal refusal = {};
  explicit operator bool() const { return error || refusal; }
};

/// Waits for a request and reads its head. The parser is left at the first byte of the body.
Task<ReadFailure> readHead(std::shared_ptr<Connection> connection, RequestParser* parser,
                           ReadLimits limits);
/// Reads the body; the parser's body_limit holds. Errors: 413, 503 (no memory left for it)
Task<ReadFailure> readBody(std::shared_ptr<Connection> connection, RequestParser* parser,
                           ReadLimits limits);
/// What the peer still sends is thrown away for a moment: closing at once would reset the
/// connection before it has read our answer.
Task<void> discardInput(std::shared_ptr<Connection> connection);

}  // namespace muster::io
