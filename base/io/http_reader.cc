// SPDX-License-Identifier: Apache-2.0
#include "base/io/http_reader.h"

#include <boost/asio/write.hpp>

#include <array>

namespace muster::io {

namespace http = boost::beast::http;

namespace {

constexpr std::size_t kFreeBodyBytes = 4u << 10;
constexpr std::size_t kFirstReadBytes = 512;  ///< an idle connection holds no more than this
constexpr std::size_t kReadBytes = 64u << 10;
constexpr std::size_t kChunkHeadBytes = 8u << 10;  ///< what may be buffered without being a part of
                                                   ///< a body: chunk sizes, extensions, trailers
constexpr std::chrono::seconds kDiscardLimit{2};
constexpr std::size_t kDiscardBytes = 4u << 20;

HeadRefusal malformed(const error_code& error) {
  if (error == http::error::body_limit) return {413, "the body is too long"};
  if (error == http::error::header_limit) return {431, "the headers are too long"};
  if (error == http::error::bad_method) return {400, "the method is malformed"};
  if (error == http::error::bad_target) return {400, "the target is malformed"};
  if (error == http::error::bad_version) return {400, "the HTTP version is malformed"};
  return {400, "the request is malformed"};
}

bool isOfTheParser(const error_code& error) {
  return error.category() == http::make_error_code(http::error::bad_method).category();
}

/// One read behind what is buffered.
Task<error_code> readMore(std::shared_ptr<Connection> connection) {
  auto& buffer = connection->buffer;
  error_code error;
  const auto spare = buffer.capacity() - buffer.size();
  const auto size = std::clamp(spare, kFirstReadBytes, kReadBytes);
  const auto bytes = co_await connection->stream.async_read_some(
      buffer.prepare(size), asio::redirect_error(asio::use_awaitable, error));
  buffer.commit(bytes);
  co_return error;
}

std::string_view bufferedOf(const Connection& connection) {
  const auto data = connection.buffer.data();
  return {static_cast<const char*>(data.data()), data.size()};
}

}  // namespace

bool ChargedBody::value_type::reserve(std::size_t size) {
  const auto now = bytes.capacity();
  if (size <= now) return true;
  const auto growth = declared_bytes > 0 ? std::min(2 * now, declared_bytes) : 2 * now;
  const auto wanted = std::max({size, growth, kFirstReadBytes});
  if (wanted > kFreeBodyBytes) {
    if (!charge) charge = std::make_shared<BodyCharge>(budget, client);
    if (!charge->grow(wanted - (now > kFreeBodyBytes ? now : 0))) return false;
  }
  bytes.reserve(wanted);
  return true;
}

Task<ReadFailure> readHead(std::shared_ptr<Connection> connection, RequestParser* parser,
                           ReadLimits limits) {
  auto& buffer = connection->buffer;
  HeadScanner scanner;
  connection->arm(limits.idle_timeout);
  bool begun = false;
  while (true) {
    if (const auto refusal = scanner.scan(bufferedOf(*connection)))
      co_return ReadFailure{{}, refusal};
    if (scanner.isComplete()) break;
    // A head that comes whole, as nearly all do, sets no deadline of its own.
    if (buffer.size() > 0 && !std::exchange(begun, true)) connection->arm(limits.head_timeout);
    if (const auto error = co_await readMore(connection)) co_return ReadFailure{error};
  }
  parser->header_limit(kHeadLimitBytes);
  parser->body_limit(boost::none);  // the route decides it
  error_code error;
  while (!error && !parser->is_header_done()) buffer.consume(parser->put(buffer.data(), error));
  if (error && !parser->is_header_done()) co_return ReadFailure{error, malformed(error)};
  co_return ReadFailure{{}, checkHead(parser->get().base())};
}

Task<ReadFailure> readBody(std::shared_ptr<Connection> connection, RequestParser* parser,
                           ReadLimits limits) {
  auto& buffer = connection->buffer;
  const auto began = std::chrono::steady_clock::now();
  std::uint64_t taken = 0;
  parser->eager(true);
  if (boost::beast::iequals(parser->get()[http::field::expect], "100-continue") &&
      !parser->is_done() && buffer.size() == 0) {
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    error_code error;
    connection->arm(limits.body_timeout);
    co_await asio::async_write(connection->stream, asio::buffer(kContinue),
                               asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return ReadFailure{error};
  }
  while (!parser->is_done()) {
    error_code error;
    const auto used = buffer.size() > 0 ? parser->put(buffer.data(), error) : 0;
    buffer.consume(used);
    taken += used;
    if (error == http::error::need_more) error = {};
    if (error && isOfTheParser(error))
      co_return ReadFailure{
          error, parser->get().body().over_budget
                     ? HeadRefusal{503, "no memory is free for this request; try again later"}
                     : malformed(error)};
    if (error) co_return ReadFailure{error};
    if (parser->is_done()) break;
    if (used > 0 && buffer.size() > 0) continue;
    if (buffer.size() > kChunkHeadBytes)
      co_return ReadFailure{{}, {400, "a chunk's size or a trailer is too long"}};
    // As long as it is taken at the lowest rate: a byte now and then does not move the deadline.
    using std::chrono::milliseconds;
    const auto until = began + limits.body_timeout +
                       milliseconds(taken * 1000 / std::max<std::size_t>(limits.min_body_rate, 1));
    connection->arm(
        std::max(std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now()),
                 milliseconds(0)));
    if (const auto failed = co_await readMore(connection)) co_return ReadFailure{failed};
  }
  co_return ReadFailure{};
}

Task<void> discardInput(std::shared_ptr<Connection> connection) {
  connection->arm(kDiscardLimit);
  connection->buffer.clear();
  error_code error;
  if (!connection->stream.tls())
    connection->stream.socket().shutdown(tcp::socket::shutdown_send, error);
  const auto window = std::make_unique<std::array<char, 16u << 10>>();
  for (std::size_t bytes = 0; !error && bytes < kDiscardBytes;)
    bytes += co_await connection->stream.async_read_some(
        asio::buffer(*window), asio::redirect_error(asio::use_awaitable, error));
}

}  // namespace muster::io
