// A tree that the arrow keys walk (the ARIA tree pattern), whole or fetched branch by branch.
// For tests: [role=tree], [role=treeitem][data-node="NAME"], [data-more] for "show more".
//
// An item is {name, hasChildren, items, total, isOpen, …}: `items` are its children as far as they are known, null before.

import { el, newId, replace, countOf } from "/page/dom.js";

/** A tree. `drawRow(item)` gives the row's elements; `load(item, offset)` a promise of {items, total}; `item` is null at the top. */
export class Tree {
  constructor({ label, id, drawRow, onChoose, load = null, opensOnChoose = false, onProblem = () => {} }) {
    Object.assign(this, { drawRow, onChoose, load, opensOnChoose, onProblem });
    this.top = { items: [], total: 0 };
    this.element = el("ul", { role: "tree", class: "tree", "aria-label": label, id });
    this.element.addEventListener("keydown", (event) => this.#onKey(event));
    this.element.addEventListener("click", (event) => this.#onClick(event));
  }

  /** Show these items at the top. */
  show(items, total = items.length) {
    Object.assign(this.top, { items, total });
    this.chosen = null;
    this.#fillGroup(this.top, this.element, 1);
    this.element.querySelector("[role=treeitem]")?.setAttribute("tabindex", "0");
  }

  /** Choose an item as if it were clicked; focus goes there only when asked for. */
  choose(item, { focus = false, quietly = false } = {}) {
    this.chosen?.li?.setAttribute("aria-selected", "false");
    this.chosen = item;
    item.li.setAttribute("aria-selected", "true");
    this.#makeReachable(item.li);
    if (focus) item.li.focus();
    if (!quietly) this.onChoose(item);
  }

  /** Open a branch, fetching what is below it where that is not known yet. */
  async open(item) {
    if (!item.hasChildren || item.isOpen) return;
    if (!item.items) await this.#fetchMore(item);
    if (!item.items) return;
    item.isOpen = true;
    this.#fillGroup(item, item.group, item.level + 1);
    this.#showWhetherOpen(item);
  }

  /** Close a branch. */
  close(item) {
    item.isOpen = false;
    this.#showWhetherOpen(item);
  }

  /** The child with this name; put in by itself when it lies beyond what has been fetched. */
  async reach(parent, wanted) {
    const above = parent ?? this.top;
    if (parent) await this.open(parent);
    const found = above.items?.find((item) => item.name === wanted.name);
    if (found) return found;
    (above.items ??= []).push(wanted);
    above.extra = (above.extra ?? 0) + 1;
    this.#fillGroup(above, parent ? parent.group : this.element, parent ? parent.level + 1 : 1);
    return wanted;
  }

  async #fetchMore(item) {
    const above = item ?? this.top;
    const offset = (above.items?.length ?? 0) - (above.extra ?? 0);
    item?.li?.setAttribute("aria-busy", "true");
    try {
      const { items, total } = await this.load(item, offset);
      const known = new Set((above.items ?? []).map((one) => one.name));
      const fresh = items.filter((one) => !known.has(one.name));
      above.extra = (above.extra ?? 0) - (items.length - fresh.length);
      above.items = [...(above.items ?? []), ...fresh];
      above.total = total;
    } catch (error) {
      this.onProblem(error);
    }
    item?.li?.removeAttribute("aria-busy");
  }

  #fillGroup(above, group, level) {
    const items = above.items.map((item) => this.#drawItem(item, level, above));
    const left = (above.total ?? above.items.length) - above.items.length;
    replace(group, items, left > 0 && this.#drawMore(above, left, level));
  }

  #drawItem(item, level, above) {
    if (item.li) return item.li; // drawn before: keeps what is open below it
    const rowId = newId("row");
    item.level = level;
    item.above = above === this.top ? null : above;
    item.twist = el("span", { class: "twist", "aria-hidden": "true", data: { twist: "" } });
    item.row = el("div", { class: "row", id: rowId }, item.twist, this.drawRow(item));
    item.group = el("ul", { role: "group", hidden: true });
    item.li = el("li", {
      role: "treeitem", tabindex: "-1", class: item.kind ?? "", data: { node: item.name },
      "aria-level": level, "aria-selected": "false", "aria-labelledby": rowId,
    }, item.row, item.hasChildren && item.group);
    item.li.item = item;
    if (item.isOpen && item.items) this.#fillGroup(item, item.group, level + 1);
    this.#showWhetherOpen(item);
    return item.li;
  }

  #showWhetherOpen(item) {
    if (!item.hasChildren) return;
    item.li.setAttribute("aria-expanded", String(Boolean(item.isOpen)));
    item.group.hidden = !item.isOpen;
  }

  #drawMore(above, left, level) {
    const more = el("li", { role: "treeitem", tabindex: "-1", class: "more", data: { more: "" }, "aria-level": level },
      el("div", { class: "row" }, el("span", { class: "title link" }, `Show more; ${countOf(left, "is", "are")} not shown`)));
    more.showMore = async () => {
      const before = above.items.length;
      await this.#fetchMore(above === this.top ? null : above);
      this.#fillGroup(above, above === this.top ? this.element : above.group, level);
      this.#focus(above.items[before]?.li);
    };
    return more;
  }

  #onClick(event) {
    const li = event.target.closest("[role=treeitem]");
    if (li?.showMore) li.showMore();
    else if (li?.item && event.target.closest("[data-twist]") && li.item.hasChildren) this.#toggle(li.item);
    else if (li?.item && event.target.closest(".row")) this.#pick(li.item);
  }

  #toggle(item) {
    if (item.isOpen) this.close(item);
    else this.open(item);
  }

  #pick(item) {
    if (this.opensOnChoose) this.open(item);
    this.choose(item, { focus: true });
  }

  #onKey(event) {
    const li = event.target.closest("[role=treeitem]");
    const act = li && !event.ctrlKey && !event.metaKey && !event.altKey && this.#actionFor(event.key, li);
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  #actionFor(key, li) {
    const { item } = li;
    const shown = this.#shownItems();
    const place = shown.indexOf(li);
    return {
      ArrowDown: () => this.#focus(shown[place + 1]),
      ArrowUp: () => this.#focus(shown[place - 1]),
      Home: () => this.#focus(shown[0]),
      End: () => this.#focus(shown.at(-1)),
      ArrowRight: () => item?.hasChildren && (item.isOpen ? this.#focus(item.items[0]?.li) : this.open(item)),
      ArrowLeft: () => (item?.hasChildren && item.isOpen ? this.close(item) : this.#focus(li.parentElement.closest("[role=treeitem]"))),
      Enter: () => (li.showMore ? li.showMore() : this.#pick(item)),
      " ": () => (li.showMore ? li.showMore() : this.#pick(item)),
    }[key];
  }

  #shownItems() {
    const all = [...this.element.querySelectorAll("[role=treeitem]")];
    return all.filter((li) => !li.parentElement.closest("[role=group][hidden]"));
  }

  #focus(li) {
    if (!li) return;
    this.#makeReachable(li);
    li.focus();
  }

  #makeReachable(li) {
    for (const old of this.element.querySelectorAll('[tabindex="0"]')) old.setAttribute("tabindex", "-1");
    li.setAttribute("tabindex", "0");
  }
}
