import { expect } from 'chai';
import { cellLabel, columnsOf, isOnLine, lettersOf, moveTo, pixelOf } from './map-geometry.js';

describe('The map of addresses on the page', () => {
  const keys: readonly { key: string; from: number; to: number | undefined; cells?: number }[] = [
    { key: 'ArrowRight', from: 0, to: 1 },
    { key: 'ArrowRight', from: 255, to: 255 },
    { key: 'ArrowLeft', from: 0, to: 0 },
    { key: 'ArrowDown', from: 17, to: 33 },
    { key: 'ArrowDown', from: 250, to: 250 },
    { key: 'ArrowUp', from: 17, to: 1 },
    { key: 'ArrowUp', from: 3, to: 3 },
    { key: 'Home', from: 39, to: 32 },
    { key: 'End', from: 39, to: 47 },
    { key: 'PageUp', from: 39, to: 7 },
    { key: 'PageDown', from: 39, to: 247 },
    { key: 'ArrowDown', from: 1, to: 1, cells: 4 },
    { key: 'End', from: 1, to: 3, cells: 4 },
    { key: 'Tab', from: 39, to: undefined },
  ];
  for (const { key, from, to, cells = 256 } of keys) {
    it(`moves with ${key} from cell ${from} of ${cells} to ${to ?? 'no other cell'}`, () => {
      expect(moveTo(key, from, cells)).to.equal(to);
    });
  }

  it('labels each cell with the last part of its address', () => {
    expect(['10.0.0.0', 'fd00::', 'fd00::1f'].map(cellLabel)).to.deep.equal(['0', '0', '1f']);
  });

  it('has as many columns as cells if there are few', () => {
    expect([1, 2, 8, 16, 256].map(columnsOf)).to.deep.equal([1, 2, 8, 16, 16]);
  });

  it('paints each address of a /16 at a place of its own, inside its cell', () => {
    const places = new Set<number>();
    for (let offset = 0; offset < 65_536; offset += 1) {
      const { x, y } = pixelOf(offset, 8, 16);
      places.add(y * 256 + x);
      const cell = offset >> 8;
      if (Math.floor(x / 16) !== cell % 16 || Math.floor(y / 16) !== cell >> 4) expect.fail(`address ${offset}`);
    }
    expect(places.size).to.equal(65_536);
  });

  it('shows a single address in a cell of millions, and the share of many', () => {
    expect(lettersOf({ counts: { free: '9999999', allocated: '1' } })).to.match(/^#{32}\.{224}$/);
    expect(lettersOf({ counts: { free: '500', reserved: '500' } })).to.match(/^r{128}\.{128}$/);
    expect(lettersOf({ counts: { excluded: '7' } })).to.match(/^x{256}$/);
  });

  it('draws lines through half of the pixels, in another direction for each hatching', () => {
    const places = Array.from({ length: 256 }, (_, n) => [n % 16, n >> 4] as const);
    const drawn = (['rising', 'falling', 'level'] as const).map((hatching) =>
      places.map(([x, y]) => (isOnLine(hatching, x, y) ? '#' : ' ')).join(''),
    );
    for (const picture of drawn) expect(picture.replaceAll(' ', '')).to.have.length(128);
    expect(new Set(drawn).size).to.equal(3);
    expect(places.every(([x, y]) => isOnLine(undefined, x, y))).to.equal(true);
  });
});
