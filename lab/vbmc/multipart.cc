// SPDX-License-Identifier: Apache-2.0
#include "lab/vbmc/multipart.h"

namespace muster::lab::vbmc {

namespace {

constexpr std::size_t kMaxParts = 8;

/// The value of `key="value"` or `key=value` in a header.
std::string parameterOf(std::string_view header, std::string_view key) {
  for (auto at = header.find(key); at != std::string_view::npos; at = header.find(key, at + 1)) {
    auto before = at == 0 ? ' ' : header[at - 1];
    auto value = header.substr(at + key.size());
    if ((before != ' ' && before != ';') || !value.starts_with('=')) continue;
    value.remove_prefix(1);
    if (value.starts_with('"')) return std::string(value.substr(1, value.find('"', 1) - 1));
    return std::string(value.substr(0, value.find_first_of("; \r\n")));
  }
  return {};
}

}  // namespace

Result<std::map<std::string, std::string_view>> splitMultipart(std::string_view content_type,
                                                               std::string_view body) {
  auto boundary = parameterOf(content_type, "boundary");
  if (!content_type.starts_with("multipart/form-data") || boundary.empty())
    return fail(ErrorCode::InvalidInput, "the request is not multipart/form-data with a boundary");
  std::string delimiter = "--" + boundary;
  std::map<std::string, std::string_view> parts;
  auto at = body.find(delimiter);
  for (std::size_t count = 0; count < kMaxParts && at != std::string_view::npos; ++count) {
    auto rest = body.substr(at + delimiter.size());
    if (rest.starts_with("--")) return parts;
    auto header_end = rest.find("\r\n\r\n");
    auto next = header_end == std::string_view::npos
                    ? header_end
                    : rest.find("\r\n" + delimiter, header_end + 2);
    if (next == std::string_view::npos)
      return fail(ErrorCode::InvalidInput, "a part of the multipart body has no end");
    auto begin = header_end + 4;
    auto content = next >= begin ? rest.substr(begin, next - begin) : std::string_view();
    parts[parameterOf(rest.substr(0, header_end), "name")] = content;
    at = body.size() - rest.size() + next + 2;
  }
  return fail(ErrorCode::InvalidInput, "the multipart body has no end");
}

}  // namespace muster::lab::vbmc
