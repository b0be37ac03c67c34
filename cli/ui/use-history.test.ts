import { expect } from 'chai';
import { PoolUseHistory } from './use-history.js';

describe('The history of the use of pools', () => {
  it('is bounded however long the server runs, and still begins when the server was started', () => {
    const history = new PoolUseHistory();
    let wall = 0;
    for (let n = 0; n < 2_000; n += 1) {
      history.sample(wall, [{ name: 'blue', used: n }]);
      wall += history.intervalMs;
      expect(history.times.length).to.be.at.most(240);
      expect(history.of('blue')).to.have.length(history.times.length);
    }
    expect([history.times[0], history.of('blue')[0]]).to.deep.equal([0, 0]);
    expect(history.times).to.deep.equal([...history.times].sort((a, b) => a - b));
  });

  it('has gaps for the time before a pool was created, and while its use is unknown', () => {
    const history = new PoolUseHistory();
    history.sample(1, []);
    history.sample(2, [{ name: 'blue', used: undefined }]);
    history.sample(3, [{ name: 'blue', used: 5 }]);
    expect(history.of('blue')).to.deep.equal([null, null, 5]);
  });

  it('forgets deleted pools', () => {
    const history = new PoolUseHistory();
    history.sample(1, [{ name: 'blue', used: 5 }]);
    history.sample(2, []);
    expect(history.of('blue')).to.deep.equal([]);
  });

  it('records a bounded number of pools', () => {
    const history = new PoolUseHistory();
    const names = Array.from({ length: 2_001 }, (_, n) => `pool-${n}`);
    history.sample(
      1,
      names.map((name) => ({ name, used: 1 })),
    );
    expect(history.of('pool-1999')).to.deep.equal([1]);
    expect(history.of('pool-2000')).to.deep.equal([]);
  });
});
