"""The page: `streamlit run app.py`."""

from attnviz.ui import page

page.show()
