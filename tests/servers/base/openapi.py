# SPDX-License-Identifier: Apache-2.0
"""Requests and answers held against an OpenAPI 3.0 description."""
import json
import re
import urllib.parse

import jsonschema
import yaml

METHODS = ("get", "put", "post", "delete", "patch", "head")


def read(path):
    with open(path, encoding="utf-8") as file:
        return yaml.load(file, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def as_schema(node):
    """In place: OpenAPI's nullable, as JSON schema says it."""
    if isinstance(node, list):
        for item in node:
            as_schema(item)
    elif isinstance(node, dict):
        for item in node.values():
            as_schema(item)
        if node.pop("nullable", False) is True:
            rest = dict(node)
            node.clear()
            node["anyOf"] = [rest, {"type": "null"}]
    return node


class Contract:
    """@addition: paths and schema properties that a newer version has, laid over the description."""

    def __init__(self, path, addition=None):
        self.document = merge(read(path), addition or {})
        as_schema(self.document)
        self.resolver = jsonschema.RefResolver.from_schema(self.document)
        self.paths = [(re.compile(re.sub(r"\\{[^}]*\\}", "[^/]+", re.escape(path))), path.count("{"), path, item)
                      for path, item in self.document["paths"].items()]

    def resolve(self, node):
        while isinstance(node, dict) and "$ref" in node:
            node = self.resolver.resolve(node["$ref"])[1]
        return node

    def find(self, method, path):
        """(template, operation), or None. A path without parameters goes before one with them."""
        found = [(count, template, item) for pattern, count, template, item in self.paths if pattern.fullmatch(path)]
        for _, template, item in sorted(found, key=lambda one: one[0]):
            if method.lower() in item:
                return template, item
        return None

    def properties(self, schema):
        """Names that an object may have, None: any."""
        schema, names = self.resolve(schema), set()
        if schema.get("additionalProperties"):
            return None
        for key in ("allOf", "oneOf", "anyOf"):
            for part in schema.get(key, []):
                more = self.properties(part)
                if more is None:
                    return None
                names |= more
        if not names and "properties" not in schema and schema.get("type") != "null":
            return None
        return names | set(schema.get("properties", {}))

    def value(self, schema, value, where):
        validator = jsonschema.Draft4Validator(schema, resolver=self.resolver)
        faults = [f"{where}{''.join(f'[{part!r}]' for part in error.absolute_path)}: {error.message[:200]}"
                  for error in validator.iter_errors(value)]
        return faults + self.strange(schema, value, where)

    def strange(self, schema, value, where):
        """Members that no schema names: contracts leave them open, and who sends one believes in something."""
        schema = self.resolve(schema)
        if isinstance(value, list) and "items" in schema:
            return [fault for i, item in enumerate(value) for fault in self.strange(schema["items"], item, f"{where}[{i}]")]
        names = self.properties(schema) if isinstance(value, dict) else None
        return [] if names is None else [f"{where} has {key}, which the contract does not know" for key in set(value) - names]

    def request(self, method, target, headers, body):
        """What is wrong with a request. @body: bytes, or None where it is not looked at."""
        path, _, query = target.partition("?")
        found = self.find(method, path)
        if found is None:
            return [f"{method} {path} is in no contract"]
        template, item = found
        operation, where = item[method.lower()], f"{method} {template}"
        parameters = [self.resolve(one) for one in item.get("parameters", []) + operation.get("parameters", [])]
        faults = self.query(parameters, query, where)
        wanted = self.resolve(operation.get("requestBody", {}))
        kinds, kind = wanted.get("content", {}), headers.get("content-type", "").split(";")[0].strip().lower()
        if body is None:
            return faults
        if not body:
            return faults + ([f"{where} needs a body"] if wanted.get("required") else [])
        if kind not in kinds:
            return faults + [f"{where} has a body of {kind or 'no type'}, not of {' or '.join(kinds) or 'any'}"]
        if kind != "application/json":
            return faults
        try:
            return faults + self.value(kinds[kind]["schema"], json.loads(body), where)
        except ValueError as error:
            return faults + [f"{where}: {error}"]

    def query(self, parameters, query, where):
        known = {one["name"]: one for one in parameters if one["in"] == "query"}
        given = urllib.parse.parse_qsl(query, keep_blank_values=True)
        faults = [f"{where} has no parameter {name}" for name, _ in given if name not in known]
        faults += [f"{where} needs the parameter {name}" for name, one in known.items()
                   if one.get("required") and name not in dict(given)]
        for name, text in given:
            kind = known.get(name, {}).get("schema", {})
            if kind.get("type") == "integer":
                faults += self.value(kind, int(text) if text.lstrip("-").isdigit() else text, f"{where}?{name}")
        return faults

    def answer(self, method, target, status, headers, body):
        found = self.find(method, target.partition("?")[0])
        if found is None:
            return []
        template, item = found
        where, answers = f"{method} {template} -> {status}", item[method.lower()]["responses"]
        answer = self.resolve(answers.get(str(status), answers.get("default")))
        if answer is None:
            # Any request can be refused as malformed, which descriptions do not repeat everywhere.
            return [] if status in (400, 405) else [f"{where}: the contract has no such status"]
        schema = answer.get("content", {}).get("application/json", {}).get("schema")
        if schema is None or body is None or not headers.get("content-type", "").startswith("application/json"):
            return [] if schema is None or body is None else [f"{where}: the body is no JSON"]
        return self.value(schema, json.loads(body), where)


def merge(document, addition):
    """Dictionaries are merged, all else of @addition takes the place."""
    for key, value in addition.items():
        document[key] = merge(document[key], value) if isinstance(value, dict) and isinstance(document.get(key), dict) else value
    return document
