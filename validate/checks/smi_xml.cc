// SPDX-License-Identifier: Apache-2.0
#include "validate/checks/smi_xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace muster::validate {
namespace {

// Sixteen GPUs of nvidia-smi 580 are some 1 MB, 15,000 elements, seven levels.
constexpr std::size_t kMaxBytes = 32u << 20, kMaxElements = 500'000, kMaxLevels = 16;
constexpr std::string_view kSpace = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string unescaped(std::string_view text) {
  struct Entity {
    std::string_view name;
    char character;
  };
  static constexpr std::array kEntities{Entity{"&amp;", '&'}, Entity{"&lt;", '<'},
                                        Entity{"&gt;", '>'}, Entity{"&quot;", '"'},
                                        Entity{"&apos;", '\''}};
  std::string out;
  while (!text.empty()) {
    const auto entity = std::find_if(kEntities.begin(), kEntities.end(), [text](const auto& each) {
      return text.starts_with(each.name);
    });
    out += entity == kEntities.end() ? text.front() : entity->character;
    text.remove_prefix(entity == kEntities.end() ? 1 : entity->name.size());
  }
  return out;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  Result<XmlElement> run() {
    const auto first = rest_.find('<');
    if (first == std::string_view::npos) return bad("it holds no element");
    rest_.remove_prefix(first);  // a line of warning may come before
    TRY_OK(skipProlog());
    TRY(root, element(1));
    TRY_OK(skipProlog());
    if (!trimmed(rest_).empty()) return bad("something follows the outermost element");
    return root;
  }

 private:
  static std::unexpected<Error> bad(const std::string& what) {
    return fail(ErrorCode::Corrupt, "the XML cannot be read: " + what);
  }

  /// Declarations, the document type, comments.
  Result<void> skipProlog() {
    for (;;) {
      const auto first = rest_.find_first_not_of(kSpace);
      rest_.remove_prefix(first == std::string_view::npos ? rest_.size() : first);
      if (!rest_.starts_with("<?") && !rest_.starts_with("<!")) return {};
      const auto end = rest_.starts_with("<!--") ? rest_.find("-->") : rest_.find('>');
      if (end == std::string_view::npos) return bad("it is cut off");
      rest_.remove_prefix(rest_.find('>', end) + 1);
    }
  }

  Result<XmlElement> element(std::size_t level) {
    if (level > kMaxLevels || ++elements_ > kMaxElements) return bad("it is too deep or too long");
    const auto end = rest_.find('>');
    if (!rest_.starts_with('<') || end == std::string_view::npos) return bad("it is cut off");
    auto tag = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    const bool empty = tag.ends_with('/');
    if (empty) tag.remove_suffix(1);
    XmlElement out;
    out.name = tag.substr(0, tag.find_first_of(kSpace));
    if (out.name.empty() || out.name.find_first_of("<>/\"'") != std::string::npos)
      return bad("an element without a name");
    if (const auto id = tag.find(" id="); id != std::string_view::npos && id + 6 <= tag.size())
      out.id = unescaped(tag.substr(id + 5, tag.find(tag[id + 4], id + 5) - id - 5));
    if (empty) return out;
    return content(std::move(out), level);
  }

  Result<XmlElement> content(XmlElement out, std::size_t level) {
    for (;;) {
      const auto next = rest_.find('<');
      if (next == std::string_view::npos) return bad(out.name + " is not closed");
      out.text += trimmed(rest_.substr(0, next));
      rest_.remove_prefix(next);
      if (rest_.starts_with("<!--")) {
        TRY_OK(skipProlog());
        continue;
      }
      if (rest_.starts_with("</")) {
        const auto end = rest_.find('>');
        if (end == std::string_view::npos || trimmed(rest_.substr(2, end - 2)) != out.name)
          return bad(out.name + " is closed by another element");
        rest_.remove_prefix(end + 1);
        out.text = unescaped(out.text);
        return out;
      }
      TRY(child, element(level + 1));
      out.children.push_back(std::move(child));
    }
  }

  std::string_view rest_;
  std::size_t elements_ = 0;
};

}  // namespace

const XmlElement* XmlElement::find(std::string_view path) const {
  const auto* at = this;
  while (at && !path.empty()) {
    const auto slash = std::min(path.find('/'), path.size());
    const auto name = path.substr(0, slash);
    const auto child = std::find_if(at->children.begin(), at->children.end(),
                                    [name](const auto& each) { return each.name == name; });
    at = child == at->children.end() ? nullptr : &*child;
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return at;
}

std::string_view XmlElement::textAt(std::string_view path) const {
  const auto* found = find(path);
  return found ? std::string_view(found->text) : std::string_view();
}

std::vector<const XmlElement*> XmlElement::all(std::string_view child_name) const {
  std::vector<const XmlElement*> out;
  for (const auto& child : children)
    if (child.name == child_name) out.push_back(&child);
  return out;
}

Result<XmlElement> parseSmiXml(std::string_view text) {
  if (text.size() > kMaxBytes)
    return fail(ErrorCode::Corrupt, "the XML cannot be read: it is too long");
  return Parser(text).run();
}

}  // namespace muster::validate
