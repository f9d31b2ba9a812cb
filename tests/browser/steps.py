"""What several tests do on the page."""

import io

from PIL import Image
from playwright.sync_api import expect


def png(size, colour="green"):
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, "PNG")
    return file.getvalue()


def open_view(page, label):
    """One of the views at the top."""
    page.locator(".st-key-view").get_by_text(label, exact=True).click()


def uploader(page):
    one = page.get_by_test_id("stFileUploader")
    expect(one).to_have_count(1)
    return one


def upload(page, name, data):
    upload_all(page, {name: data})


def upload_all(page, files):
    """Several files that are chosen at once."""
    chosen = [{"name": n, "mimeType": "image/png", "buffer": data} for n, data in files.items()]
    uploader(page).locator("input").set_input_files(chosen)
