import { ADDRESS_STATES, STATE_NAMES } from '../../../addressing/address-states.js';
import type { MapCell, MapWindow } from '../protocol.js';

/** The cells of a window are 2^8 parts of it. */
export const CELL_STEP = 8;
const MAX_COLUMNS = 16;

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
  else for (let offset = 0; offset < states.length; offset += 1) set(offset, colours[states[offset] ?? ''] ?? []);
  context.putImageData(image, 0, 0);
}

type Colours = Readonly<Record<string, readonly number[]>>;

/** By the letter of the state: red, green, blue, alpha. */
function coloursOf(canvas: HTMLCanvasElement): Colours {
  const style = getComputedStyle(canvas);
  const colours = STATE_NAMES.map((state) => {
    const hex = style.getPropertyValue(`--${state}`).trim().slice(1);
    const parts = [0, 2, 4].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
    return [ADDRESS_STATES[state].letter, [...parts, 255]] as const;
  });
  return Object.fromEntries(colours);
}

/** The colour of a cell with more addresses than the picture can show: visible even if a single one is in use. */
function mixed({ counts }: MapCell, colours: Colours): readonly number[] {
  const total = Object.values(counts).reduce((sum, count) => sum + Number(count), 0);
  const used = STATE_NAMES.find((state) => state !== 'free' && state !== 'excluded' && counts[state] !== undefined);
  const base = colours[ADDRESS_STATES[counts.free === undefined ? 'excluded' : 'free'].letter] ?? [];
  if (used === undefined) return base;
  const top = colours[ADDRESS_STATES[used].letter] ?? [];
  const share = 0.35 + 0.65 * (Number(counts[used]) / Math.max(total, 1));
  return base.map((value, index) => Math.round(value + ((top[index] ?? value) - value) * share));
}
