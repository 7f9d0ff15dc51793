// Elements without HTML in texts: the content policy forbids it, and keys may contain anything.

// Creates an element. Properties that begin with "on" are listeners; null and false are left out.
export function h(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [property, value] of Object.entries(properties)) {
    if (property.startsWith("on")) {
      element.addEventListener(property.slice(2), value);
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(property, value === true ? "" : value);
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

// Replaces the text of an element, unless it is the same: a screen reader would read it again.
export function setText(element, text) {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

// A list of names and values.
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

// A message in place of content that is missing.
export function empty(title, ...more) {
  return h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), ...more.map((text) =>
    typeof text === "string" ? h("p", {}, text) : text));
}

export function field(label, input, hint = null) {
  const id = `field-${label.toLowerCase().replaceAll(/[^a-z]+/g, "-")}`;
  input.id = id;
  if (hint !== null) {
    input.setAttribute("aria-describedby", `${id}-hint`);
  }
  const note = hint === null ? null : h("small", { id: `${id}-hint` }, hint);
  return h("div", { class: "field" }, h("label", { for: id }, label), input, note);
}

// Shows a dialog before an action. Resolves to the data of its form, or to null.
export function confirm(title, text, action, fields = []) {
  const form = h("form", { method: "dialog" },
    h("h2", { id: "dialog-title" }, title),
    h("p", {}, text),
    ...fields,
    h("div", { class: "actions" },
      h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"),
      h("button", { type: "submit", value: "yes", class: "danger" }, action)));
  const dialog = h("dialog", { "aria-labelledby": "dialog-title" }, form);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      resolve(dialog.returnValue === "yes" ? new FormData(form) : null);
      dialog.remove();
    });
  });
}

const style = (column) => [column.number && "number", column.minor && "minor"].filter(Boolean).join(" ") || null;

// A table whose rows are kept while their values change, so that they keep the focus. A column has a
// name, a text and, to be sortable, a value; `link` makes it a link. Numbers are aligned; minor columns need a wide screen.
export class Table {
  constructor(caption, columns, sorted = null) {
    this.columns = columns;
    this.sorted = sorted;
    this.rows = new Map();
    this.items = [];
    this.body = h("tbody");
    this.headers = columns.map((column) => this.header(column));
    this.element = h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption },
      h("table", {},
        h("caption", { class: "hidden" }, caption),
        h("thead", {}, h("tr", {}, this.headers)),
        this.body));
  }

  header(column) {
    const content = column.value === undefined ? column.name
      : h("button", { type: "button", onclick: () => this.sortBy(column) }, column.name);
    return h("th", { scope: "col", class: style(column) }, content);
  }

  sortBy(column) {
    const isDescending = this.sorted?.column === column.name ? !this.sorted.isDescending : column.number;
    this.sorted = { column: column.name, isDescending };
    this.order();
  }

  // Shows these items, in this order unless a column is sorted; `key` identifies each.
  update(items, key) {
    this.items = items.map(key);
    const current = new Set();
    for (const item of items) {
      const id = key(item);
      current.add(id);
      const row = this.rows.get(id) ?? this.add(id);
      row.item = item;
      this.columns.forEach((column, index) => {
        const cell = row.cells[index];
        setText(cell, column.text(item));
        if (column.link !== undefined) {
          const link = column.link(item);
          if (link === null) {
            cell.removeAttribute("href");
          } else {
            cell.setAttribute("href", link);
          }
        }
        cell.parentElement.classList.toggle("marked", column.marked?.(item) ?? false);
        cell.parentElement.classList.toggle("zero", Boolean(column.number) && cell.textContent === "0");
      });
    }
    for (const [id, row] of this.rows) {
      if (!current.has(id)) {
        row.element.remove();
        this.rows.delete(id);
      }
    }
    this.order();
  }

  add(id) {
    const cells = this.columns.map((column) => h(column.link === undefined ? "span" : "a"));
    const element = h("tr", {}, cells.map((cell, index) => {
      const column = this.columns[index];
      const name = index === 0 ? "th" : "td";
      return h(name, { scope: index === 0 ? "row" : null, class: style(column) }, cell);
    }));
    const row = { element, cells };
    this.rows.set(id, row);
    this.body.append(element);
    return row;
  }

  order() {
    const column = this.columns.find((column) => column.name === this.sorted?.column);
    this.columns.forEach(({ name }, index) => {
      const order = this.sorted?.isDescending ? "descending" : "ascending";
      this.headers[index].setAttribute("aria-sort", name === this.sorted?.column ? order : "none");
    });
    if (this.body.contains(document.activeElement)) {
      return;
    }
    const rows = this.items.map((id) => this.rows.get(id));
    if (column !== undefined) {
      const sign = this.sorted.isDescending ? -1 : 1;
      const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
      rows.sort((a, b) => sign * compare(column.value(a.item), column.value(b.item)));
    }
    const isSorted = rows.every((row, index) => this.body.children[index] === row.element);
    if (!isSorted) {
      this.body.append(...rows.map((row) => row.element));
    }
  }
}
