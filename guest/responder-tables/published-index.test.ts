import { expect } from 'chai';
import { RESPONDER_INDEX } from '../../api/names.js';
import { responderSetName } from '../../api/responders.js';
import { indexNames, indexOfTable } from './published-index.js';

describe('the indexes of tables', () => {
  it('are one, under the name that earlier releases know, for as many tables as most clusters have', () => {
    for (const maxTables of [0, 32, 256]) expect(indexNames(maxTables)).to.deep.equal([RESPONDER_INDEX]);
    expect(indexNames(257)).to.deep.equal([RESPONDER_INDEX, `${RESPONDER_INDEX}-1`]);
  });

  it('share 5,000 tables about equally', () => {
    const names = indexNames(5_000);
    const counts = new Map(names.map((name) => [name, 0]));
    for (let n = 0; n < 5_000; n++) {
      const name = indexOfTable(responderSetName({ uid: `uid-${n}` }), names);
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    expect([...counts.keys()]).to.deep.equal(names);
    for (const count of counts.values()) expect(count).to.be.within(200, 320);
  });
});
