# SPDX-License-Identifier: Apache-2.0
"""Lists of the control plane: filters, order, pages."""
import base64
import binascii
import urllib.parse

from base import wire
from base.service import Problem
from control.sandboxes import rfc3339


def number(query, name, default, low, high):
    text = query.get(name)
    if text is None:
        return default
    if not text.lstrip("-").isdigit() or not low <= int(text) <= high:
        raise Problem(400, f"validation error: {name} must be a number from {low} to {high}: {text}")
    return int(text)


def metadata_filter(text):
    """Pairs of a query in a query, each key and value encoded once more."""
    pairs = urllib.parse.parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text))
    return {urllib.parse.unquote(key): urllib.parse.unquote(value) for key, value in pairs}


def matches(item, wanted):
    return all(item.metadata.get(key) == value for key, value in wanted.items())


def cursor_of(item, order):
    text = f"{item.started!r}__{item.id}" + ("__asc" if order == "asc" else "")
    return base64.urlsafe_b64encode(text.encode()).decode()


def read_cursor(text, order):
    try:
        parts = base64.urlsafe_b64decode(text).decode().split("__")
        at = (float(parts[0]), parts[1])
    except (binascii.Error, ValueError, IndexError):
        raise Problem(400, "validation error: invalid next token") from None
    if (len(parts) == 3) != (order == "asc"):
        raise Problem(400, "validation error: the next token belongs to another order")
    return at


def page(items, query, order="desc"):
    """The page that a query asks for, and its headers. Order: by time, then id ascending; asc is its exact reverse."""
    limit = number(query, "limit", 100, 1, 100)
    items = sorted(items, key=lambda item: (-item.started, item.id))
    if order == "asc":
        items.reverse()
    if query.get("nextToken"):
        started, name = read_cursor(query["nextToken"], order)
        mark = (-started, name)
        items = [item for item in items
                 if ((-item.started, item.id) < mark if order == "asc" else (-item.started, item.id) > mark)]
    more = len(items) > limit
    return items[:limit], {"X-Next-Token": cursor_of(items[limit - 1], order)} if more else {}


def list_sandboxes(sandboxes, query, describe):
    """GET /v2/sandboxes."""
    states = [word for word in query.get("state", "running,paused").split(",") if word]
    order = query.get("order", "desc")
    if set(states) - {"running", "paused"} or order not in ("asc", "desc"):
        raise Problem(400, "validation error: state and order have other values")
    try:
        wanted = metadata_filter(query.get("metadata", ""))
    except ValueError:
        raise Problem(400, "validation error: metadata is no query string") from None
    if ":" in query.get("template", ""):
        raise Problem(400, "validation error: template may not have a tag")
    known = [one for one in sandboxes if one.state in ("running", "paused") and one.move != "killing"]
    items = [one for one in known if matches(one, wanted) and state_of(one) in states
             and query.get("template", one.template.id) in (one.template.id, *one.template.names)
             and rfc3339(one.started) >= query.get("startedAfter", "")]
    items, headers = page(items, query, order)
    if "running" in states:
        headers["X-Total-Running"] = str(sum(state_of(one) == "running" and matches(one, wanted) for one in known))
    return wire.json_answer(200, [describe(one) for one in items], headers)


def state_of(sandbox):
    return "paused" if sandbox.move == "pausing" else sandbox.state
