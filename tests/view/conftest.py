"""Browsers for the tests of pages."""

from browser import browser, page

__all__ = ["browser", "page"]
