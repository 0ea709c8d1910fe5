#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A person at a browser: opens an address, follows it wherever it leads, fills in forms as NAME, until there is no form left.

  person.py CA_FILE NAME URL [THEN…]    JSON: {"url", "status", "body", "chain": [Location…], "cookies": {…}, "then": [{"status", "body"}…]}
"""
import html, http.cookiejar, json, re, ssl, sys, urllib.error, urllib.parse, urllib.request

ca, name, url, *then = sys.argv[1:]
chain = []


class Redirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, request, fp, code, message, headers, new_url):
        chain.append(headers.get("Location"))
        return super().redirect_request(request, fp, code, message, headers, new_url)


cookies = http.cookiejar.CookieJar()
opener = urllib.request.build_opener(Redirects, urllib.request.HTTPCookieProcessor(cookies),
                                     urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=ca)))


def visit(request):
    try:
        answer = opener.open(request, timeout=20)
    except urllib.error.HTTPError as refusal:
        answer = refusal
    return answer.geturl(), answer.status, answer.read().decode("utf-8", "replace")


def attribute(tag, what):
    found = re.search(r'\b%s="([^"]*)"' % what, tag)
    return html.unescape(found.group(1)) if found else None


def filled(page_url, page):
    form = re.search(r"<form\b([^>]*)>(.*?)</form>", page, re.S)
    if not form:
        return None
    values = {}
    for tag in re.findall(r"<(?:input|button)\b[^>]*>", form.group(2)):
        field = attribute(tag, "name")
        if field and field != "abort":
            values[field] = {"login": name, "password": "x"}.get(field, attribute(tag, "value") or "")
    outside = re.search(r'<button\b[^>]*\bform="[^"]*"[^>]*>', page)
    where = urllib.parse.urljoin(page_url, attribute(form.group(1), "action") or "")
    return urllib.request.Request(where, urllib.parse.urlencode(values).encode())


at, status, body = visit(url)
for _ in range(12):
    request = filled(at, body)
    if request is None or status >= 400:
        break
    at, status, body = visit(request)
out = {"url": at, "status": status, "body": body[:4000], "chain": chain, "cookies": {c.name: c.value for c in cookies}, "then": []}
for each in then:
    _, said, text = visit(each)
    out["then"].append({"status": said, "body": text})
print(json.dumps(out))
