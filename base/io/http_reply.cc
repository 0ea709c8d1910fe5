// SPDX-License-Identifier: Apache-2.0
// Answers: small ones in one packet, files in bounded pieces, each piece with a deadline.
#include "base/io/http_reply.h"

#include "base/io/files.h"
#include "base/io/http_range.h"
#include "base/log.h"

#include <fmt/format.h>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

namespace muster::io {

namespace http = boost::beast::http;

void Reply::armForNextPiece() {
  using std::chrono::milliseconds;
  const auto now = std::chrono::steady_clock::now();
  const auto in_all =
      idle_timeout + milliseconds(sent_bytes * 1000 / std::max<std::size_t>(min_rate, 1));
  const auto left = std::chrono::ceil<milliseconds>(began + in_all - now);
  connection->arm(std::clamp<milliseconds>(left, milliseconds(0), idle_timeout));
}

namespace {

constexpr std::size_t kFilePieceBytes = 1u << 20;
constexpr std::size_t kTlsPieceBytes = 128u << 10;
constexpr std::size_t kSmallBodyBytes = 6u << 10;

template <class Body>
http::response<Body> begin(const Reply& reply, int status, const Headers& headers,
                           std::uint64_t content_length) {
  http::response<Body> message(static_cast<http::status>(status), 11);
  for (const auto& [name, value] : headers) message.set(name, value);
  message.set(http::field::server, "muster");
  message.keep_alive(reply.keep_alive);
  const bool bodiless = status / 100 == 1 || status == 204 || status == 304;
  if (!bodiless) message.content_length(content_length);
  return message;
}

/// Head and body in one piece: one packet, one TLS record.
Task<error_code> writeSmall(Reply* reply, int status, Headers headers, std::string body) {
  auto message = begin<http::string_body>(*reply, status, headers, body.size());
  message.body() = std::move(body);
  reply->armForNextPiece();
  error_code error;
  co_await http::async_write(reply->connection->stream, message,
                             asio::redirect_error(asio::use_awaitable, error));
  co_return error;
}

Task<error_code> writeHead(Reply* reply, int status, Headers headers,
                           std::uint64_t content_length) {
  auto message = begin<http::empty_body>(*reply, status, headers, content_length);
  http::response_serializer<http::empty_body> serializer(message);
  reply->armForNextPiece();
  error_code error;
  co_await http::async_write_header(reply->connection->stream, serializer,
                                    asio::redirect_error(asio::use_awaitable, error));
  co_return error;
}

/// In pieces, so that the deadline is for a stall and not for the whole.
Task<error_code> sendMemory(Reply* reply, std::string_view rest) {
  error_code error;
  while (!rest.empty() && !error) {
    reply->armForNextPiece();
    const auto piece = rest.substr(0, kFilePieceBytes);
    co_await asio::async_write(reply->connection->stream, asio::buffer(piece),
                               asio::redirect_error(asio::use_awaitable, error));
    reply->sent_bytes += piece.size();
    rest.remove_prefix(piece.size());
  }
  co_return error;
}

Task<error_code> writeText(Reply* reply, int status, Headers headers, std::string body) {
  if (!reply->head_only && body.size() <= kSmallBodyBytes) {
    co_return co_await writeSmall(reply, status, std::move(headers), std::move(body));
  }
  error_code error = co_await writeHead(reply, status, std::move(headers), body.size());
  if (error || reply->head_only) co_return error;
  co_return co_await sendMemory(reply, body);
}

/// Plain connections: the kernel copies from the page cache to the socket.
Task<error_code> sendPlain(Reply* reply, int fd, Piece piece) {
  auto& socket = reply->connection->stream.socket();
  error_code error;
  socket.native_non_blocking(true, error);
  auto offset = static_cast<off_t>(piece.offset);
  auto executor = co_await asio::this_coro::executor;
  while (piece.length > 0) {
    reply->armForNextPiece();
    const auto n = ::sendfile(socket.native_handle(), fd, &offset,
                              std::min<std::uint64_t>(piece.length, kFilePieceBytes));
    if (n == 0) co_return asio::error::eof;  // the file became shorter
    if (n < 0 && errno != EAGAIN && errno != EINTR)
      co_return error_code(errno, boost::system::system_category());
    if (n > 0) {
      piece.length -= static_cast<std::uint64_t>(n);
      reply->sent_bytes += static_cast<std::uint64_t>(n);
      co_await asio::post(executor, asio::use_awaitable);  // others have their turn between pieces
      continue;
    }
    co_await socket.async_wait(tcp::socket::wait_write,
                               asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return error;
  }
  co_return error_code();
}

Task<error_code> sendEncrypted(Reply* reply, int fd, Piece piece) {
  std::string window(std::min<std::uint64_t>(piece.length, kTlsPieceBytes), '\0');
  error_code error;
  while (piece.length > 0 && !error) {
    const auto n = ::pread(fd, window.data(), std::min<std::uint64_t>(piece.length, window.size()),
                           static_cast<off_t>(piece.offset));
    if (n == 0) co_return asio::error::eof;
    if (n < 0) co_return error_code(errno, boost::system::system_category());
    reply->armForNextPiece();
    co_await asio::async_write(reply->connection->stream,
                               asio::buffer(window.data(), static_cast<std::size_t>(n)),
                               asio::redirect_error(asio::use_awaitable, error));
    reply->sent_bytes += static_cast<std::uint64_t>(n);
    piece.offset += static_cast<std::uint64_t>(n);
    piece.length -= static_cast<std::uint64_t>(n);
  }
  co_return error;
}

Task<error_code> sendFile(Reply* reply, int fd, Piece piece) {
  if (piece.length == 0) co_return error_code();
  co_return co_await (reply->connection->stream.tls() ? sendEncrypted(reply, fd, piece)
                                                      : sendPlain(reply, fd, piece));
}

/// What of the piece lies before the overlay, in it, and behind it.
Task<error_code> sendOverlaid(Reply* reply, int fd, Piece piece,
                              std::shared_ptr<const FileOverlay> overlay) {
  const auto end = piece.offset + piece.length,
             from = std::clamp(overlay->offset, piece.offset, end),
             to = std::clamp(overlay->offset + overlay->bytes.size(), from, end);
  error_code error = co_await sendFile(reply, fd, {piece.offset, from - piece.offset});
  if (!error && to > from)
    error = co_await sendMemory(
        reply, std::string_view(overlay->bytes).substr(from - overlay->offset, to - from));
  if (error) co_return error;
  co_return co_await sendFile(reply, fd, {to, end - to});
}

Task<error_code> writeFile(Reply* reply, int status, Headers headers, FileBody body) {
  Fd fd(::open(body.path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info{};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    co_return co_await writeText(reply, 404, Headers(), "not found\n");
  }
  const auto size = static_cast<std::uint64_t>(info.st_size);
  Piece piece{0, size};
  headers["Accept-Ranges"] = "bytes";
  const auto kind = status == 200 ? rangeOf(reply->range, size, piece) : RangeKind::Whole;
  if (kind == RangeKind::Unsatisfiable) {
    headers["Content-Range"] = fmt::format("bytes */{}", size);
    co_return co_await writeText(reply, 416, std::move(headers), std::string());
  }
  if (kind == RangeKind::Part) {
    status = 206;
    headers["Content-Range"] =
        fmt::format("bytes {}-{}/{}", piece.offset, piece.offset + piece.length - 1, size);
  }
  const error_code error = co_await writeHead(reply, status, std::move(headers), piece.length);
  if (error || reply->head_only) co_return error;
  if (body.overlay) co_return co_await sendOverlaid(reply, fd.get(), piece, body.overlay);
  co_return co_await sendFile(reply, fd.get(), piece);
}

/// The next piece, or none: at the end, and where making it failed.
Task<std::optional<std::string>> nextPiece(const StreamBody* body, bool* broken) {
  try {
    co_return co_await body->next();
  } catch (const boost::system::system_error& e) {
    if (e.code() == asio::error::operation_aborted) throw;
    logText(LogLevel::Error, "http", std::string("a stream threw: ") + e.what());
  } catch (const std::exception& e) {
    logText(LogLevel::Error, "http", std::string("a stream threw: ") + e.what());
  }
  *broken = true;  // its end must not look like a whole body's
  co_return std::nullopt;
}

Task<error_code> writeStream(Reply* reply, int status, Headers headers, StreamBody body) {
  http::response<http::empty_body> message(static_cast<http::status>(status),
                                           reply->is_http_10 ? 10 : 11);
  for (const auto& [name, value] : headers) message.set(name, value);
  message.set(http::field::server, "muster");
  reply->keep_alive = reply->keep_alive && !reply->is_http_10;
  message.keep_alive(reply->keep_alive);
  if (!reply->is_http_10) message.chunked(true);
  http::response_serializer<http::empty_body> serializer(message);
  auto& stream = reply->connection->stream;
  error_code error;
  reply->connection->arm(body.piece_timeout);
  co_await http::async_write_header(stream, serializer,
                                    asio::redirect_error(asio::use_awaitable, error));
  bool broken = false;
  while (!error && !reply->head_only) {
    reply->connection->lift();
    auto piece = co_await nextPiece(&body, &broken);
    if (broken) co_return asio::error::eof;
    if (piece && piece->empty()) continue;
    if (!piece && reply->is_http_10) break;
    auto bytes = reply->is_http_10 ? std::move(*piece)
                 : piece           ? fmt::format("{:x}\r\n{}\r\n", piece->size(), *piece)
                                   : std::string("0\r\n\r\n");
    reply->connection->arm(body.piece_timeout);
    co_await asio::async_write(stream, asio::buffer(bytes),
                               asio::redirect_error(asio::use_awaitable, error));
    if (!piece) break;
  }
  co_return error;
}

}  // namespace

Task<error_code> writeReply(Reply* reply, ServerResponse response) {
  if (auto* stream = std::get_if<StreamBody>(&response.body))
    co_return co_await writeStream(reply, response.status, std::move(response.headers),
                                   std::move(*stream));
  co_return co_await (std::holds_alternative<FileBody>(response.body)
                          ? writeFile(reply, response.status, std::move(response.headers),
                                      std::get<FileBody>(std::move(response.body)))
                          : writeText(reply, response.status, std::move(response.headers),
                                      std::get<std::string>(std::move(response.body))));
}

}  // namespace muster::io
