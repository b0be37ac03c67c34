import { expect } from 'chai';
import { BLUE, summary } from '../testing/migration-plan-cases.js';
import { ipPool, livePod, whereaboutsNad, observedOf } from '../testing/migration-world.js';
import { planMigration } from './plan.js';

describe('the migration plan of one network', () => {
  it('contains only that network if it shares no addresses', () => {
    const given = {
      nads: [BLUE, whereaboutsNad('a/red', { range: '10.1.0.0/24' }), whereaboutsNad('a/odd', { rang: 'x' })],
      ipPools: [
        ipPool('10.0.0.0-24', '10.0.0.0/24', { 5: 'a/p', 6: 'a/gone' }),
        ipPool('10.1.0.0-24', '10.1.0.0/24', { 5: 'a/p', 6: 'a/gone' }),
        ipPool('10.7.0.0-24', '10.7.0.0/24', { 5: 'a/p' }),
      ],
      pods: [livePod('a/p')],
    };
    const plan = planMigration(observedOf(given), 'red');
    expect(summary(plan)).to.deep.equal([
      'create pool red.a',
      'create red.10-1-0-5 of red.a for Pod p',
      'left out 10.1.0.6: pod-gone',
    ]);
    expect(plan.changes.map(({ nad }) => nad)).to.deep.equal(['a/red']);
  });

  it('contains the networks that share its addresses', () => {
    const given = {
      nads: [
        BLUE,
        whereaboutsNad('b/red', { range: '10.0.0.0/24' }, { born: 2 }),
        whereaboutsNad('c/far', { range: '10.9.0.0/24' }),
      ],
      ipPools: [ipPool('10.0.0.0-24', '10.0.0.0/24', { 5: 'a/p', 6: 'b/q', 7: 'b/gone' })],
      pods: [livePod('a/p', { has: { 'a/blue': ['10.0.0.5'] } }), livePod('b/q', { has: { 'b/red': ['10.0.0.6'] } })],
    };
    for (const network of ['blue', 'red']) {
      const plan = planMigration(observedOf(given), network);
      expect(summary(plan)).to.deep.equal([
        'create pool blue.a',
        'create pool red.b',
        'create blue.10-0-0-5 of blue.a for Pod p',
        'create blue.10-0-0-6 of red.b for Pod q',
        'left out 10.0.0.7: pod-gone',
        'b/red gets "addressSpace": "blue"',
      ]);
      expect(plan.changes.map(({ nad }) => nad)).to.deep.equal(['a/blue', 'b/red']);
    }
  });
});
