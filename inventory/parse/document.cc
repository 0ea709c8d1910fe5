// SPDX-License-Identifier: Apache-2.0
#include "inventory/parse/document.h"

#include "base/utf8.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <istream>
#include <map>
#include <streambuf>
#include <unordered_map>

namespace muster::inventory {

namespace {

constexpr std::size_t kMaxEncodingComplaints = 20;
constexpr std::size_t kIndexedMapSize = 16;  ///< from here on duplicate keys are found by hash

/// Thrown by the builder to stop yaml-cpp; caught in parseYaml.
struct Refused {
  int line, column;
  std::string text, suggestion;
};

/// Events → Value. A stack of open containers; a map alternates between key and value.
class Builder : public YAML::EventHandler {
 public:
  Builder(std::string_view source, const std::string& file, Diagnostics& diagnostics,
          std::vector<SourceRef>* quoting)
      : source_(source), file_(file), diagnostics_(diagnostics), quoting_(quoting) {
    line_starts_.push_back(0);
    for (std::size_t end = source.find('\n'); end != std::string_view::npos;
         end = source.find('\n', end + 1))
      line_starts_.push_back(end + 1);
  }

  std::optional<Value> take() { return std::move(root_); }
  int documents() const { return documents_; }
  YAML::Mark secondDocument() const { return second_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 2) second_ = mark;
    anchors_.clear();
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    leaf(make(Value::Kind::Null, mark), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    auto known = anchors_.find(anchor);
    if (known == anchors_.end())
      throw Refused{mark.line + 1, mark.column + 1, "an alias inside the value that it stands for",
                    "an anchored value cannot contain itself"};
    if (static_cast<int>(open_.size()) + known->second.depth > kMaxDocumentDepth) tooDeep(mark);
    count(known->second.size, mark.line + 1, mark.column + 1);
    Value copy = known->second.value;
    add(std::move(copy), known->second.size, known->second.depth);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    Value value = make(Value::Kind::Scalar, mark);
    value.style = tag == "?" ? Value::Style::Plain : Value::Style::Quoted;
    value.text = text;
    if (!tag.empty() && tag != "?" && tag != "!" && tag != "tag:yaml.org,2002:str")
      refuseTag(tag, mark);
    if (auto bad = std::find_if(text.begin(), text.end(),
                                [](unsigned char c) { return c < 0x20 || c == 0x7f; });
        bad != text.end())
      diagnostics_.error(at(value),
                         fmt::format("the text holds a control character (0x{:02x})",
                                     static_cast<unsigned char>(*bad)),
                         "write it on one line, without escapes");
    if (tag != "?" && !closedOnItsLine(mark))
      diagnostics_.error(at(value), "the quote is not closed on its line",
                         "close it; no text in an inventory spans lines");
    leaf(std::move(value), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(make(Value::Kind::List, mark), tag, anchor, mark);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(make(Value::Kind::Map, mark), tag, anchor, mark);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Value value;
    YAML::anchor_t anchor = 0;
    std::optional<Value> key;
    bool drop = false;  ///< the value to come belongs to a refused key
    std::unordered_map<std::string, std::size_t> index;  ///< keys of large maps
    std::size_t size = 1;                                ///< values inside, itself included
    int depth = 1;
  };
  struct Anchored {
    Value value;
    std::size_t size;
    int depth;
  };

  static Value make(Value::Kind kind, const YAML::Mark& mark) {
    Value value;
    value.kind = kind;
    value.line = mark.line + 1;
    value.column = mark.column + 1;
    return value;
  }

  SourceRef at(const Value& value) const { return {file_, value.line, value.column}; }

  /// yaml-cpp takes an unclosed quote as text up to the end of the file, silently: half the
  /// inventory could vanish in it.
  bool closedOnItsLine(const YAML::Mark& mark) const {
    if (mark.line < 0 || static_cast<std::size_t>(mark.line) >= line_starts_.size()) return true;
    std::string_view line = source_.substr(line_starts_[static_cast<std::size_t>(mark.line)]);
    line = line.substr(0, line.find('\n'));
    std::size_t i = static_cast<std::size_t>(std::max(mark.column, 0));
    while (i < line.size() && (line[i] == '&' || line[i] == '!'))
      i = line.find_first_not_of(' ', std::min(line.find(' ', i), line.size()));
    if (i >= line.size() || (line[i] != '"' && line[i] != '\'')) return true;  // a block scalar
    char quote = line[i];
    for (++i; i < line.size(); ++i) {
      if (quote == '"' && line[i] == '\\')
        ++i;
      else if (line[i] == quote && quote == '\'' && i + 1 < line.size() && line[i + 1] == quote)
        ++i;
      else if (line[i] == quote)
        return true;
    }
    return false;
  }

  void refuseTag(const std::string& tag, const YAML::Mark& mark) {
    if (quoting_) quoting_->push_back({file_, mark.line + 1, mark.column + 1});
    diagnostics_.error({file_, mark.line + 1, mark.column + 1},
                       fmt::format("the tag {} means nothing here", shorten(tag)), "remove it");
  }

  [[noreturn]] void tooDeep(const YAML::Mark& mark) const {
    throw Refused{mark.line + 1, mark.column + 1,
                  fmt::format("nested deeper than {} levels", kMaxDocumentDepth),
                  "no inventory is that deep"};
  }

  void count(std::size_t values, int line, int column) {
    values_ += values;
    if (values_ > kMaxDocumentValues)
      throw Refused{
          line, column,
          fmt::format("more than {} values (aliases count each time)", kMaxDocumentValues),
          "put the nodes into CSV files"};
  }

  void open(Value value, const std::string& tag, YAML::anchor_t anchor, const YAML::Mark& mark) {
    if (static_cast<int>(open_.size()) >= kMaxDocumentDepth) tooDeep(mark);
    if (tag != "?" && tag != "!" && !tag.empty()) refuseTag(tag, mark);
    count(1, value.line, value.column);
    Open next;
    next.value = std::move(value);
    next.anchor = anchor;
    open_.push_back(std::move(next));
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    if (done.anchor != 0)
      anchors_.insert_or_assign(done.anchor, Anchored{done.value, done.size, done.depth});
    add(std::move(done.value), done.size, done.depth);
  }

  void leaf(Value value, YAML::anchor_t anchor) {
    count(1, value.line, value.column);
    if (anchor != 0) anchors_.insert_or_assign(anchor, Anchored{value, 1, 1});
    add(std::move(value), 1, 1);
  }

  void add(Value value, std::size_t size, int depth) {
    if (open_.empty()) {
      if (documents_ <= 1) root_ = std::move(value);
      return;
    }
    Open& parent = open_.back();
    parent.size += size;
    parent.depth = std::max(parent.depth, depth + 1);
    if (parent.value.kind == Value::Kind::List) {
      parent.value.items.push_back(std::move(value));
    } else if (!parent.key) {
      addKey(parent, std::move(value));
    } else {
      if (value.kind == Value::Kind::Null)
        value.line = parent.key->line, value.column = parent.key->column;
      if (!parent.drop) parent.value.entries.push_back({std::move(*parent.key), std::move(value)});
      parent.key.reset();
      parent.drop = false;
    }
  }

  void addKey(Open& parent, Value key) {
    if (key.kind != Value::Kind::Scalar) {
      diagnostics_.error(at(key), fmt::format("a key must be text, and this is {}", key.describe()),
                         "write `key: value`");
      parent.drop = true;
    } else if (key.text == "<<" && key.style == Value::Style::Plain) {
      diagnostics_.error(at(key), "merge keys (<<) are not supported",
                         "say what nodes have in common in a profile");
      parent.drop = true;
    } else if (const Value* first = known(parent, key.text)) {
      diagnostics_.error(at(key), fmt::format("duplicate key \"{}\"", shorten(key.text)),
                         fmt::format("the first one is at {}:{}:{}; keep one of them", file_,
                                     first->line, first->column));
      parent.drop = true;
    } else if (!parent.index.empty()) {
      parent.index.emplace(key.text, parent.value.entries.size());
    }
    parent.key = std::move(key);
  }

  /// The key's earlier place in this map.
  static const Value* known(Open& parent, const std::string& text) {
    auto& entries = parent.value.entries;
    if (entries.size() < kIndexedMapSize) return parent.value.findKey(text);
    if (parent.index.empty())
      for (std::size_t i = 0; i < entries.size(); ++i)
        parent.index.emplace(entries[i].first.text, i);
    auto found = parent.index.find(text);
    return found == parent.index.end() ? nullptr : &entries[found->second].first;
  }

  std::string_view source_;
  std::vector<std::size_t> line_starts_;
  const std::string& file_;
  Diagnostics& diagnostics_;
  std::vector<SourceRef>* quoting_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  std::optional<Value> root_;
  std::size_t values_ = 0;
  int documents_ = 0;
  YAML::Mark second_;
};

/// Reads a string_view without a copy.
class ViewBuffer : public std::streambuf {
 public:
  explicit ViewBuffer(std::string_view text) {
    char* begin = const_cast<char*>(text.data());  // never written: there is no put area
    setg(begin, begin, begin + text.size());
  }
};

/// Tabs at the start of a line mean different things to different YAML readers: nobody's rack
/// should depend on that.
bool checkTabs(std::string_view text, const std::string& file, Diagnostics& diagnostics) {
  std::size_t found = 0;
  int line = 1;
  for (std::size_t begin = 0; begin < text.size() && found < kMaxEncodingComplaints; ++line) {
    std::size_t end = std::min(text.find('\n', begin), text.size());
    std::size_t ink = text.find_first_not_of(" \t\r", begin);
    std::size_t tab = text.substr(begin, std::min(ink, end) - begin).find('\t');
    if (tab != std::string_view::npos && ++found)
      diagnostics.error({file, line, static_cast<int>(tab) + 1}, "a tab in the indentation",
                        "indent with spaces");
    begin = end + 1;
  }
  return found == 0;
}

}  // namespace

const Value* Value::find(std::string_view key) const {
  for (const auto& [name, value] : entries)
    if (name.text == key) return &value;
  return nullptr;
}

const Value* Value::findKey(std::string_view key) const {
  for (const auto& [name, value] : entries)
    if (name.text == key) return &name;
  return nullptr;
}

std::string Value::describe() const {
  switch (kind) {
    case Kind::Null:
      return "empty";
    case Kind::List:
      return "a list";
    case Kind::Map:
      return "a mapping";
    case Kind::Scalar:
      break;
  }
  std::string shown = shorten(text);
  if (style == Style::Plain && looksLikeNumber(text)) return "the number " + shown;
  if (style == Style::Plain && looksLikeBoolean(text)) return "the boolean " + shown;
  return "the text \"" + shown + "\"";
}

std::string shorten(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0u) == 0x80u) --bytes;
  return std::string(text.substr(0, bytes)) + "…";
}

bool looksLikeBoolean(std::string_view text) {
  constexpr std::array<std::string_view, 6> kWords{"true",  "True",  "TRUE",
                                                   "false", "False", "FALSE"};
  return std::find(kWords.begin(), kWords.end(), text) != kWords.end();
}

bool looksLikeNumber(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  auto all = [](std::string_view part, std::string_view allowed) {
    return !part.empty() && part.find_first_not_of(allowed) == std::string_view::npos;
  };
  if (text.starts_with("0x")) return all(text.substr(2), "0123456789abcdefABCDEF");
  if (text.starts_with("0o")) return all(text.substr(2), "01234567");
  if (text == ".nan" || text == ".NaN" || text == ".NAN") return true;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  if (text == ".inf" || text == ".Inf" || text == ".INF") return true;
  std::size_t digits = std::min(text.find_first_not_of(kDigits), text.size());
  bool any = digits > 0;
  text.remove_prefix(digits);
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    digits = std::min(text.find_first_not_of(kDigits), text.size());
    any = any || digits > 0;
    text.remove_prefix(digits);
  }
  if (!any) return false;
  if (text.empty()) return true;
  if (text[0] != 'e' && text[0] != 'E') return false;
  text.remove_prefix(1);
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return all(text, kDigits);
}

namespace {

/// Length of the UTF-8 sequence at `at`, 0 when it is none. Overlong forms, surrogates and values
/// past U+10FFFF are none.
std::size_t utf8Length(std::string_view text, std::size_t at) {
  auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  auto tail = [&](std::size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
  unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return tail(1) ? 2 : 0;
  if (lead >= 0xe0 && lead < 0xf0) {
    if (!tail(1) || !tail(2)) return 0;
    if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) >= 0xa0)) return 0;
    return 3;
  }
  if (lead >= 0xf0 && lead < 0xf5) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if ((lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) >= 0x90)) return 0;
    return 4;
  }
  return 0;
}

}  // namespace

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool checkEncoding(std::string_view& text, const std::string& file, Diagnostics& diagnostics) {
  if (const auto wide = wideEncodingOf(text); !wide.empty()) {
    diagnostics.error({file, 1, 1}, fmt::format("the file is {}", wide),
                      fmt::format("save it as UTF-8, or: iconv -f {} -t UTF-8 {}", wide, file));
    return false;
  }
  while (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::size_t found = 0;
  int line = 1, column = 1;
  for (std::size_t i = 0; i < text.size() && found < kMaxEncodingComplaints;) {
    unsigned char c = static_cast<unsigned char>(text[i]);
    std::size_t length = utf8Length(text, i);
    if (length == 0) {
      ++found;
      diagnostics.error({file, line, column}, fmt::format("byte 0x{:02x} is not UTF-8", c),
                        "save the file as UTF-8");
    } else if (text.substr(i).starts_with(kByteOrderMark)) {
      ++found;
      diagnostics.error({file, line, column},
                        "a byte order mark (U+FEFF), which editors do not show",
                        "files were put behind each other: remove it, or save each of them as "
                        "UTF-8 without a BOM");
    } else if ((c < 0x20 && c != '\n' && c != '\t' &&
                !(c == '\r' && text.substr(i + 1, 1) == "\n")) ||
               c == 0x7f) {
      ++found;
      diagnostics.error({file, line, column}, fmt::format("control character 0x{:02x}", c),
                        "remove it");
    }
    if (c == '\n') {
      ++line;
      column = 1;
    } else {
      column += static_cast<int>(std::max<std::size_t>(length, 1));
    }
    i += std::max<std::size_t>(length, 1);
  }
  return found == 0;
}

std::optional<Value> parseYaml(std::string_view text, const std::string& file,
                               Diagnostics& diagnostics, std::vector<SourceRef>* quoting) {
  if (!checkEncoding(text, file, diagnostics)) return std::nullopt;
  if (!checkTabs(text, file, diagnostics)) return std::nullopt;
  Builder builder(text, file, diagnostics, quoting);
  try {
    ViewBuffer buffer(text);
    std::istream in(&buffer);
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(builder))
      if (builder.documents() > 1) break;
  } catch (const YAML::Exception& e) {
    diagnostics.error(
        {file, std::max(e.mark.line, 0) + 1, std::max(e.mark.column, 0) + 1},
        "not valid YAML: " + e.msg,
        "look at this line and the one before it: a quote, bracket, colon or indentation is wrong");
    return std::nullopt;
  } catch (const Refused& refused) {
    diagnostics.error({file, refused.line, refused.column}, refused.text, refused.suggestion);
    return std::nullopt;
  }
  if (builder.documents() > 1) {
    diagnostics.error(
        {file, builder.secondDocument().line + 1, builder.secondDocument().column + 1},
        "a second document (---) in the file",
        "one inventory is one document; remove the line with ---");
    return std::nullopt;
  }
  auto root = builder.take();
  if (!root || root->kind == Value::Kind::Null) {
    diagnostics.error({file, 1, 1}, "the file is empty", "start from examples/lab/cluster.yaml");
    return std::nullopt;
  }
  return root;
}

}  // namespace muster::inventory
