#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds recorded answers against an OpenAPI description: usage: check_answers.py OPENAPI ANSWERS

ANSWERS has one JSON object a line: method, target, status, type, body. Each must be an answer that the description has for that path,
method and status, and its body must fit the schema, with no member that the schema does not name."""
import json
import re
import sys

from jsonschema import Draft202012Validator, FormatChecker, RefResolver


def closed(schema):
    """The same, where objects with named members have no others unless they say so."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema:
        out["additionalProperties"] = False
    return out


def operation_of(description, method, path):
    """The one whose template fits, a path without parameters first."""
    fits = [template for template in description["paths"]
            if re.fullmatch(re.sub(r"\{[^}]*\}", "[^/]+", template), path)]
    for template in sorted(fits, key=lambda template: template.count("{")):
        if method in description["paths"][template]:
            return description["paths"][template][method]
    return None


def problem_of(description, answer):
    method = "get" if answer["method"] == "HEAD" else answer["method"].lower()
    operation = operation_of(description, method, answer["target"].split("?")[0])
    status = answer["status"]
    media = answer["type"].split(";")[0]
    if status >= 400 and media == "application/problem+json":
        schema = {"$ref": "#/components/schemas/Problem"}
    elif operation is None:
        return None if status in (404, 405) else "the description has no such path and method"
    elif status == 304:
        return None
    else:
        response = operation["responses"].get(str(status))
        if response is None and status == 503:
            response = operation["responses"]["200"]
        if response is None:
            return f"the description has no status {status}"
        content = {key.split(";")[0]: value for key, value in response.get("content", {}).items()}
        if not content:
            return None if answer["body"] is None else "a body that the description does not have"
        if media not in content:
            return f"type {media} where the description has {', '.join(content)}"
        if not media.endswith("json") or answer["method"] == "HEAD":
            return None
        schema = content[media]["schema"]
    root = {"components": closed(description["components"])}
    validator = Draft202012Validator(closed(schema), resolver=RefResolver("", root), format_checker=FormatChecker())
    errors = [f"{'/'.join(map(str, error.absolute_path))}: {error.message}" for error in validator.iter_errors(answer["body"])]
    return "\n  ".join(errors[:10]) or None


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        description = json.load(file)
    bad = 0
    with open(sys.argv[2], encoding="utf-8") as file:
        for line in file:
            answer = json.loads(line)
            if problem := problem_of(description, answer):
                print(f"{answer['method']} {answer['target']} → {answer['status']}:\n  {problem}")
                bad = 1
    return bad


sys.exit(main())
