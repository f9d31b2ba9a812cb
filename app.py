"""The page: `streamlit run app.py`."""

import streamlit as st

with st.spinner("Starting: the first visitor waits until PyTorch is loaded …"):
    from attnviz.ui import page

page.show()
