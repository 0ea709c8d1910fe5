// SPDX-License-Identifier: Apache-2.0
// The templates of JSON and of strings, instantiated with optimization in every build. Programs
// link this object first, so that the linker takes its copies and not the unoptimized ones of
// preset dev (docs/adr/0286). In an optimized build they are what every object has.
#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <vector>

namespace {

using Json = nlohmann::json;
using View = nlohmann::detail::iterator_input_adapter<const char*>;
using Text = nlohmann::detail::iterator_input_adapter<std::string::const_iterator>;

}  // namespace

template class nlohmann::basic_json<>;
template class nlohmann::detail::serializer<Json>;
template class nlohmann::detail::lexer<Json, View>;
template class nlohmann::detail::lexer<Json, Text>;
template class nlohmann::detail::parser<Json, View>;
template class nlohmann::detail::parser<Json, Text>;
template class nlohmann::detail::json_sax_dom_parser<Json>;
template class nlohmann::detail::json_sax_dom_callback_parser<Json>;
template class std::basic_string<char>;
template class std::vector<char>;
template class std::vector<std::string>;
template class std::vector<Json>;
template class std::map<std::string, Json, std::less<>>;
