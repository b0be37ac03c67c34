import { expect } from 'chai';
import { parseDuration } from './duration.js';

describe('parseDuration', () => {
  for (const [text, ms] of [
    ['24h', 86_400_000],
    ['1h30m', 5_400_000],
    ['24h0m0s', 86_400_000],
    ['90s', 90_000],
    ['5m500ms', 300_500],
    ['0s', 0],
  ] as const) {
    it(`parses ${text}`, () => expect(parseDuration(text)).to.equal(ms));
  }

  for (const text of ['', '24', '0', 'h', '-1h', '1.5h', '1d', '24 h', '24H', '1h ', '1234567h', '1µs', 'forever']) {
    it(`rejects "${text}"`, () => expect(parseDuration(text)).to.equal(undefined));
  }
});
