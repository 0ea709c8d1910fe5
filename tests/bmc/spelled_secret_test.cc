// SPDX-License-Identifier: Apache-2.0
// Spellings as other programs write them: those of Python's urllib, html and json are written out
// here (urllib.parse.quote, html.escape, json.dumps with ensure_ascii).
#include "bmc/spelled_secret.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace muster::bmc {
namespace {

constexpr std::string_view kSecret = "Ra\"ck%7 & <h\xc3\xa4ll>/2\\+'x";

std::string found(std::string_view text, std::string_view secret = kSecret) {
  const auto at = findSpelled(text, secret);
  return at ? std::string(text.substr(at->begin, at->end - at->begin)) : "(none)";
}

TEST(SpelledSecret, isFoundInEachSpelling) {
  for (const std::string& spelling : {
           // as it is
           std::string(kSecret),
           // quote(): and in lower case, and of everything
           std::string("Ra%22ck%257%20%26%20%3Ch%C3%A4ll%3E/2%5C%2B%27x"),
           std::string("Ra%22ck%257%20%26%20%3ch%c3%a4ll%3e%2f2%5c%2b%27x"),
           std::string("%52%61%22%63%6b%25%37%20%26%20%3c%68%c3%a4%6c%6c%3e%2f%32%5c%2b%27%78"),
           // quote_plus(), and quote() of quote()
           std::string("Ra%22ck%257+%26+%3Ch%C3%A4ll%3E%2F2%5C%2B%27x"),
           std::string("Ra%2522ck%25257%2520%2526%2520%253Ch%25C3%25A4ll%253E/2%255C%252B%2527x"),
           // html.escape(); names of HTML 5; numbers
           std::string("Ra&quot;ck%7 &amp; &lt;h\xc3\xa4ll&gt;/2\\+&#x27;x"),
           std::string("Ra&QUOT;ck&percnt;7 &AMP; &LT;h\xc3\xa4ll&GT;&sol;2&bsol;&plus;&apos;x"),
           std::string("Ra&#34;ck&#0037;7 &#38; &#60;h&#228;ll&#62;/2&#92;&#43;&#39;x"),
           std::string("Ra&#x22;ck&#X25;7 &#x26; &#x3c;h&#xe4;ll&#x3E;/2&#x5c;&#x2B;&#x27;x"),
           std::string("Ra&amp;quot;ck%7 &amp;amp; &amp;lt;h\xc3\xa4ll&amp;gt;/2\\+&amp;#x27;x"),
           // json.dumps(), with '/' escaped, all as \u, in either case, and JSON within JSON
           std::string("Ra\\\"ck%7 & <h\\u00e4ll>/2\\\\+'x"),
           std::string("Ra\\\"ck%7 & <h\\u00E4ll>\\/2\\\\+'x"),
           std::string("\\u0052a\\u0022ck\\u00257\\u0020\\u0026 \\u003ch\\u00e4ll\\u003E/2\\u005c+"
                       "\\u0027x"),
           std::string("Ra\\\\\\\"ck%7 & <h\\\\u00e4ll>/2\\\\\\\\+'x"),
           // a string of a program's source
           std::string("Ra\\x22ck%7 & <h\\xc3\\xa4ll>/2\\\\+\\'x"),
       }) {
    EXPECT_EQ(found("user=x&pw=" + spelling + "&more"), spelling);
    EXPECT_EQ(found(spelling), spelling) << "alone";
  }
  EXPECT_EQ(found("x \\ud83d\\ude00pass y", "\xf0\x9f\x98\x80pass"), "\\ud83d\\ude00pass");
}

TEST(SpelledSecret, isNotFoundWhereItIsNot) {
  for (const char* text :
       {"", "%", "&", "\\", "%2", "&#;", "&#x;", "&quot", "\\u", "\\u00", "\\x", "Ra", "Ra&quot;ck",
        "Ra%22ck%257%20%26%20%3Ch%C3%A4ll%3E/2%5C%2B%27", "&#99999999999999999999;", "\\ud83d",
        "\\ud83d\\u0041", "Ra\"ck%7 & <hall>/2\\+'x"})
    EXPECT_EQ(found(text), "(none)") << text;
  EXPECT_EQ(found("a%41", "aA"), "a%41");
  EXPECT_EQ(found("aa", "aA"), "(none)") << "letters keep their case";
}

TEST(SpelledSecret, fromAPlaceOn) {
  const std::string text = "secret-1 secret-1";
  const auto first = findSpelled(text, "secret-1"), second = findSpelled(text, "secret-1", 1);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->begin, 0u);
  EXPECT_EQ(second->begin, 9u);
  EXPECT_EQ(second->end, text.size());
}

TEST(SpelledSecret, aTextThatIsMadeToTakeLongTakesNone) {
  for (const std::string piece : {"%25", "&amp;", "\\", "a", "\\u0061"}) {
    std::string text;
    while (text.size() < 50'000) text += piece;
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(found(text, std::string(60, 'a') + "b"), "(none)");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30)) << piece;
  }
}

}  // namespace
}  // namespace muster::bmc
