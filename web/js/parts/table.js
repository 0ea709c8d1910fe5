// SPDX-License-Identifier: Apache-2.0
// A table of any length: only the rows in sight are in the document.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { html } from "../html.js";

const kRowPx = 30, kBeyond = 12;

/** @typedef {{key: string, title: string, width: string, cell: (row: any) => any,
 *   sort?: (a: any, b: any) => number, wide?: boolean}} Column */

/**
 * @param {{rows: any[], columns: Column[], keyOf: (row: any) => string, label: string,
 *   sort?: string, onSort?: (sort: string) => void, onOpen?: (row: any) => void}} p
 *   sort: "KEY" or "-KEY"
 */
export function BigTable({ rows, columns, keyOf, label, sort = "", onSort, onOpen }) {
  const scroller = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [view, setView] = useState({ first: 0, count: 60 });
  const at = useRef(0);
  const [active, setActive] = useState(-1);

  const look = () => {
    const box = scroller.current;
    if (!box) return;
    const first = Math.max(0, Math.floor(box.scrollTop / kRowPx) - kBeyond);
    const count = Math.ceil(box.clientHeight / kRowPx) + 2 * kBeyond;
    setView((before) => (Math.abs(before.first - first) < kBeyond / 2 && before.count === count ? before : { first, count }));
  };
  useLayoutEffect(() => {
    look();
    const box = scroller.current;
    if (!box) return;
    const observer = new ResizeObserver(look);
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
    const top = row * kRowPx, room = box.clientHeight - 2 * kRowPx;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top > box.scrollTop + room) box.scrollTop = top - room;
  };
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    if (event.target !== scroller.current) return;
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight || 300) / kRowPx) - 2);
    const steps = /** @type {Record<string, number>} */ ({ ArrowDown: at.current + 1, ArrowUp: at.current - 1, PageDown: at.current + page, PageUp: at.current - page, Home: 0, End: rows.length - 1 });
    if (event.key in steps) {
      event.preventDefault();
      move(active < 0 && event.key === "ArrowDown" ? 0 : steps[event.key]);
    } else if (event.key === "Enter" && active >= 0 && rows[active]) onOpen?.(rows[active]);
  };

  const template = columns.map((column) => column.width).join(" ");
  const shown = rows.slice(view.first, view.first + view.count);
  return html`<div class="big-table" role="table" aria-label=${label} aria-rowcount=${rows.length + 1} style=${{ "--columns": template }}>
    <div role="rowgroup" class="head"><div role="row" aria-rowindex="1">
      ${columns.map((column) => {
        const down = sort === `-${column.key}`, up = sort === column.key;
        return html`<div role="columnheader" key=${column.key} data-wide=${column.wide ? "" : undefined} aria-sort=${up ? "ascending" : down ? "descending" : column.sort ? "none" : undefined}>
          ${column.sort ? html`<button type="button" class="bare" onClick=${() => onSort?.(up ? `-${column.key}` : column.key)}>${column.title}<span aria-hidden="true">${up ? " ▲" : down ? " ▼" : ""}</span></button>` : column.title}</div>`;
      })}</div></div>
    <div class="rows" ref=${scroller} onScroll=${look} tabindex="0" role="rowgroup" aria-label=${`${label}: arrow keys choose, Enter opens`} onKeyDown=${onKeyDown}>
      <div class="tall" role="presentation" style=${{ height: `${rows.length * kRowPx}px` }}>
        ${shown.map((row, i) => html`<div role="row" key=${keyOf(row)} aria-rowindex=${view.first + i + 2} data-active=${view.first + i === active ? "" : undefined}
          style=${{ transform: `translateY(${(view.first + i) * kRowPx}px)` }} onClick=${(/** @type {any} */ e) => { if (!e.target.closest("a")) onOpen?.(row); }}>
          ${columns.map((column) => html`<div role="cell" key=${column.key} data-wide=${column.wide ? "" : undefined}>${column.cell(row)}</div>`)}</div>`)}
      </div></div></div>`;
}
