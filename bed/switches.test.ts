import { expect } from 'chai';
import { Switches } from './switches.js';

describe('The switches of a bed', () => {
  it('change nothing until they are set', () => {
    expect(new Switches().of('vms', 'vm1')).to.include({ holdTermination: false, migration: 'succeed' });
  });

  it('apply to the scope for which they are set', () => {
    const switches = new Switches();
    switches.set({ holdTermination: true }, { namespace: 'vms', name: 'vm1' });
    switches.set({ migration: 'fail' }, { namespace: 'vms' });
    switches.set({ guestAgent: false });
    const all = (namespace: string, name: string) => {
      const { holdTermination, migration, guestAgent } = switches.of(namespace, name);
      return [holdTermination, migration, guestAgent];
    };
    expect(all('vms', 'vm1')).to.deep.equal([true, 'fail', false]);
    expect(all('vms', 'vm2')).to.deep.equal([false, 'fail', false]);
    expect(all('other', 'vm1')).to.deep.equal([false, 'succeed', false]);
  });

  it('are overridden by later settings, and apply again when those are reverted', () => {
    const switches = new Switches();
    switches.set({ migration: 'hold' });
    const takeBack = switches.set({ migration: 'fail' });
    expect(switches.of('vms', 'vm1').migration).to.equal('fail');
    takeBack();
    expect(switches.of('vms', 'vm1').migration).to.equal('hold');
    switches.clear();
    expect(switches.of('vms', 'vm1').migration).to.equal('succeed');
  });

  it('lose nodes and find them again', () => {
    const switches = new Switches();
    switches.loseNode('node-1');
    expect([switches.isLost('node-1'), switches.isLost('node-2')]).to.deep.equal([true, false]);
    switches.recoverNode('node-1');
    expect(switches.isLost('node-1')).to.equal(false);
    switches.loseNode('node-2');
    switches.clear();
    expect(switches.isLost('node-2')).to.equal(false);
  });

  it('notify listeners of every change', () => {
    const switches = new Switches();
    let told = 0;
    switches.onChange(() => told++);
    switches.set({ guestAgent: false })();
    switches.loseNode('node-1');
    switches.recoverNode('node-1');
    switches.clear();
    expect(told).to.equal(5);
  });
});
