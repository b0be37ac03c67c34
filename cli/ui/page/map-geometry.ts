import { ADDRESS_STATES, type AddressState } from '../../usage/address-states.js';
import type { MapCell, MapWindow } from '../protocol.js';

/** The cells of a window are 2^8 parts of it. */
export const CELL_STEP = 8;
const MAX_COLUMNS = 16;

/** The states in words. What needs attention comes first. */
export const STATES: readonly { readonly state: AddressState; readonly text: string }[] = [
  { state: 'draining', text: 'in use, draining' },
  { state: 'quarantined', text: 'quarantined' },
  { state: 'other-pool', text: 'leased by another pool' },
  { state: 'allocated', text: 'allocated' },
  { state: 'cooling', text: 'cooling down' },
  { state: 'sticky', text: 'kept for a MAC address' },
  { state: 'reserved', text: 'reserved' },
  { state: 'drained', text: 'drained' },
  { state: 'free', text: 'free' },
  { state: 'excluded', text: 'never allocated' },
];

export function columnsOf(cells: number): number {
  return Math.min(MAX_COLUMNS, Math.max(cells, 1));
}

/** @returns the cell to which a key leads; undefined for other keys */
export function moveTo(key: string, from: number, cells: number): number | undefined {
  const columns = columnsOf(cells);
  const steps: Readonly<Record<string, number>> = {
    ArrowLeft: from - 1,
    ArrowRight: from + 1,
    ArrowUp: from - columns < 0 ? from : from - columns,
    ArrowDown: from + columns >= cells ? from : from + columns,
    PageUp: from % columns,
    PageDown: cells - columns + (from % columns),
    Home: from - (from % columns),
    End: Math.min(from - (from % columns) + columns, cells) - 1,
  };
  const to = steps[key];
  return to === undefined ? undefined : Math.min(Math.max(to, 0), cells - 1);
}

/** Returns where an address is in the picture: cells are squares of addresses, in rows. @param cellBits 2^cellBits addresses are in a cell */
export function pixelOf(offset: number, cellBits: number, columns: number): { x: number; y: number } {
  const [width, height] = cellSize(cellBits);
  const cell = offset >> cellBits;
  const inside = offset & ((1 << cellBits) - 1);
  return {
    x: (cell % columns) * width + (inside % width),
    y: Math.floor(cell / columns) * height + Math.floor(inside / width),
  };
}

function cellSize(cellBits: number): readonly [number, number] {
  return [1 << Math.ceil(cellBits / 2), 1 << Math.floor(cellBits / 2)];
}

/** Paints a window with the colours of the style sheet. */
export function paint(canvas: HTMLCanvasElement, { bits, states, cells }: MapWindow, columns: number): void {
  const cellBits = states === undefined ? 0 : bits - CELL_STEP;
  const [cellWidth, cellHeight] = cellSize(cellBits);
  const [width, height] = [columns * cellWidth, (cells.length / columns) * cellHeight];
  const context = canvas.getContext('2d');
  if (context === null) return;
  [canvas.width, canvas.height] = [width, height];
  const colours = coloursOf(canvas);
  const image = context.createImageData(width, height);
  const set = (offset: number, colour: readonly number[]) => {
    const { x, y } = pixelOf(offset, cellBits, columns);
    image.data.set(colour, (y * width + x) * 4);
  };
  if (states === undefined) cells.forEach((cell, index) => set(index, mixed(cell, colours)));
  else for (let offset = 0; offset < states.length; offset += 1) set(offset, colours[Number(states[offset])] ?? []);
  context.putImageData(image, 0, 0);
}

/** By the order of {@link ADDRESS_STATES}: red, green, blue, alpha. */
function coloursOf(canvas: HTMLCanvasElement): readonly (readonly number[])[] {
  const style = getComputedStyle(canvas);
  return ADDRESS_STATES.map((state) => {
    const hex = style.getPropertyValue(`--${state}`).trim().slice(1);
    return [0, 2, 4].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)).concat(255);
  });
}

/** The colour of a cell with more addresses than the picture can show: visible even if a single one is in use. */
function mixed({ counts }: MapCell, colours: readonly (readonly number[])[]): readonly number[] {
  const total = Object.values(counts).reduce((sum, count) => sum + Number(count), 0);
  const used = STATES.find(({ state }) => state !== 'free' && state !== 'excluded' && counts[state] !== undefined);
  const base = colours[ADDRESS_STATES.indexOf(counts.free === undefined ? 'excluded' : 'free')] ?? [];
  if (used === undefined) return base;
  const top = colours[ADDRESS_STATES.indexOf(used.state)] ?? [];
  const share = 0.35 + 0.65 * (Number(counts[used.state]) / Math.max(total, 1));
  return base.map((value, index) => Math.round(value + ((top[index] ?? value) - value) * share));
}
