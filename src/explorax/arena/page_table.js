// Tables that can be sorted: a button in the header of each column, and aria-sort on the one that is sorted by.

const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

// Each column is {key, title, text, value(row), show(row), kind(row)}: what to sort by, what to show, a class.  The
// header is made once, so that a button keeps the focus; `onSort` is told what to sort by next: "key" or "-key".
const sortableTable = (table, columns, onSort) => {
  let by = "";
  const headers = columns.map(({ key, title, text }) => {
    const button = element("button", { type: "button" }, title);
    button.addEventListener("click", () => onSort(by === key ? `-${key}` : key));
    return element("th", { scope: "col", class: text ? "sorts text" : "sorts" }, button);
  });
  const body = element("tbody");
  table.append(element("thead", {}, element("tr", {}, ...headers)), body);

  const fill = (rows, sortBy, rowClass = () => "") => {
    by = sortBy;
    const column = columns.find(({ key }) => key === by.replace("-", "")) || columns[0];
    const down = by.startsWith("-");
    headers.forEach((header, index) => {
      if (columns[index] === column) header.setAttribute("aria-sort", down ? "descending" : "ascending");
      else header.removeAttribute("aria-sort");
    });
    const sorted = [...rows].sort((a, b) => compare(column.value(a), column.value(b), down));
    body.replaceChildren(...sorted.map((row) => element("tr", { class: rowClass(row) }, ...cells(row))));
  };
  const cells = (row) =>
    columns.map(({ text, show, kind = () => "" }) =>
      element("td", { class: `${text ? "text" : ""} ${kind(row)}`.trim() }, ...[show(row)].flat()),
    );
  return fill;
};

// What is missing comes last in either direction.
const compare = (a, b, down) => {
  if (a === null || b === null) return (a === null) - (b === null);
  const order = typeof a === "string" ? a.localeCompare(b, "en") : a - b;
  return down ? -order : order;
};
