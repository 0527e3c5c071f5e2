"""What the theme leaves out for readers with screen readers: the name of the search dialog."""

from typing import Any

UNNAMED = 'data-md-component="search" role="dialog"'


def on_post_page(output: str, **_: Any) -> str:
    """Return a page of the site with a name for its search dialog."""
    return output.replace(UNNAMED, f'{UNNAMED} aria-label="Search"')
