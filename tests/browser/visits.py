"""One page in a browser, what it complains of, and what may be asked of any page."""

from axe_playwright_python.sync_playwright import Axe

WIDTHS = (500, 900, 1400)
SCHEMES = ("light", "dark")
LOCAL = ("file:", "data:", "blob:", "about:")

# Texts that are wider than what shows them, or lie beyond the edges of the window, and nobody can scroll to them.
CUT_OFF = """
() => {
  const scrolls = (element) => {
    for (let one = element; one && one !== document.body; one = one.parentElement)
      if (["auto", "scroll"].includes(getComputedStyle(one).overflowX)) return true;
    return false;
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    if (element.closest("script, style, title, noscript, select, .md-clipboard, [aria-hidden=true]")) continue;
    if (element.closest(".md-sidebar, .md-search")) continue; // beyond the edge until it is opened
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const { left, right, width } of range.getClientRects()) {
      if (width < 2 || scrolls(element)) continue;
      if (left < -1 || right > innerWidth + 1) found.push(`outside: ${node.data.trim().slice(0, 60)}`);
    }
    const style = getComputedStyle(element);
    if (style.overflowX === "hidden" && style.display !== "inline" && element.scrollWidth > element.clientWidth + 1)
      found.push(`clipped: ${node.data.trim().slice(0, 60)}`);
  }
  return [...new Set(found)];
}
"""


class Visit:
    """A page in a context of its own, without network."""

    def __init__(self, browser, address, width, scheme, *, wait_for="body"):
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce", offline=True
        )
        self.complaints = []
        self.page = self.context.new_page()
        self.page.set_default_timeout(10_000)
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("requestfailed", self._miss)
        self.page.on("request", self._watch)
        self.page.goto(address)
        self.page.wait_for_selector(wait_for)

    def _hear(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(f"console: {message.text}")

    def _miss(self, request):
        if request.failure != "net::ERR_ABORTED":  # the reader went on before it had come
            self.complaints.append(f"failed: {request.failure}: {request.url}")

    def _watch(self, request):
        if not request.url.startswith(LOCAL):
            self.complaints.append(f"asked for: {request.url}")

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def focused(self):
        """The text or the id of the element that has the focus."""
        return self.page.evaluate(
            "() => { const it = document.activeElement; return it.id || it.value || it.textContent.trim(); }"
        )

    def has_a_ring(self):
        """Whether one sees where the focus is."""
        return self.page.evaluate(
            "() => { const it = getComputedStyle(document.activeElement);"
            " return it.outlineStyle !== 'none' && parseFloat(it.outlineWidth) >= 2; }"
        )

    def check_fits(self):
        """Nothing is wider than the window, and nothing is cut off."""
        wide, window = self.page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
        assert wide <= window, f"the page is {wide} pixels wide in a window of {window}"
        cut = self.page.evaluate(CUT_OFF)
        assert not cut, cut

    def check_accessible(self):
        """axe-core finds nothing, not even what is minor."""
        # It must not load style sheets once more: a page from disk may not.
        found = Axe().run(self.page, options={"preload": False}).response["violations"]
        said = [
            f"{one['impact']}: {one['id']}: {one['help']}: "
            + "; ".join(f"{node['target']} {node['failureSummary'][:200]}" for node in one["nodes"][:4])
            for one in found
        ]
        assert not said, "\n".join(said)

    def shoot(self, folder, name):
        size = self.page.evaluate("() => [innerWidth, Math.min(6000, document.documentElement.scrollHeight)]")
        part = {"x": 0, "y": 0, "width": size[0], "height": size[1]}
        self.page.screenshot(path=folder / f"{name}.png", full_page=True, clip=part, timeout=60_000)
