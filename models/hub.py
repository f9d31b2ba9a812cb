"""Weights from the Hugging Face hub: the local cache first, and no long wait without a network."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from threading import Thread

from huggingface_hub import (
    constants,
    get_hf_file_metadata,
    hf_hub_download,
    hf_hub_url,
    try_to_load_from_cache,
)
from huggingface_hub.errors import EntryNotFoundError

from attnviz.errors import BadWeights

FILE = "model.safetensors"
ANSWER_WITHIN = 8.0
"""Seconds that the hub has for its first answer, name lookup and redirects included."""

WAY_OUT = (
    "Without the hub there are weights of your own (checkpoint=FILE, --checkpoint FILE), the"
    " default model 'dinov2-small', and random weights (pretrained=False, --random)."
)


CAUSES = {
    "name or service not known|name resolution|getaddrinfo|nodename nor servname": (
        "its address can't be looked up, as when there is no network"
    ),
    "connection refused|network is unreachable|no route to host": "it can't be reached",
    "timed out": "it did not answer in time",
    "certificate": "its certificate can't be verified",
}
"""What libraries say (a pattern) -> what a person can use."""


def fetch(repo: str) -> Path:
    """The safetensors file of a hub repository, `owner/name` or `owner/name@revision`.

    A file in the hub's local cache is used without asking; `HF_HUB_OFFLINE=1` allows nothing else.
    Either way its SHA-256 sum has to be the one that the hub named it by.

    Raises:
        BadWeights: the hub cannot be reached or has no such file for us, or the file is damaged.
    """
    return _as_fetched(_find(repo), repo)


def _as_fetched(path: Path, repo: str) -> Path:
    """The same file, unless it has changed: the cache calls a large one by its SHA-256 sum."""
    expected = path.resolve().name
    if not re.fullmatch("[0-9a-f]{64}", expected):
        return path  # put there by hand, or small: nobody said what it was
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise BadWeights(
            f"The file of {repo} in the hub's local cache is damaged: its SHA-256 sum is {found};"
            f" expected {expected}.",
            f"Remove {path.resolve()}, and it is fetched again.",
        )
    return path


def _find(repo: str) -> Path:
    """Where the cache has it, now or already."""
    repo, _, revision = repo.partition("@")
    version = revision or None
    cached = try_to_load_from_cache(repo, FILE, revision=version)
    if isinstance(cached, str):
        return Path(cached)
    if constants.HF_HUB_OFFLINE:
        raise BadWeights(
            f"{repo} is not in the hub's local cache, and HF_HUB_OFFLINE forbids to fetch it.",
            WAY_OUT,
        )
    try:
        # hf_hub_download tries again and again for 23 s when there is no network; this does not.
        _first_answer(hf_hub_url(repo, FILE, revision=version))
        return Path(hf_hub_download(repo, FILE, revision=version))
    except EntryNotFoundError as error:
        raise BadWeights(
            f"{repo} on the Hugging Face hub has no {FILE}, and pickles are never opened.",
            WAY_OUT,
        ) from error
    except Exception as error:  # the client's own errors, its HTTP library's, the system's
        raise BadWeights(
            f"The weights of {repo} are not in the hub's local cache and could not be fetched from"
            f" the Hugging Face hub: {_in_words(error)}.",
            WAY_OUT,
        ) from error


def _in_words(error: Exception) -> str:
    """What went wrong, for a person; of what is not known, the library's own first line."""
    chain: list[BaseException] = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) and cause not in chain:
        chain.append(cause)
    text = " ".join(map(str, chain))
    for kind, words in CAUSES.items():
        if re.search(kind, text, re.IGNORECASE):
            return words
    if isinstance(error, OSError) and error.strerror:
        return error.strerror  # without the path, which is the host's own business
    first = str(error).strip().partition("\n")[0].rstrip(".")
    return re.sub(r"^\[Errno -?\d+\] ", "", first) or type(error).__name__


def _first_answer(url: str) -> None:
    """Ask for the file's size, in a thread: a name lookup that hangs cannot be interrupted."""
    failures: list[Exception] = []

    def ask() -> None:
        try:
            get_hf_file_metadata(url, timeout=ANSWER_WITHIN)
        except Exception as error:  # handed over to the caller's thread
            failures.append(error)

    thread = Thread(target=ask, daemon=True)
    thread.start()
    thread.join(ANSWER_WITHIN)
    if thread.is_alive():
        raise TimeoutError(f"it did not answer within {ANSWER_WITHIN:g} s")
    if failures:
        raise failures[0]
