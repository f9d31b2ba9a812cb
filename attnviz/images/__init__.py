"""Untrusted bytes in, an upright RGB picture out, or a `BadImage` that says why not.

`kinds` tells what a file is, `headers` what it carries besides its pixels, `limits` whether opening
it is safe, `opening` decodes it, and `rgb` makes 8-bit RGB on white of whatever came out.
"""

from attnviz.images.opening import open_image

__all__ = ["open_image"]
