#!/usr/bin/env python3
"""Continues a text with a model, through libhearth and nothing but ctypes.

    python3 complete.py model.gguf "Once upon a time"

Without a model the small one inside the library is used. HEARTH_LIBRARY says
where the library is; else the system finds libhearth.so.1.
"""
import ctypes
import os
import sys
from ctypes import POINTER, byref, c_char_p, c_double, c_int32, c_size_t, c_void_p

OK, BUFFER_TOO_SMALL = 0, 10


class Logprob(ctypes.Structure):
    _fields_ = [("id", c_int32), ("logprob", c_double)]


class Token(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("id", c_int32), ("text", c_char_p),
                ("text_bytes", c_size_t), ("logprob", c_double),
                ("top", POINTER(Logprob)), ("n_top", c_size_t)]


class SyncReport(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("prompt_tokens", c_int32),
                ("reused_tokens", c_int32), ("reuse_tier", c_char_p),
                ("miss_reason", c_char_p), ("warnings", c_char_p),
                ("lookup_ms", c_double), ("prefill_ms", c_double)]


OnToken = ctypes.CFUNCTYPE(c_int32, POINTER(Token), c_void_p)

lib = ctypes.CDLL(os.environ.get("HEARTH_LIBRARY", "libhearth.so.1"))
lib.hearth_last_error.restype = c_char_p
Handle, Ids, Place = c_void_p, POINTER(c_int32), POINTER(c_void_p)
for name, arguments in {
        "engine_options_new": [Place],
        "engine_options_set": [Handle, c_char_p, c_char_p],
        "engine_options_free": [Handle],
        "engine_open": [Handle, Place],
        "engine_free": [Handle],
        "engine_encode": [Handle, c_char_p, c_size_t, c_int32, Ids, c_size_t,
                          POINTER(c_size_t)],
        "generate_options_new": [Handle, Place],
        "generate_options_set": [Handle, c_char_p, c_char_p],
        "generate_options_free": [Handle],
        "session_new": [Handle, Place],
        "session_free": [Handle],
        "session_sync": [Handle, Ids, c_size_t, c_void_p, c_void_p,
                         POINTER(SyncReport)],
        "session_generate": [Handle, Handle, OnToken, c_void_p, c_void_p],
}.items():
    function = getattr(lib, "hearth_" + name)
    function.restype = c_int32
    function.argtypes = arguments


class HearthError(Exception):
    pass


def call(name, *arguments):
    """Calls hearth_<name>; an error becomes an exception."""
    if getattr(lib, "hearth_" + name)(*arguments) != OK:
        raise HearthError(f"{name}: {lib.hearth_last_error().decode()}")


def made(name, *arguments):
    """The handle that hearth_<name> gives."""
    handle = c_void_p()
    call(name, *arguments, byref(handle))
    return handle


def encode(engine, text):
    data = text.encode()
    n = c_size_t()
    if lib.hearth_engine_encode(engine, data, len(data), 1, None, 0,
                                byref(n)) not in (OK, BUFFER_TOO_SMALL):
        raise HearthError(lib.hearth_last_error().decode())
    ids = (c_int32 * n.value)()
    call("engine_encode", engine, data, len(data), 1, ids, n, byref(n))
    return ids


def main():
    model = sys.argv[1] if len(sys.argv) > 1 else ""
    prompt = sys.argv[2] if len(sys.argv) > 2 else "A fox"
    settings = made("engine_options_new")
    call("engine_options_set", settings, b"model_path", model.encode())
    engine = made("engine_open", settings)
    call("engine_options_free", settings)

    options = made("generate_options_new", engine)
    for name, value in {"n_tokens_max": "24", "temperature": "0"}.items():
        call("generate_options_set", options, name.encode(), value.encode())
    session = made("session_new", engine)
    ids = encode(engine, prompt)
    found = SyncReport(struct_size=ctypes.sizeof(SyncReport))
    call("session_sync", session, ids, len(ids), None, None, byref(found))

    pieces = []

    def on_token(token, _):
        text = ctypes.string_at(token[0].text, token[0].text_bytes).decode()
        pieces.append(text)
        print(text, end="", flush=True)
        return 0  # go on

    call("session_generate", session, options, OnToken(on_token), None, None)
    print(f"\n[{found.prompt_tokens} tokens, {found.reused_tokens} reused]")
    call("session_free", session)
    call("generate_options_free", options)
    call("engine_free", engine)

    # What was freed is found out, not followed.
    try:
        call("engine_free", engine)
    except HearthError as error:
        print(error)
    else:
        sys.exit("freed twice, and nobody said so")
    if not "".join(pieces).strip():
        sys.exit("no text came")


if __name__ == "__main__":
    main()
