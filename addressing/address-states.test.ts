import { expect } from 'chai';
import { ADDRESS_STATES } from './address-states.js';

describe('the states of addresses', () => {
  it('have letters of their own, which are no digits: these are shares', () => {
    const letters = Object.values(ADDRESS_STATES).map(({ letter }) => letter);
    expect(letters.join('')).to.match(/^[^\d\s]+$/);
    expect(new Set(letters).size).to.equal(letters.length);
    expect(letters.every((letter) => letter.length === 1)).to.equal(true);
  });
});
