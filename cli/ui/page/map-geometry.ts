import { ADDRESS_STATES, type AddressState, type Hatching, STATE_NAMES } from '../../../addressing/address-states.js';
import type { MapCell, MapWindow } from '../protocol.js';

/** The cells of a window are 2^8 parts of it. */
export const CELL_STEP = 8;
const MAX_COLUMNS = 16;

export function columnsOf(cells: number): number {
  return Math.min(MAX_COLUMNS, Math.max(cells, 1));
}

/** Returns the last part of an address. That of `fd00::` is 0. */
export function cellLabel(address: string): string {
  return /[^.:]+$/.exec(address)?.[0] ?? '0';
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

/** Whether a pixel has the colour of a state, or that of the page between the lines. */
export function isOnLine(hatching: Hatching | undefined, x: number, y: number): boolean {
  if (hatching === undefined) return true;
  const across = { rising: x + y, falling: x - y + LINE_STEP ** 4, level: y }[hatching];
  return across % LINE_STEP < LINE_STEP / 2;
}

/** In pixels of the picture; a power of 2, so that lines continue in the next cell. */
const LINE_STEP = 4;

/** Paints a window with the colours and lines of the style sheet. */
export function paint(canvas: HTMLCanvasElement, { bits, states, cells }: MapWindow, columns: number): void {
  const cellBits = states === undefined ? CELL_STEP : bits - CELL_STEP;
  const [cellWidth, cellHeight] = cellSize(cellBits);
  const [width, height] = [columns * cellWidth, (cells.length / columns) * cellHeight];
  const context = canvas.getContext('2d');
  if (context === null) return;
  [canvas.width, canvas.height] = [width, height];
  const { page, ofLetters } = coloursOf(canvas);
  const image = context.createImageData(width, height);
  const shown = states ?? cells.map(lettersOf).join('');
  for (let offset = 0; offset < shown.length; offset += 1) {
    const { x, y } = pixelOf(offset, cellBits, columns);
    const state = ofLetters[shown[offset] ?? ''];
    image.data.set(state !== undefined && isOnLine(state.hatching, x, y) ? state.colour : page, (y * width + x) * 4);
  }
  context.putImageData(image, 0, 0);
}

/** A cell with more addresses than the picture can show: its upper part is in use, at least two rows of pixels even if it is a single address. */
export function lettersOf({ counts }: Pick<MapCell, 'counts'>): string {
  const size = 1 << CELL_STEP;
  const total = Object.values(counts).reduce((sum, count) => sum + Number(count), 0);
  const used = STATE_NAMES.find((state) => state !== 'free' && state !== 'excluded' && counts[state] !== undefined);
  const rest = ADDRESS_STATES[counts.free === undefined ? 'excluded' : 'free'].letter;
  if (used === undefined) return rest.repeat(size);
  const pixels = Math.max(size / 8, Math.round((size * Number(counts[used])) / Math.max(total, 1)));
  return ADDRESS_STATES[used].letter.repeat(pixels) + rest.repeat(size - pixels);
}

/** Of several states in a cell, the first one: what needs attention is visible even if it is a single address. */
export function stateOf({ counts }: Pick<MapCell, 'counts'>): AddressState {
  return STATE_NAMES.find((state) => counts[state] !== undefined) ?? 'excluded';
}

/** Red, green, blue, alpha. */
type Colour = readonly number[];

function coloursOf(canvas: HTMLCanvasElement) {
  const style = getComputedStyle(canvas);
  const colourOf = (variable: string): Colour => {
    const hex = style.getPropertyValue(variable).trim().slice(1);
    return [...[0, 2, 4].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)), 255];
  };
  const states = STATE_NAMES.map((state) => {
    const { letter, hatching } = ADDRESS_STATES[state];
    return [letter, { colour: colourOf(`--${state}`), hatching }] as const;
  });
  const ofLetters: Readonly<Record<string, { colour: Colour; hatching: Hatching | undefined }>> =
    Object.fromEntries(states);
  return { page: colourOf('--page'), ofLetters };
}
