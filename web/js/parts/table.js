// SPDX-License-Identifier: Apache-2.0
// A table of any length: only the rows in sight are in the document. A row that leaves at one end
// becomes the one that comes in at the other (its key is its place modulo their number), and a row
// that stays is not looked at again: scrolling makes and throws away nothing.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { html } from "../html.js";

const kRowPx = 30, kBeyond = 6, kFirstRows = 50;

/** @typedef {{key: string, title: string, width: string, cell: (row: any) => any,
 *   sort?: (a: any, b: any) => number, wide?: boolean}} Column */

/** @param {{columns: Column[], sort: string, onSort?: (sort: string) => void}} p */
function Head({ columns, sort, onSort }) {
  return html`<div role="rowgroup" class="head"><div role="row" aria-rowindex="1">
    ${columns.map((column) => {
      const down = sort === `-${column.key}`, up = sort === column.key;
      return html`<div role="columnheader" key=${column.key} data-wide=${column.wide ? "" : undefined} aria-sort=${up ? "ascending" : down ? "descending" : column.sort ? "none" : undefined}>
        ${column.sort ? html`<button type="button" class="bare" onClick=${() => onSort?.(up ? `-${column.key}` : column.key)}>${column.title}<span aria-hidden="true">${up ? " ▲" : down ? " ▼" : ""}</span></button>` : column.title}</div>`;
    })}</div></div>`;
}

/**
 * @param {{rows: any[], columns: Column[], label: string, narrow?: string,
 *   sort?: string, onSort?: (sort: string) => void, onOpen?: (row: any) => void}} p
 *   columns: the same array each time; narrow: widths of those that a phone shows; sort: "KEY" or "-KEY"
 */
export function BigTable({ rows, columns, label, narrow, sort = "", onSort, onOpen }) {
  const scroller = useRef(/** @type {HTMLDivElement | null} */ (null));
  const height = useRef(0); // of what is in sight, px: not read while scrolling
  const [view, setView] = useState({ first: 0, count: kFirstRows });
  const at = useRef(0);
  const [active, setActive] = useState(-1);
  /** What the last drawing made, by index. @type {{current: Map<number, {row: any, active: boolean, drawn: any}>}} */
  const drawn = useRef(new Map());
  const open = useRef(onOpen);
  open.current = onOpen;

  const look = () => {
    const box = scroller.current;
    if (!box) return;
    const first = Math.max(0, Math.floor(box.scrollTop / kRowPx) - kBeyond);
    const count = Math.ceil(height.current / kRowPx) + 2 * kBeyond;
    setView((before) => (Math.abs(before.first - first) < kBeyond / 2 && before.count === count ? before : { first, count }));
  };
  useLayoutEffect(() => {
    const box = scroller.current;
    if (!box) return;
    height.current = box.clientHeight;
    look();
    const observer = new ResizeObserver((seen) => {
      height.current = seen[seen.length - 1].contentRect.height;
      look();
    });
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  const last = useRef(rows.length);
  useEffect(() => {
    if (rows.length < last.current && scroller.current && scroller.current.scrollTop > rows.length * kRowPx) scroller.current.scrollTop = 0;
    last.current = rows.length;
    look();
  }, [rows.length]);

  const move = (/** @type {number} */ to) => {
    const row = Math.max(0, Math.min(rows.length - 1, to));
    at.current = row;
    setActive(row);
    const box = scroller.current;
    if (!box) return;
    const top = row * kRowPx, room = height.current - 2 * kRowPx;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top > box.scrollTop + room) box.scrollTop = top - room;
  };
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    if (event.target !== scroller.current) return;
    const page = Math.max(1, Math.floor((height.current || 300) / kRowPx) - 2);
    const steps = /** @type {Record<string, number>} */ ({ ArrowDown: at.current + 1, ArrowUp: at.current - 1, PageDown: at.current + page, PageUp: at.current - page, Home: 0, End: rows.length - 1 });
    if (event.key in steps) {
      event.preventDefault();
      move(active < 0 && event.key === "ArrowDown" ? 0 : steps[event.key]);
    } else if (event.key === "Enter" && active >= 0 && rows[active]) onOpen?.(rows[active]);
  };
  const onClick = (/** @type {any} */ event) => {
    const place = event.target.closest("a, [role=row]")?.dataset.at; // a link goes by itself
    if (place !== undefined && rows[Number(place)]) open.current?.(rows[Number(place)]);
  };

  const template = useMemo(() => columns.map((column) => column.width).join(" "), [columns]);
  /** @type {typeof drawn.current} */
  const now = new Map();
  const shown = rows.slice(view.first, view.first + view.count).map((row, i) => {
    const index = view.first + i, is_active = index === active;
    const known = drawn.current.get(index);
    const same = known && known.row === row && known.active === is_active && known.drawn.key === index % view.count;
    const each = same ? known : { row, active: is_active, drawn: html`<div role="row" key=${index % view.count} aria-rowindex=${index + 2} data-at=${index} data-active=${is_active ? "" : undefined} style=${`transform:translateY(${index * kRowPx}px)`}>${columns.map((column) => html`<div role="cell" data-wide=${column.wide ? "" : undefined}>${column.cell(row)}</div>`)}</div>` };
    now.set(index, each);
    return each.drawn;
  });
  drawn.current = now;
  return html`<div class="big-table" role="table" aria-label=${label} aria-rowcount=${rows.length + 1} style=${{ "--columns": template, "--rows": rows.length, "--narrow": narrow }}>
    <${Head} columns=${columns} sort=${sort} onSort=${onSort} />
    <div class="rows" ref=${scroller} onScroll=${look} tabindex="0" role="rowgroup" aria-label=${`${label}: arrow keys choose, Enter opens`} onKeyDown=${onKeyDown} onClick=${onClick}>
      <div class="tall" role="presentation" style=${{ height: `${rows.length * kRowPx}px` }}>${shown}</div></div></div>`;
}
