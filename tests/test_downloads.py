"""Files that download buttons made, under visitors who each have a run after another."""

from streamlit.runtime.media_file_manager import MediaFileManager, MediaFileMetadata
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage

from attnviz.ui import downloads


def made():
    manager = MediaFileManager(MemoryMediaFileStorage("/media"))
    button = manager.add_deferred(lambda: b"a figure", "image/png", "here", file_name="a.png")
    return manager, manager.execute_deferred(button).rpartition("/")[2]


def test_a_file_outlives_the_runs_of_others_and_goes_a_minute_later(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(MediaFileMetadata, "mark_for_delete", MediaFileMetadata.mark_for_delete)
    monkeypatch.setattr(downloads, "monotonic", lambda: now[0])
    downloads.keep_downloads()
    manager, file = made()
    for _ in range(20):
        manager.remove_orphaned_files()
    now[0] += 59
    manager.remove_orphaned_files()
    assert manager.read_file(file).content == b"a figure"
    now[0] += 1
    manager.remove_orphaned_files()
    manager.remove_orphaned_files()
    assert manager.read_file(file) is None


def test_streamlit_alone_would_drop_it_at_the_second_run():
    """Where this fails, the module is not needed any more."""
    manager, file = made()
    manager.remove_orphaned_files()
    manager.remove_orphaned_files()
    assert manager.read_file(file) is None
