import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { ADDRESS_STATES, type AddressState, STATE_NAMES } from '../../../addressing/address-states.js';

const STYLE = readFileSync(join(import.meta.dirname, 'page.css'), 'utf8');
/** WCAG 2.2, 1.4.11: for what is no text. */
const MIN_CONTRAST = 3;
const TOLD_APART: readonly AddressState[] = ['free', 'excluded', 'allocated', 'reserved'];

describe('The states of addresses on the page, for users who cannot tell colours apart', () => {
  for (const [scheme, name] of ['light', 'dark'].entries()) {
    const page = variable('page', scheme);

    it(`contrast with the page by at least 3 to 1, unless they are free: ${name}`, () => {
      for (const state of STATE_NAMES)
        if (state !== 'free') expect(contrast(colourOf(state, scheme), page), state).to.be.at.least(MIN_CONTRAST);
    });

    it(`have a fill or lines that contrast by at least 3 to 1 with a free address: ${name}`, () => {
      for (const state of TOLD_APART)
        if (state !== 'free')
          expect(contrast(colourOf(state, scheme), colourOf('free', scheme)), state).to.be.at.least(MIN_CONTRAST);
    });

    it(`have borders of the same contrast in legends and bars: ${name}`, () => {
      for (const selector of ['.bar', '.swatch']) {
        const [, border = ''] =
          new RegExp(`\n\\${selector} \\{[^}]*border: 1px solid var\\(--(\\w+)\\)`).exec(STYLE) ?? [];
        expect(contrast(variable(border, scheme), page), selector).to.be.at.least(MIN_CONTRAST);
      }
    });
  }

  it('have a light fill, a full one, or lines of a direction of their own', () => {
    const looks = TOLD_APART.map((state) => ADDRESS_STATES[state].hatching ?? (state === 'free' ? 'light' : 'full'));
    expect(looks).to.deep.equal(['light', 'level', 'full', 'rising']);
  });
});

function colourOf(state: AddressState, scheme: number): string {
  return ADDRESS_STATES[state].colours[scheme] ?? '';
}

/** The value of a variable of the style sheet. The dark scheme comes second. */
function variable(name: string, scheme: number): string {
  const found = [...STYLE.matchAll(new RegExp(`--${name}: (#[0-9a-f]{6});`, 'g'))][scheme]?.[1];
  if (found === undefined) throw new Error(`page.css has no --${name} in both schemes`);
  return found;
}

/** https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio */
function contrast(a: string, b: string): number {
  const [light = 0, dark = 0] = [a, b].map(luminance).sort((one, other) => other - one);
  return (light + 0.05) / (dark + 0.05);
}

function luminance(hex: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
