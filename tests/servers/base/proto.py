# SPDX-License-Identifier: Apache-2.0
"""Protocol buffers from a .proto file, as much of the language as the contracts here use.

load() gives messages and services. check() holds a JSON message (proto3's JSON mapping) against its type strictly, as a
contract does: unknown fields, wrong types and two members of one oneof are faults. encode() and decode() are the binary form.
"""
import base64
import binascii
import datetime
import re
import struct

SCALARS = {"string", "bytes", "bool", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "double"}
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"[^"]*"|[A-Za-z_][\w.]*|\d+|[{}=;<>,()]', re.S)


class Field:
    def __init__(self, name, kind, number, repeated=False, oneof=None, key=None):
        self.name, self.kind, self.number, self.repeated, self.oneof, self.key = name, kind, number, repeated, oneof, key
        first, *rest = name.split("_")
        self.json = first + "".join(word.capitalize() for word in rest)


class Message:
    def __init__(self, name):
        self.name, self.fields = name, []

    def by_json(self):
        return {field.json: field for field in self.fields} | {field.name: field for field in self.fields}


class Schema:
    """messages: by full name; enums: {name: {member: number}}; methods: {"package.Service/Method": (in, out, in streams, out streams)}"""

    def __init__(self):
        self.messages, self.enums, self.methods = {}, {}, {}

    def find(self, scope, name):
        """A type as it is seen from the message @scope."""
        while True:
            full = f"{scope}.{name}" if scope else name
            if full in self.messages or full in self.enums:
                return full
            if not scope:
                return name
            scope = scope.rpartition(".")[0]


def load(text):
    words = [word for word in TOKEN.findall(text) if not word.startswith(("//", "/*"))]
    schema, package, i = Schema(), "", 0
    while i < len(words):
        if words[i] == "package":
            package = words[i + 1]
            i += 3
        elif words[i] in ("message", "enum", "service"):
            i = BLOCKS[words[i]](schema, package, words, i + 1)
        else:
            i = words.index(";", i) + 1
    resolve(schema)
    return schema


def load_enum(schema, scope, words, i):
    members, name = {}, f"{scope}.{words[i]}" if scope else words[i]
    i += 2
    while words[i] != "}":
        members[words[i]] = int(words[i + 2])
        i += 4
    schema.enums[name] = members
    return i + 1


def load_service(schema, package, words, i):
    service = f"{package}.{words[i]}"
    i += 2
    while words[i] != "}":
        sides, method = [], words[i + 1]
        i += 2
        for _ in range(2):
            i += words[i] == "returns"
            streams = words[i + 1] == "stream"
            sides.append((f"{package}.{words[i + 1 + streams]}", streams))
            i += 3 + streams
        i += 1
        schema.methods[f"{service}/{method}"] = (sides[0][0], sides[1][0], sides[0][1], sides[1][1])
    return i + 1


def load_message(schema, scope, words, i):
    message = Message(f"{scope}.{words[i]}" if scope else words[i])
    schema.messages[message.name] = message
    i, oneof = i + 2, None
    while words[i] != "}" or oneof:
        if words[i] == "}":
            oneof, i = None, i + 1
        elif words[i] in ("message", "enum"):
            i = BLOCKS[words[i]](schema, message.name, words, i + 1)
        elif words[i] == "oneof":
            oneof, i = words[i + 1], i + 3
        else:
            i = load_field(message, words, i, oneof)
    return i + 1


def load_field(message, words, i, oneof):
    label = words[i] if words[i] in ("optional", "repeated") else None
    i += label is not None
    if words[i] == "map":
        message.fields.append(Field(words[i + 6], words[i + 4], int(words[i + 8]), True, None, words[i + 2]))
        return i + 10
    message.fields.append(Field(words[i + 1], words[i], int(words[i + 3]), label == "repeated", oneof))
    return i + 5


BLOCKS = {"message": load_message, "enum": load_enum, "service": load_service}


def resolve(schema):
    for message in schema.messages.values():
        for field in message.fields:
            if field.kind not in SCALARS:
                field.kind = schema.find(message.name, field.kind)


# ---- JSON ----

def check(schema, name, value, where=""):
    """What is wrong with a JSON message, as sentences."""
    where = where or name
    if not isinstance(value, dict):
        return [f"{where} is no object"]
    fields, faults, oneofs = schema.messages[name].by_json(), [], {}
    for key, item in value.items():
        field = fields.get(key)
        if field is None:
            faults.append(f"{where} has no field {key}")
            continue
        if field.oneof:
            oneofs.setdefault(field.oneof, []).append(key)
        faults += check_field(schema, field, item, f"{where}.{key}")
    return faults + [f"{where} has {' and '.join(keys)} of one {oneof}" for oneof, keys in oneofs.items() if len(keys) > 1]


def check_field(schema, field, value, where):
    if field.key:
        if not isinstance(value, dict):
            return [f"{where} is no map"]
        return [fault for key, item in value.items() for fault in check_one(schema, field.kind, item, f"{where}[{key}]")]
    if field.repeated:
        if not isinstance(value, list):
            return [f"{where} is no list"]
        return [fault for i, item in enumerate(value) for fault in check_one(schema, field.kind, item, f"{where}[{i}]")]
    return check_one(schema, field.kind, value, where)


def is_int(value, low, high):
    if isinstance(value, str) and re.fullmatch(r"-?\d+", value):
        value = int(value)
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def is_base64(value):
    try:
        return isinstance(value, str) and base64.b64decode(value, validate=True) is not None
    except binascii.Error:
        return False


CHECKS = {
    "string": lambda value: isinstance(value, str),
    "bool": lambda value: isinstance(value, bool),
    "bytes": is_base64,
    "int32": lambda value: is_int(value, -(1 << 31), (1 << 31) - 1),
    "sint32": lambda value: is_int(value, -(1 << 31), (1 << 31) - 1),
    "uint32": lambda value: is_int(value, 0, (1 << 32) - 1),
    "int64": lambda value: is_int(value, -(1 << 63), (1 << 63) - 1),
    "uint64": lambda value: is_int(value, 0, (1 << 64) - 1),
    "google.protobuf.Timestamp": lambda value: isinstance(value, str)
    and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.(\d{3}|\d{6}|\d{9}))?Z", value) is not None,
}


def check_one(schema, kind, value, where):
    if kind in CHECKS:
        return [] if CHECKS[kind](value) else [f"{where} is no {kind}: {str(value)[:60]}"]
    if kind in schema.enums:
        members = schema.enums[kind]
        return [] if value in members or value in members.values() else [f"{where} is no {kind}: {value}"]
    return check(schema, kind, value, where)


# ---- binary ----

def put_varint(number):
    out = bytearray()
    number &= (1 << 64) - 1
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def get_varint(data, i):
    number = shift = 0
    while True:
        if i >= len(data) or shift > 63:
            raise ValueError("a number is cut off")
        number |= (data[i] & 0x7F) << shift
        shift, i = shift + 7, i + 1
        if not data[i - 1] & 0x80:
            return number, i


def delimited(number, data):
    return put_varint(number << 3 | 2) + put_varint(len(data)) + data


def encode(schema, name, value):
    """The binary form of a JSON message."""
    fields = schema.messages[name].by_json()
    out = b""
    for key, item in value.items():
        field = fields[key]
        if field.key:
            for k, v in item.items():
                pair = delimited(1, k.encode()) + encode_one(schema, field.kind, 2, v)
                out += delimited(field.number, pair)
        else:
            for one in item if field.repeated else [item]:
                out += encode_one(schema, field.kind, field.number, one)
    return out


def encode_time(text):
    whole, _, rest = text.rstrip("Z").partition(".")
    moment = datetime.datetime.strptime(whole, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=datetime.timezone.utc)
    nanos = int((rest + "000000000")[:9])
    return b"\x08" + put_varint(int(moment.timestamp())) + (b"\x10" + put_varint(nanos) if nanos else b"")


def decode_time(data):
    parts, i = {1: 0, 2: 0}, 0
    while i < len(data):
        tag, i = get_varint(data, i)
        parts[tag >> 3], i = get_varint(data, i)
    text = datetime.datetime.fromtimestamp(parts[1], datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    return text + (f".{parts[2]:09d}Z" if parts[2] else "Z")


def encode_one(schema, kind, number, value):
    if kind == "string":
        return delimited(number, value.encode())
    if kind == "bytes":
        return delimited(number, base64.b64decode(value))
    if kind == "google.protobuf.Timestamp":
        return delimited(number, encode_time(value))
    if kind == "double":
        return put_varint(number << 3 | 1) + struct.pack("<d", value)
    if kind in schema.messages:
        return delimited(number, encode(schema, kind, value))
    if kind in schema.enums:
        value = schema.enums[kind].get(value, value)
    value = int(value)
    if kind.startswith("sint"):
        value = value << 1 ^ value >> 63
    return put_varint(number << 3) + put_varint(value)


def decode(schema, name, data):
    """The JSON form of a binary message; ValueError: it is none."""
    numbers, value, i = {field.number: field for field in schema.messages[name].fields}, {}, 0
    while i < len(data):
        tag, i = get_varint(data, i)
        raw, i = get_raw(data, i, tag & 7)
        field = numbers.get(tag >> 3)
        if field is None:
            continue
        if field.key:
            key, item = decode_pair(schema, field, raw)
            value.setdefault(field.json, {})[key] = item
        elif field.repeated:
            value.setdefault(field.json, []).append(decode_one(schema, field.kind, raw))
        else:
            value[field.json] = decode_one(schema, field.kind, raw)
    return value


def get_raw(data, i, wire):
    if wire == 0:
        return get_varint(data, i)
    size = {1: 8, 5: 4}.get(wire)
    if wire == 2:
        size, i = get_varint(data, i)
    if size is None or i + size > len(data):
        raise ValueError("a field is cut off")
    return data[i:i + size], i + size


def decode_pair(schema, field, raw):
    pair, i = {1: b"", 2: b""}, 0
    while i < len(raw):
        tag, i = get_varint(raw, i)
        pair[tag >> 3], i = get_raw(raw, i, tag & 7)
    return pair[1].decode(), decode_one(schema, field.kind, pair[2])


def decode_one(schema, kind, raw):
    if kind in ("string", "bytes") or kind in schema.messages:
        if isinstance(raw, int):
            raise ValueError(f"a number where {kind} is expected")
        if kind == "string":
            return raw.decode()
        return base64.b64encode(raw).decode() if kind == "bytes" else decode(schema, kind, raw)
    if kind == "google.protobuf.Timestamp" and isinstance(raw, bytes):
        return decode_time(raw)
    if not isinstance(raw, int):
        raise ValueError(f"no number where {kind} is expected")
    if kind == "bool":
        return bool(raw)
    if kind.startswith("sint"):
        return raw >> 1 ^ -(raw & 1)
    if kind in schema.enums:
        return next((member for member, number in schema.enums[kind].items() if number == raw), raw)
    return raw
