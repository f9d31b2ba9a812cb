"""The kinds of file that a figure is downloaded as."""

FORMATS = {
    "PNG": (".png", "image/png"),
    "PDF": (".pdf", "application/pdf"),
    "SVG": (".svg", "image/svg+xml"),
    "NPZ": (".npz", "application/octet-stream"),
}
"""Name → suffix and type; NPZ holds the numbers."""
