// The theme puts its button for copying into a `nav` without a name, in every block of code.  For those who listen to
// a page each of these would be a landmark, like the menu.
new MutationObserver(() => {
  for (const nav of document.querySelectorAll("nav.md-code__nav:not([role])")) nav.setAttribute("role", "none");
}).observe(document.body, { childList: true, subtree: true });
